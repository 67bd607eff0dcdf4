"""Metastable failures: retries, queues and garbage collection sustain an overload after its trigger has ended.

The weakness is in the settings and stays; the trigger is temporary. A restart or a pause in the load restores the
service without repairing it, so the oracle replays the trigger.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from srearena.conductor.errors import ProblemError
from srearena.conductor.grading.baseline import capture
from srearena.conductor.grading.pod_templates import Templates
from srearena.conductor.oracles.checks import Check, Traffic
from srearena.conductor.oracles.checks.readiness import find_workload
from srearena.conductor.oracles.checks.replay import Replay
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Entity, Origin
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.generators.fault.inject_load import JobLoad, busy_machines, load_spike
from srearena.generators.fault.pod_templates import set_variables
from srearena.generators.fault.testbed import Testbed
from srearena.utils.decorators import mark_fault_injected

_BLUEPRINT = {
    "app": "blueprint_hotel_reservation",
    "victims": ("search-service", "geo-service", "rate-service", "frontend-service"),
}


def spare_load(of: Problem, **settings: Any) -> JobLoad:
    """The application's load with other settings, sent in addition to the usual load."""
    load: object = of.app.workload(**settings)
    if not isinstance(load, JobLoad):
        raise ProblemError(f"{of.app.name} has no load that can be doubled")
    return load


class MetastableProblem(OriginProblem):
    """A weakness (the injected fault) and a temporary trigger."""

    affects_new_pods = True
    level = "metastable"
    difficulty = "hard"
    calm: ClassVar[float] = 90.0
    """Seconds that the weak system runs before the trigger."""
    attempts: ClassVar[int] = 4
    """How often the system is disturbed at most, until it stays overloaded."""
    settle: ClassVar[float] = 150.0
    """Seconds after a disturbance until rates of two minutes no longer include it."""

    def more_checks(self) -> Iterable[Check]:
        return [Traffic(timeout=240.0), Replay()]

    @abstractmethod
    def trigger(self) -> None:
        """Disturb the system for a limited time."""

    @property
    def bed(self) -> Testbed:
        return Testbed.of(self.namespace, self.cluster, self.kubernetes)

    @mark_fault_injected
    def inject_fault(self) -> None:
        super().inject_fault()
        self.cluster.wait(self.calm)
        for _ in range(self.attempts):
            self.trigger()
            self.cluster.wait(self.settle)
            if not self.recovered():
                return

    def recovered(self) -> bool:
        """Whether the traffic is as before the fault; where nothing was measured then, it is not known to be."""
        traffic = Traffic(timeout=0.0)
        return bool(traffic.baseline_value(self)) and not traffic.complaints(self)


class RetryStorm(MetastableProblem):
    """All services of Blueprint Hotel Reservation have a timeout of 50 ms and thirty retries."""

    runs_on = ("embedded",)
    load: Mapping[str, Any] = {"rate": 10_000}
    """With the usual 3,000 requests a second most storms die down within minutes, because the simulated services serve
    a request in less than 0.1 ms. With 10,000 each of 14 lasted (seeds 0 to 6, both triggers). Not measured on a real
    cluster, whose services are slower."""
    fault = "rpc_timeout_retries_misconfiguration"
    root_kind = "ConfigMap"
    misbehaving = ("Deployment/frontend-service", "Deployment/search-service")  # the callers, which retry
    remedy = """\
kubectl -n {ns} patch configmap {service} --type=merge \
-p '{"data": {"GRPC_CLIENT_TIMEOUT": "1s", "GRPC_CLIENT_RETRIES_ON_ERROR": "1"}}'
kubectl -n {ns} rollout restart deployment"""


@problem("load_spike_rpc_retry_storm", service="rpc", **_BLUEPRINT)
class LoadSpikeRetryStorm(RetryStorm):
    family = "load_spike_rpc_retry_storm"
    explanation = (
        "The ConfigMap {service} lets every call give up after 50 ms and be tried thirty times: a spike of load that "
        "lasted half a minute left a storm of retries that feeds itself."
    )

    def trigger(self) -> None:
        load_spike(self.bed, spare_load(self, rate=40_000), 30.0)


@problem("capacity_decrease_rpc_retry_storm", service="rpc", **_BLUEPRINT)
class CapacityDecreaseRetryStorm(RetryStorm):
    family = "capacity_decrease_rpc_retry_storm"
    explanation = (
        "The ConfigMap {service} lets every call give up after 50 ms and be tried thirty times: half a minute in which "
        "the machines were busy with something else left a storm of retries that feeds itself."
    )

    def trigger(self) -> None:
        busy_machines(self.bed, 1.0, 0.1, ("geo-service", "rate-service"), 30.0)


