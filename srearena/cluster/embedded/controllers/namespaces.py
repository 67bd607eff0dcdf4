"""Deletion of namespaces: first the pods, then the other content, then the namespace.

What blocks the deletion is reported in the conditions, with the real controller's messages.
"""

from __future__ import annotations

from collections import Counter

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, is_terminating, meta, name_of, with_condition
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.store import Change

_FINALIZER = "kubernetes"
_SETTLING = 5.0
"""Delay before a deleted namespace is processed, so that clients that still write into it get an error."""
_FINALIZER_PATIENCE = 15

Left = dict[Resource, list[Obj]]


class NamespaceController(Controller):
    name = "namespace-controller"
    failure = ("namespace_controller.go:164", "deletion of namespace {key} failed: {problem}")

    def start(self) -> None:
        self.world.on_change("namespaces", self._changed)
        for namespace in self.store.objects("namespaces"):
            if is_terminating(namespace):
                self.enqueue(name_of(namespace), _SETTLING)

    def _changed(self, change: Change) -> None:
        if change.type != "DELETED" and is_terminating(change.new):
            self.enqueue(name_of(change.new), _SETTLING)

    def reconcile(self, key: str) -> None:
        namespace = self.client.get("namespaces", "", key)
        if namespace is None or not is_terminating(namespace):
            return
        if _FINALIZER not in (namespace.get("spec") or {}).get("finalizers", ()):
            return
        rows = self._rows()
        pods = [row for row in rows if row.group_resource == "pods"]
        left, problems = self._delete_content(key, pods)
        if not left and not problems:
            left, problems = self._delete_content(key, rows)
        unseen = sorted(f"{group}/{version}" for group, version in self.world.registry.resources.unavailable)
        self._write_conditions(namespace, left, problems, unseen)
        if problems:
            self._log_failure(key, ApiError(", ".join(problems)))
        if left or problems or unseen:
            self.enqueue(key, self._patience(left) / 2 + 1)
            return

        def let_go(obj: Obj) -> None:
            obj["spec"]["finalizers"] = [f for f in obj["spec"].get("finalizers") or () if f != _FINALIZER]

        self.client.modify("namespaces", "", key, let_go, "finalize")
        line = f'"Namespace has been deleted" logger="{self.name}" namespace="{key}"'
        self.log("I", "namespace_controller.go:187", line)

    def _rows(self) -> list[Resource]:
        """Every stored, namespaced resource once."""
        found: dict[str, Resource] = {}
        for row in self.world.registry.resources:
            if row.namespaced and "delete" in row.verbs:
                found.setdefault(row.storage_key, row)
        return list(found.values())

    def _delete_content(self, namespace: str, rows: list[Resource]) -> tuple[Left, list[str]]:
        """Delete all content; returns what remains, and what could not be deleted."""
        problems: list[str] = []
        for row in rows:
            for obj in self.store.objects(row.storage_key, namespace):
                if is_terminating(obj):
                    continue
                try:
                    self.client.delete(row.group_resource, obj, propagation="Background")
                except ApiError as problem:
                    problems.append(problem.message)
        return {row: found for row in rows if (found := self.store.objects(row.storage_key, namespace))}, problems

    @staticmethod
    def _patience(left: Left) -> int:
        """How long what is left may take: the pods' grace, or a while for finalizers."""
        seconds = 0
        for objects in left.values():
            for obj in objects:
                seconds = max(seconds, meta(obj).get("deletionGracePeriodSeconds") or 0)
                if meta(obj).get("finalizers"):
                    seconds = max(seconds, _FINALIZER_PATIENCE)
        return seconds

    def _write_conditions(self, namespace: Obj, left: Left, problems: list[str], unseen: list[str]) -> None:
        status = dict(namespace.get("status") or {})
        conditions = status.get("conditions") or []
        now = self.clock.timestamp()
        for kind, holds, reason, message in _verdicts(left, problems, unseen):
            new = {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}
            conditions = with_condition(conditions, new, now)
        status["conditions"] = conditions
        status["phase"] = "Terminating"
        if status != namespace.get("status"):
            self.client.set_status("namespaces", namespace, status)


def _verdicts(left: Left, problems: list[str], unseen: list[str]) -> list[tuple[str, bool, str, str]]:
    """(condition, whether it is true, reason, message); `unseen` are the group versions whose server is away."""
    remaining = ", ".join(
        sorted(f"{row.plural}.{row.group} has {len(objects)} resource instances" for row, objects in left.items())
    )
    finalizers = Counter(
        finalizer for objects in left.values() for obj in objects for finalizer in meta(obj).get("finalizers") or ()
    )
    finalizer_counts = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in finalizers.items()))
    failed = f"Failed to delete all resource types, {len(problems)} remaining: {', '.join(problems)}"
    return [
        (
            "NamespaceDeletionDiscoveryFailure",
            bool(unseen),
            "DiscoveryFailed" if unseen else "ResourcesDiscovered",
            _undiscovered(unseen) if unseen else "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            False,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            bool(problems),
            "ContentDeletionFailed" if problems else "ContentDeleted",
            failed if problems else "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            bool(remaining),
            "SomeResourcesRemain" if remaining else "ContentRemoved",
            f"Some resources are remaining: {remaining}" if remaining else "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            bool(finalizer_counts),
            "SomeFinalizersRemain" if finalizer_counts else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {finalizer_counts}"
            if finalizer_counts
            else "All content-preserving finalizers finished",
        ),
    ]


def _undiscovered(unseen: list[str]) -> str:
    stale = ", ".join(f"{version}: stale GroupVersion discovery: {version}" for version in unseen)
    return (
        f"Discovery failed for some groups, {len(unseen)} failing: "
        f"unable to retrieve the complete list of server APIs: {stale}"
    )
