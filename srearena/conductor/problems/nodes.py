"""Machines that stop doing their part."""

from __future__ import annotations

from collections.abc import Sequence

from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.metadata import Entity
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.generators.fault.actors import deployment, service
from srearena.generators.fault.inject_node import FORTIO, FORTIO_PORT, NodeFaultInjector
from srearena.generators.fault.steps import workers
from srearena.generators.fault.testbed import Testbed
from srearena.utils.decorators import mark_fault_injected


@problem("kubelet_crash", app="astronomy_shop", service="frontend")
class KubeletCrash(InjectedProblem):
    """Nothing that Kubernetes offers starts a kubelet, so that only finding out is asked for."""

    family = "kubelet_crash"
    level = "node"
    stages = ("detection", "localization")
    injector = NodeFaultInjector
    fault = "kubelet_crash"
    fault_type = "Operation Error"
    runs_on = ("embedded",)
    explanation = "The kubelet of every worker stopped: nodes are not ready, and what runs there is not looked after."
    remedy = ""

    @mark_fault_injected
    def inject_fault(self) -> None:
        names = workers(Testbed.of(self.namespace, self.cluster, self.kubernetes))
        self.faulty_service = names
        self.localization_oracle = LocalizationOracle(self, names)
        super().inject_fault()

    @property
    def roots(self) -> Sequence[Entity]:
        return tuple(Entity("Node", name) for name in self.faulty_services)


@problem(
    "node_conntrack_exhaustion_hotel_reservation",
    app="hotel_reservation",
    service="frontend",
    victims=("frontend",),
)
class ConntrackExhaustion(OriginProblem):
    """With a gateway beside the application, which somebody then puts to an endurance test."""

    family = "node_conntrack_exhaustion"
    level = "node"
    difficulty = "hard"
    injector = NodeFaultInjector
    fault = "conntrack_exhaustion"
    fault_type = "Operation Error"
    origin = "gateway-soak"
    explanation = (
        "The pods of gateway-soak keep more connections open than the connection tracking table of their node has room "
        "for: the first packet of every new one is dropped there, also of those to {service}."
    )
    remedy = "kubectl -n {ns} delete deployment gateway-soak"

    def set_up(self) -> None:
        container = {"name": "fortio", "image": FORTIO, "ports": [{"containerPort": FORTIO_PORT}]}
        objects = (
            deployment("rpc-gateway", self.namespace, {"containers": [container]}),
            service("rpc-gateway", self.namespace, FORTIO_PORT),
        )
        for obj in objects:
            self.kubernetes.apply(obj)
        self.cluster.wait(45)