@problem("gc_capacity_degradation", service="compute-defaults", **_BLUEPRINT)
class GarbageCollection(OriginProblem):
    """No trigger: garbage collection uses up the CPU limit."""

    affects_new_pods = True
    family = "gc_capacity_degradation"
    level = "metastable"
    difficulty = "hard"
    fault = "gogc_env_variable_patch"
    contributing = ("LimitRange/{service}", "Deployment/user-service")
    also = (Traffic,)
    explanation = (
        "GOGC=1 makes every service collect garbage all the time, and the LimitRange {service} gives each half a "
        "processor: what is left does not serve the load."
    )
    tuned: ClassVar[tuple[str, ...]] = ("frontend", "geo", "profile", "rate", "recomd", "reserv", "search")
    """Of the services with the setting, those that it keeps from serving: `user` has one request in a hundred."""
    remedy = """\
kubectl -n {ns} delete limitrange {service}
for name in $(kubectl -n {ns} get deployments -o name | grep -- -service$); do
  kubectl -n {ns} set env "$name" GOGC-
done"""

    @property
    def origins(self) -> Sequence[Origin]:
        """The fault sets GOGC on every service; without it, those with much to do serve the load within the limit."""
        workloads = (Entity("Deployment", f"{name}-service", self.namespace) for name in self.tuned)
        limit = self._entities(self.contributing, self.services[0])
        return tuple(Origin((workload,), (), limit) for workload in workloads)

    @property
    def propagation(self) -> Sequence[tuple[Entity, Entity]]:
        """From the services behind the frontend to the frontend, which is at fault as well."""
        frontend = Entity("Deployment", "frontend-service", self.namespace)
        return tuple((root, frontend) for root in self.roots if root != frontend)


class Policy(Check):
    """The backend still has a concurrency limit, and its queue is still bounded.

    Why it cannot be gamed: a limit far above the capacity of the database, or an unbounded queue, would survive this
    trigger and fail on the next. What counts is the environment that the program gets, wherever it comes from, and
    whatever kind of workload it runs in. The programs' defaults are within the bounds.
    """

    name = "policy"
    bounds: ClassVar[dict[str, float]] = {"RATE_BACKEND_QPS_LIMIT": 500.0, "RATE_QUEUE_CAPACITY": 256.0}

    def complaints(self, problem: Problem) -> list[str]:
        rate = find_workload(problem.kubernetes, "rate", problem.namespace)
        if rate is None:
            return ["there is no rate"]
        supplied = capture(problem.kubernetes, problem.app.namespaces, ("configmaps", "secrets"))
        values: dict[str, str] = {}
        for program in Templates(supplied).resolved(rate)["containers"].values():
            values |= program["env"]
        return [
            f"{name} is {values[name]}, more than {most:g}"
            for name, most in self.bounds.items()
            if _number(values.get(name, "0")) > most
        ]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("inf")


@problem("search_rate_retry_collapse_hotel_reservation", app="hotel_reservation", service="search")
class SearchRateRetryCollapse(OriginProblem):
    """The weakness exists from the start; only the trigger is injected."""

    affects_new_pods = True
    family = "search_rate_retry_collapse"
    level = "metastable"
    difficulty = "hard"
    fault = ""
    contributing = ("Deployment/rate",)
    explanation = (
        "search gives rate 300 ms and four attempts, and rate serves 150 requests a second from a line of 256: a burst "
        "of ten seconds filled the line, every answer comes too late, and retries keep it full."
    )
    remedy = """\
kubectl -n {ns} set env deployment/search RATE_RPC_MAX_ATTEMPTS=1
kubectl -n {ns} rollout status deployment/search --timeout=60s
kubectl -n {ns} rollout restart deployment/rate"""
    settings: ClassVar[dict[str, dict[str, str]]] = {
        "rate": {"RATE_BACKEND_QPS_LIMIT": "150", "RATE_QUEUE_CAPACITY": "256"},
        "search": {
            "RATE_RPC_TIMEOUT_MS": "300",
            "RATE_RPC_MAX_ATTEMPTS": "4",
            "RATE_RPC_INITIAL_BACKOFF_MS": "25",
            "RATE_RPC_BACKOFF_MULTIPLIER": "1.0",
        },
    }

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments, victims=("rate", "frontend"))

    def more_checks(self) -> Iterable[Check]:
        return [Policy(), Traffic(timeout=240.0), Replay()]

    def set_up(self) -> None:
        for name, variables in self.settings.items():
            deployment = self.kubernetes.get("deployments", name, self.namespace)
            set_variables(deployment, variables)
            self.kubernetes.replace(deployment, self.namespace, manager="kubectl-edit")
        self.cluster.wait(60)

    def trigger(self) -> None:
        bed = Testbed.of(self.namespace, self.cluster, self.kubernetes)
        load_spike(bed, spare_load(self, rate=400, connections=400), 15.0)

    @mark_fault_injected
    def inject_fault(self) -> None:
        self.trigger()

    @mark_fault_injected
    def recover_fault(self) -> None:
        """Stop the retries, and empty the queue in front of rate by a restart."""
        search = self.kubernetes.get("deployments", "search", self.namespace)
        set_variables(search, {"RATE_RPC_MAX_ATTEMPTS": "1"})
        self.kubernetes.replace(search, self.namespace)
        self.cluster.wait(60)
        self.kubernetes.restart("deployments", "rate", self.namespace)
