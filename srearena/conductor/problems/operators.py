"""Operator faults: impossible specifications, or an operator that does not run (FleetCast on TiDB)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from srearena.conductor.oracles.checks import Check
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.injected import CONTAINER, RESTORE
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.service.errors import TimedOut
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.waiting import wait_until

_CLUSTER, _NAMESPACE = "basic", "tidb-cluster"
_PATCH = "kubectl -n tidb-cluster patch tidbcluster {service} --type=json -p"
_TIMEOUT = 300.0


class Reconciled(Check):
    """The database matches its resource, and the operator applies a change: one more server, and one less again.

    Why it cannot be gamed: an operator that is stuck on a refused StatefulSet, or does not run, applies no change,
    whatever the last good state was; deleting the resource or its components is a complaint.
    """

    name = "operator"
    disruptive = True

    def complaints(self, problem: Problem) -> list[str]:
        api = problem.kubernetes
        cluster = api.find("tidbclusters", _CLUSTER, _NAMESPACE)
        if cluster is None:
            return [f"the TidbCluster {_CLUSTER} is deleted"]
        servers = cluster["spec"].get("tidb")
        if servers is None:
            return [f"the TidbCluster {_CLUSTER} requests no database servers"]
        before = int(servers.get("replicas", 1))
        if not 1 <= before <= 10:
            return [f"the TidbCluster {_CLUSTER} requests {before} database servers"]
        for replicas in (before + 1, before):
            patch = {"spec": {"tidb": {"replicas": replicas}}}
            api.patch("tidbclusters", _CLUSTER, patch, _NAMESPACE, kind="merge")

            def applied(replicas: int = replicas) -> bool:
                servers = api.find("statefulsets", f"{_CLUSTER}-tidb", _NAMESPACE)
                status = (servers or {}).get("status") or {}
                return bool(status.get("readyReplicas", 0) == replicas == status.get("replicas"))

            try:
                wait_until(applied, problem.cluster.wait, _TIMEOUT, what=f"{replicas} database servers")
            except TimedOut:
                api.patch("tidbclusters", _CLUSTER, {"spec": {"tidb": {"replicas": before}}}, _NAMESPACE, kind="merge")
                return [f"{replicas} database servers were requested, and were not ready within {_TIMEOUT:g} s"]
        return []


class Storage(Check):
    """Every component of the database has its volume, no claim is pending, and the next claim can be bound, too.

    Why it cannot be gamed: the claims of the healthy system are counted; none may be missing or unbound. The class that
    the TidbCluster asks for is looked up: claims that are bound already would hide one that does not exist.
    """

    name = "storage"

    def record_baseline(self, problem: Problem) -> list[str]:
        return sorted(claim["metadata"]["name"] for claim in self._claims(problem))

    def complaints(self, problem: Problem) -> list[str]:
        phases = {c["metadata"]["name"]: (c.get("status") or {}).get("phase") for c in self._claims(problem)}
        expected = self.baseline_value(problem) or ()
        unbound = [
            f"the claim {name} is {phases.get(name, 'gone')}" for name in expected if phases.get(name) != "Bound"
        ]
        return [*unbound, *self._missing_classes(problem.kubernetes)]

    def _missing_classes(self, api: Kubernetes) -> list[str]:
        cluster = api.find("tidbclusters", _CLUSTER, _NAMESPACE) or {}
        components = [value for value in cluster.get("spec", {}).values() if isinstance(value, dict)]
        wanted = {str(one["storageClassName"]) for one in components if one.get("storageClassName")}
        there = {one["metadata"]["name"] for one in api.list("storageclasses")} if wanted else set()
        return [f"the TidbCluster asks for the storage class {name}, which is not there" for name in wanted - there]

    def _claims(self, problem: Problem) -> list[Obj]:
        return problem.kubernetes.list("persistentvolumeclaims", _NAMESPACE)


class OperatorProblem(OriginProblem):
    level = "operator"
    root_kind = "TidbCluster"
    origin_namespace = _NAMESPACE
    misbehaving: ClassVar[tuple[str, ...] | None] = (f"{_NAMESPACE}/StatefulSet/{_CLUSTER}-tidb",)

    def more_checks(self) -> Iterable[Check]:
        return [Storage(), Reconciled()]


@problem("operator_overload_replicas", app="fleetcast", service=_CLUSTER)
class OverloadReplicas(OperatorProblem):
    family = "operator_overload_replicas"
    fault = "overload_replicas"
    explanation = "The TidbCluster {service} asks for a hundred database servers, for which there is no room."
    remedy = f"""{_PATCH} '[{{"op": "replace", "path": "/spec/tidb/replicas", "value": 1}}]'"""


@problem("operator_non_existent_storage", app="fleetcast", service=_CLUSTER)
class NonExistentStorage(OperatorProblem):
    family = "operator_non_existent_storage"
    difficulty = "hard"
    fault = "non_existent_storage"
    undone_by_recovery = True
    misbehaving = (
        f"{_NAMESPACE}/StatefulSet/{_CLUSTER}-pd",
        f"{_NAMESPACE}/PersistentVolumeClaim/pd-{_CLUSTER}-pd-0",
    )
    explanation = (
        "The TidbCluster {service} wants the storage of PD from a class that does not exist; made anew, PD's claim "
        "stays unbound, PD does not start, and the database has no head."
    )
    remedy = f"""\
{_PATCH} '[{{"op": "remove", "path": "/spec/pd/storageClassName"}}]'
kubectl -n tidb-cluster delete statefulset {{service}}-pd
kubectl -n tidb-cluster delete pvc pd-{{service}}-pd-0 --wait=false"""


@problem("operator_invalid_affinity_toleration", app="fleetcast", service=_CLUSTER)
class InvalidAffinityToleration(OperatorProblem):
    family = "operator_invalid_affinity_toleration"
    fault = "invalid_affinity_toleration"
    explanation = "The TidbCluster {service} has a toleration with an effect that Kubernetes does not know."
    remedy = f"""{_PATCH} '[{{"op": "remove", "path": "/spec/tidb/tolerations"}}]'"""


@problem("operator_security_context_fault", app="fleetcast", service=_CLUSTER)
class SecurityContextFault(OperatorProblem):
    family = "operator_security_context_fault"
    fault = "security_context_fault"
    explanation = "The TidbCluster {service} asks for a user id of -1, which no pod can have."
    remedy = f"""{_PATCH} '[{{"op": "remove", "path": "/spec/tidb/podSecurityContext"}}]'"""


@problem("operator_wrong_update_strategy_fault", app="fleetcast", service=_CLUSTER)
class WrongUpdateStrategy(OperatorProblem):
    family = "operator_wrong_update_strategy_fault"
    fault = "wrong_update_strategy"
    explanation = "The TidbCluster {service} names an update strategy that Kubernetes does not know."
    remedy = f"""{_PATCH} '[{{"op": "remove", "path": "/spec/tidb/statefulSetUpdateStrategy"}}]'"""


@problem("operator_wrong_operator_image", app="fleetcast", service="tidb-controller-manager")
class WrongOperatorImage(OperatorProblem):
    family = "operator_wrong_operator_image"
    fault = "wrong_operator_image"
    root_kind = "Deployment"
    origin_namespace = "tidb-operator"
    misbehaving = ()
    explanation = "The Deployment {service} runs an image that does not exist: nothing looks after the TidbCluster."
    remedy = RESTORE.replace("{ns}", "tidb-operator")
    restores = (f"{CONTAINER}/image",)
