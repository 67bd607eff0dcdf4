"""Chaos engineering faults on one service: killed pods and containers, idle pods, delayed or lost packets.

Faults in a pod disappear with the pod, so replacing the pod is a valid repair; faults of an actor return until the
actor is stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.oracles.checks import Traffic
from srearena.conductor.problems.injected import POD, RESTORE
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import callers, components, itself_and_callers
from srearena.conductor.problems.variation import Choice


@problem(
    "pod_kill", app="hotel_reservation", service="user", victims=("user", "frontend"), aliases=("pod_kill_hotel_res",)
)
class PodKill(OriginProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": itself_and_callers}
    family = "pod_kill"
    fault_type = "Operation Error"
    fault = "pod_kill"
    origin = "pod-recycler"
    also_changed = ("Role/pod-recycler", "RoleBinding/pod-recycler", "ServiceAccount/pod-recycler")
    explanation = "The Deployment pod-recycler deletes the pods of {service} every few seconds."
    remedy = "kubectl -n {ns} delete deployment pod-recycler"


@problem(
    "pod_failure", app="hotel_reservation", service="user", victims=("frontend",), aliases=("pod_failure_hotel_res",)
)
class PodFailure(OriginProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": callers}
    family = "pod_failure"
    fault = "pod_failure"
    fault_type = "Operation Error"
    restart_is_a_remedy = True
    explanation = "The pod of {service} was made to run the image of a pause container: it is up and does nothing."
    remedy = "kubectl -n {ns} rollout restart deployment/{service}"


@problem(
    "container_kill",
    app="hotel_reservation",
    service="geo",
    victims=("search", "frontend"),
    aliases=("container-kill",),
)
class ContainerKill(OriginProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": callers}
    family = "container_kill"
    fault = "container_kill"
    fault_type = "Operation Error"
    explanation = (
        "A sidecar in the pods of {service}, which sees all their processes, kills the main one again and again."
    )
    remedy = RESTORE
    restores = (f"{POD}/containers", f"{POD}/shareProcessNamespace")


class ShapedNetwork(OriginProblem):
    level = "network"
    runs_on = ("embedded",)
    fault_type = "Network/Storage Issue"
    also = (Traffic,)
    restart_is_a_remedy = True
    remedy = "kubectl -n {ns} rollout restart deployment/{service}"


@problem(
    "network_delay",
    app="hotel_reservation",
    service="search",
    victims=("frontend",),
    aliases=("network_delay_hotel_res",),
)
class NetworkDelay(ShapedNetwork):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": callers}
    family = "network_delay"
    fault = "network_delay"
    explanation = "Packets to and from the pod of {service} are delayed by a second at its interface."


@problem(
    "network_loss",
    app="hotel_reservation",
    service="recommendation",
    victims=("frontend",),
    aliases=("network_loss_hotel_res",),
)
class NetworkLoss(ShapedNetwork):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": callers}
    family = "network_loss"
    fault = "network_loss"
    explanation = "More than half of the packets to and from the pod of {service} are lost at its interface."
