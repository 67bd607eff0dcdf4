"""Load balancing faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from srearena.conductor.oracles.checks import Check, FrontendAvailability
from srearena.conductor.oracles.checks.after_restart import AfterRestart
from srearena.conductor.oracles.checks.metric_range import MetricRange
from srearena.conductor.problems.network import NetworkProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.variation import Choice

_RECEIVED = (
    'sum by (pod) (rate(container_network_receive_bytes_total{namespace="{ns}", pod=~"frontend-[0-9a-f]+-.*"}[2m]))'
)


@problem(
    "workload_imbalance",
    app="astronomy_shop",
    service="frontend",
    victims=("frontend",),
    mode="userspace",
    replicas=5,
)
class WorkloadImbalance(NetworkProblem):
    """Check the load of each pod; a new frontend pod must be reached, which stale rules do not contain."""

    varies: ClassVar[Mapping[str, Choice]] = {"mode": ("userspace", "ip-tables", "ebpf"), "replicas": (4, 5, 6)}
    affects_new_pods = True
    family = "workload_imbalance"
    difficulty = "hard"
    fault = "stale_rules"
    root_kind = "ConfigMap"
    origin = "kube-proxy"
    origin_namespace = "kube-system"
    misbehaving = ("kube-system/DaemonSet/kube-proxy",)
    explanation = (
        "The configuration of kube-proxy asks for a mode that it no longer has, so that it does not start: nodes go by "
        "the rules of that moment, and of {replicas} pods of {service} one gets all the requests."
    )
    remedy = """\
kubectl -n kube-system get configmap kube-proxy -o yaml | sed 's/mode: {mode}/mode: iptables/' | kubectl replace -f -
kubectl -n kube-system delete pods -l k8s-app=kube-proxy
kubectl -n kube-system rollout status daemonset/kube-proxy --timeout=90s"""

    def more_checks(self) -> Iterable[Check]:
        even = f"max({_RECEIVED}) / avg({_RECEIVED})"
        busiest = "what the busiest pod of frontend receives, against the average,"
        return [MetricRange(busiest, even, least=0.5, most=2.5), AfterRestart("frontend", [FrontendAvailability()])]
