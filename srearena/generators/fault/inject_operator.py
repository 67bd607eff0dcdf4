"""Faults of operators: a custom resource with an impossible spec, or an operator that does not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srearena.generators.fault.edits import CompositeFault, Edit, Removal
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

_NAMESPACE, _OPERATOR = "tidb-cluster", "tidb-operator"


def _edit(bed: Testbed, name: str, change: Callable[[Obj], Any]) -> Edit:
    return Edit(bed, "tidbclusters", name, lambda obj: change(obj["spec"]), namespace=_NAMESPACE)


@fault("overload_replicas")
def overload_replicas(bed: Testbed, cluster: str, replicas: int = 100) -> Fault:
    """The custom resource requests far more database servers than the cluster has capacity for."""
    return _edit(bed, cluster, lambda spec: spec["tidb"].update(replicas=replicas))


@fault("non_existent_storage")
def non_existent_storage(bed: Testbed, cluster: str, storage_class: str = "ultra-fast-ssd") -> Fault:
    """A storage class that does not exist, for volumes that are created again."""
    return _MadeAnew(
        _edit(bed, cluster, lambda spec: spec["pd"].update(storageClassName=storage_class)),
        _DeleteAndRecreate(bed, "statefulsets", f"{cluster}-pd"),
        _DeleteAndRecreate(bed, "persistentvolumeclaims", f"pd-{cluster}-pd-0"),
    )


class _MadeAnew(CompositeFault):
    """Recovered in the order of injection: first the resource, then what its operator makes from it."""

    def recover(self) -> None:
        for part in self.parts:
            part.recover()


class _DeleteAndRecreate(Removal):
    """Deletes an object that its controller creates again, now and for the recovery."""

    def __init__(self, bed: Testbed, resource: str, name: str) -> None:
        super().__init__(bed, resource, name, namespace=_NAMESPACE)

    def inject(self) -> None:
        before = self._bed.kubernetes.get(self._resource, self._name, self._namespace)["metadata"]["uid"]
        self._bed.kubernetes.delete(self._resource, self._name, self._namespace)

        def gone() -> bool:
            current = self._bed.kubernetes.find(self._resource, self._name, self._namespace)
            return current is None or current["metadata"]["uid"] != before

        self._bed.wait_for(gone, 120.0, f"{self._resource}/{self._name} to go")

    recover = inject

    def in_place(self) -> bool:
        return True


@fault("invalid_affinity_toleration")
def invalid_affinity_toleration(bed: Testbed, cluster: str, effect: str = "TAKE_SOME_EFFECT") -> Fault:
    """A toleration with an effect that does not exist."""
    toleration = {"key": "dedicated", "operator": "Equal", "value": "db", "effect": effect}
    return _edit(bed, cluster, lambda spec: spec["tidb"].update(tolerations=[toleration]))


@fault("security_context_fault")
def security_context_fault(bed: Testbed, cluster: str, user: int = -1) -> Fault:
    """An invalid user id."""
    return _edit(bed, cluster, lambda spec: spec["tidb"].update(podSecurityContext={"runAsUser": user}))


@fault("wrong_update_strategy")
def wrong_update_strategy(bed: Testbed, cluster: str, strategy: str = "SomeStrategyForUpdate") -> Fault:
    """An update strategy that does not exist."""
    return _edit(bed, cluster, lambda spec: spec["tidb"].update(statefulSetUpdateStrategy=strategy))


@fault("wrong_operator_image")
def wrong_operator_image(bed: Testbed, operator: str, image: str = "pingcap/tidb-operatr:v1.6.3") -> Fault:
    """The operator's image does not exist."""

    def change(obj: Obj) -> None:
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return Edit(bed, "deployments", operator, change, namespace=_OPERATOR, replace_pods=True)
