"""Namespaces that are deleted: their content first, then they themselves; what holds them up is said in conditions."""

from __future__ import annotations

from collections import Counter

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, is_terminating, meta, with_condition
from srearena.cluster.embedded.registry.resources import Resource

_POLL = 5.0
_FINALIZER = "kubernetes"
_NOTHING_WRONG = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class NamespaceController(Controller):
    name = "namespace-controller"

    def start(self) -> None:
        self.watch("namespaces")

    def reconcile(self, key: str) -> None:
        namespace = self.client.get("namespaces", "", key)
        if namespace is None or not is_terminating(namespace):
            return
        if _FINALIZER not in (namespace.get("spec") or {}).get("finalizers", ()):
            return
        rows = self._rows()
        for row in rows:
            for obj in self.store.objects(row.storage_key, key):
                if not is_terminating(obj):
                    self.client.delete(row.group_resource, obj, propagation="Background")
        left = {row: objects for row in rows if (objects := self.store.objects(row.storage_key, key))}
        self._write_conditions(namespace, left)
        if left:
            # A namespace that only waits for pods to end is looked at when they ought to have.
            self.enqueue(key, self._patience(left))
            return

        def let_go(obj: Obj) -> None:
            obj["spec"]["finalizers"] = [f for f in obj["spec"].get("finalizers") or () if f != _FINALIZER]

        self.client.modify("namespaces", "", key, let_go, "finalize")

    def _rows(self) -> list[Resource]:
        """Every stored, namespaced resource once."""
        found: dict[str, Resource] = {}
        for row in self.world.registry.resources:
            if row.namespaced and "delete" in row.verbs:
                found.setdefault(row.storage_key, row)
        return list(found.values())

    @staticmethod
    def _patience(left: dict[Resource, list[Obj]]) -> float:
        graces = [meta(obj).get("deletionGracePeriodSeconds", 0) for objects in left.values() for obj in objects]
        return min(_POLL, max(graces, default=0) / 2 + 1)

    def _write_conditions(self, namespace: Obj, left: dict[Resource, list[Obj]]) -> None:
        status = dict(namespace.get("status") or {})
        conditions = status.get("conditions") or []
        now = self.clock.timestamp()
        finalizers: Counter[str] = Counter(
            finalizer for objects in left.values() for obj in objects for finalizer in meta(obj).get("finalizers") or ()
        )
        for kind, reason, message in _NOTHING_WRONG:
            new = {"type": kind, "status": "False", "reason": reason, "message": message}
            conditions = with_condition(conditions, new, now)
        remaining = ", ".join(
            f"{row.plural}.{row.group} has {len(objects)} resource instances"
            for row, objects in sorted(left.items(), key=lambda item: item[0].group_resource)
        )
        conditions = with_condition(
            conditions,
            {
                "type": "NamespaceContentRemaining",
                "status": "True" if remaining else "False",
                "reason": "SomeResourcesRemain" if remaining else "ContentRemoved",
                "message": f"Some resources are remaining: {remaining}"
                if remaining
                else "All content successfully removed",
            },
            now,
        )
        held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        conditions = with_condition(
            conditions,
            {
                "type": "NamespaceFinalizersRemaining",
                "status": "True" if held else "False",
                "reason": "SomeFinalizersRemain" if held else "ContentHasNoFinalizers",
                "message": f"Some content in the namespace has finalizers remaining: {held}"
                if held
                else "All content-preserving finalizers finished",
            },
            now,
        )
        status["conditions"] = conditions
        status["phase"] = "Terminating"
        if status != namespace.get("status"):
            self.client.set_status("namespaces", namespace, status)
