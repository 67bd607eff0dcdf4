"""Faults that change Kubernetes objects: an object edited, removed or added, pods replaced.

The requests look like those of the testbed's author: its field managers, and no name that reveals their purpose.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator

from srearena.generators.fault.errors import FaultError
from srearena.generators.fault.registry import Fault
from srearena.generators.fault.testbed import Testbed
from srearena.service.errors import Conflict, NotFound
from srearena.service.kubernetes import Obj

__all__ = ["Addition", "CompositeFault", "Edit", "Removal", "ReplacePods", "as_new", "edits_of"]

_SET_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_SETTLE_SECONDS = 120.0
_ATTEMPTS = 5


class CompositeFault(Fault):
    """Several faults as one: injected in order, recovered in reverse order."""

    def __init__(self, *parts: Fault) -> None:
        self.parts = parts

    @property
    def changes(self) -> frozenset[str]:
        return frozenset(name for part in self.parts for name in part.changes)

    def inject(self) -> None:
        for part in self.parts:
            part.inject()

    def recover(self) -> None:
        for part in reversed(self.parts):
            part.recover()

    def in_place(self) -> bool:
        """Of several parts that change the same object, only the last one is checked."""
        last = {part.target: part for part in self.parts if part.target is not None}
        return all(part.in_place() for part in self.parts if part.target is None or last[part.target] is part)


def _authored(obj: Obj) -> Obj:
    """The fields of an object that its author sets: no status, no metadata that the server adds."""
    authored = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    metadata = obj.get("metadata", {})
    for key in ("labels", "finalizers"):
        if metadata.get(key):
            authored[key] = metadata[key]
    return authored


def as_new(obj: Obj) -> Obj:
    """A copy of an object without the fields that the server sets, so that it can be created again."""
    fresh = copy.deepcopy(obj)
    fresh.pop("status", None)
    for key in (*_SET_BY_SERVER, "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"):
        fresh.get("metadata", {}).pop(key, None)
    if fresh.get("kind") == "Service" and fresh.get("spec", {}).get("clusterIP") != "None":
        fresh["spec"].pop("clusterIP", None)
        fresh["spec"].pop("clusterIPs", None)
    return fresh


class Edit(Fault):
    """Changes an object in place.

    With `replace_pods`, a workload is scaled to zero and back, so that no old pod keeps serving as in a rolling update.
    Its rollout history stays, so that `kubectl rollout undo` works.
    """

    def __init__(
        self,
        bed: Testbed,
        resource: str,
        name: str,
        change: Callable[[Obj], None],
        *,
        namespace: str | None = None,
        replace_pods: bool = False,
    ) -> None:
        self._bed = bed
        self._resource = resource
        self._name = name
        self._change = change
        self._namespace = bed.namespace if namespace is None else namespace
        self._replace_pods = replace_pods
        self.target: tuple[str, str, str] = (resource, self._namespace, name)
        self._before: Obj | None = None
        self._after: Obj | None = None

    def _read(self) -> Obj:
        try:
            return self._bed.kubernetes.get(self._resource, self._name, self._namespace)
        except NotFound as problem:
            raise FaultError(f"there is no {self._resource}/{self._name} in {self._namespace} to change") from problem

    def _write(self, change: Callable[[Obj], None]) -> Obj:
        for attempt in range(_ATTEMPTS):
            obj = self._read()
            change(obj)
            try:
                return self._bed.kubernetes.replace(obj, self._namespace, manager=self._bed.author.updates_as)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def inject(self) -> None:
        self._before = self._read()
        changed = copy.deepcopy(self._before)
        self._change(changed)
        if _authored(changed) == _authored(self._before):
            raise FaultError(f"the fault would not change {self._resource}/{self._name} in {self._namespace}")
        replicas = changed.get("spec", {}).get("replicas", 1)
        if self._replace_pods and replicas:

            def change_and_scale_to_zero(obj: Obj) -> None:
                self._change(obj)
                obj["spec"]["replicas"] = 0

            self._write(change_and_scale_to_zero)
            self._await_no_pods()
            self._after = self._write(lambda obj: obj["spec"].update(replicas=replicas))
        else:
            self._after = self._write(self._change)

    def _await_no_pods(self) -> None:
        def gone() -> bool:
            return not self._read().get("status", {}).get("replicas") and not self._pods()

        self._bed.wait_for(gone, _SETTLE_SECONDS, f"the pods of {self._name} to go")

    def _pods(self) -> list[Obj]:
        selector = self._read()["spec"].get("selector", {}).get("matchLabels", {})
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        return self._bed.kubernetes.list("pods", self._namespace, labels=labels)

    def recover(self) -> None:
        before = self._before
        if before is None:
            raise FaultError(f"{self._resource}/{self._name} was not changed by this fault")
        if self._bed.kubernetes.find(self._resource, self._name, self._namespace) is None:
            return  # deleted meanwhile, and the change with it

        def restore(obj: Obj) -> None:
            for key in set(obj) | set(before):
                if key in ("metadata", "status", "apiVersion", "kind"):
                    continue
                if key in before:
                    obj[key] = copy.deepcopy(before[key])
                else:
                    obj.pop(key)
            for key in ("labels", "finalizers"):
                if key in before["metadata"]:
                    obj["metadata"][key] = copy.deepcopy(before["metadata"][key])
                else:
                    obj["metadata"].pop(key, None)

        self._write(restore)

    @property
    def changed_template(self) -> bool:
        """Whether the injection changed the pod template of a workload."""
        if self._before is None or self._after is None or "template" not in self._before.get("spec", {}):
            return False
        return bool(self._before["spec"]["template"] != self._after["spec"]["template"])

    def in_place(self) -> bool:
        return self._after is not None and _authored(self._read()) == _authored(self._after)


def edits_of(faults: Iterable[Fault]) -> Iterator[Edit]:
    """The edits among faults and their parts, in the order of injection."""
    for fault in faults:
        if isinstance(fault, CompositeFault):
            yield from edits_of(fault.parts)
        elif isinstance(fault, Edit):
            yield fault


class Removal(Fault):
    """Deletes an object; recovery creates it again."""

    def __init__(self, bed: Testbed, resource: str, name: str, *, namespace: str | None = None) -> None:
        self._bed = bed
        self._resource = resource
        self._name = name
        self._namespace = bed.namespace if namespace is None else namespace
        self._before: Obj | None = None

    @property
    def changes(self) -> frozenset[str]:
        return frozenset({self._name})

    def inject(self) -> None:
        self._before = self._bed.kubernetes.get(self._resource, self._name, self._namespace)
        self._bed.kubernetes.delete(self._resource, self._name, self._namespace)
        self._bed.wait_for(self.in_place, _SETTLE_SECONDS, f"{self._resource}/{self._name} to go")

    def recover(self) -> None:
        if self._before is None:
            raise FaultError(f"{self._resource}/{self._name} was not removed by this fault")
        if not self.in_place():
            self._bed.kubernetes.delete(self._resource, self._name, self._namespace)
            self._bed.wait_for(self.in_place, _SETTLE_SECONDS, f"{self._resource}/{self._name} to go")
        self._bed.kubernetes.create(as_new(self._before), self._namespace)

    def in_place(self) -> bool:
        return self._bed.kubernetes.find(self._resource, self._name, self._namespace) is None


class Addition(Fault):
    """Creates an object; recovery deletes it."""

    def __init__(self, bed: Testbed, obj: Obj) -> None:
        self._bed = bed
        self._obj = obj
        self._namespace = obj["metadata"].get("namespace", bed.namespace)

    @property
    def changes(self) -> frozenset[str]:
        return frozenset({str(self._obj["metadata"]["name"])})

    def inject(self) -> None:
        manager = self._bed.author.creates_as
        self._bed.kubernetes.create(copy.deepcopy(self._obj), self._namespace, manager=manager)

    def recover(self) -> None:
        resource = self._bed.kubernetes.resource_of(self._obj).name
        self._bed.kubernetes.delete(resource, self._obj["metadata"]["name"], self._namespace)

    def in_place(self) -> bool:
        resource = self._bed.kubernetes.resource_of(self._obj).name
        return self._bed.kubernetes.find(resource, self._obj["metadata"]["name"], self._namespace) is not None


class ReplacePods(Fault):
    """Deletes pods so that new ones see what else was changed; recovery deletes them again."""

    def __init__(self, bed: Testbed, labels: str = "", *, namespace: str | None = None) -> None:
        self._bed = bed
        self._labels = labels
        self._namespace = bed.namespace if namespace is None else namespace

    def inject(self) -> None:
        for pod in self._bed.kubernetes.list("pods", self._namespace, labels=self._labels):
            self._bed.kubernetes.delete("pods", pod["metadata"]["name"], self._namespace)

    recover = inject

    def in_place(self) -> bool:
        return True
