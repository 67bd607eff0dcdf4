"""Rollback of changes made through the tools: the affected objects are saved before each change.

A rollback restores objects that existed and deletes those that did not. Pods of a controller are left to it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sre_tools.errors import ToolError
from srearena.service.errors import Conflict, ServiceError
from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
_ATTEMPTS = 5  # chosen: a controller may write between read and replace
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")


@dataclass(frozen=True, slots=True)
class Key:
    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"


@dataclass(slots=True)
class Change:
    number: int
    command: str
    before: dict[Key, Obj | None] = field(default_factory=dict)
    rolled_back: bool = False


class Changes:
    def __init__(self, kubernetes: Kubernetes) -> None:
        self._kubernetes = kubernetes
        self._all: list[Change] = []

    def save(self, command: str, preview: str) -> Change | None:
        """Save the objects in a preview of a command; `add` the change after the command ran."""
        change = Change(len(self._all) + 1, command)
        for obj in _objects(preview):
            key = _key(obj)
            if key is not None:
                with suppress(ServiceError):  # an object that may not be read cannot be restored
                    change.before[key] = self._current(key, obj)
        return change if change.before else None

    def add(self, change: Change) -> None:
        change.number = len(self._all) + 1
        self._all.append(change)

    def listing(self) -> str:
        if not self._all:
            return "(nothing was changed through these tools)"
        return "\n".join(
            f"{change.number}: {change.command} ({', '.join(map(str, change.before))})"
            + (" rolled back" if change.rolled_back else "")
            for change in self._all
        )

    def roll_back(self, number: int | None = None) -> str:
        """Restore the objects of a change: by default the latest that was not rolled back yet."""
        candidates = [c for c in self._all if not c.rolled_back and number in (None, c.number)]
        if not candidates:
            raise ToolError(f"there is no such change to roll back: {self.listing()}")
        change = candidates[-1]
        results = [f"{key}: {self._restore(key, before)}" for key, before in change.before.items()]
        change.rolled_back = True
        return f"change {change.number} ({change.command}) rolled back:\n" + "\n".join(results)

    def _current(self, key: Key, obj: Obj) -> Obj | None:
        plural = self._kubernetes.resource_of(obj).name
        return self._kubernetes.find(plural, key.name, key.namespace or None)

    def _restore(self, key: Key, before: Obj | None) -> str:
        problem: ServiceError
        for _ in range(_ATTEMPTS):
            try:
                return self._try_restore(key, before)
            except Conflict as conflict:  # a controller wrote to it meanwhile: read it again
                problem = conflict
            except ServiceError as other:
                problem = other
                break
        return f"could not be put back: {problem}"

    def _try_restore(self, key: Key, before: Obj | None) -> str:
        reference: Obj = before or {"apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name}}
        plural = self._kubernetes.resource_of(reference).name
        namespace = key.namespace or None
        current = self._kubernetes.find(plural, key.name, namespace)
        if before is None:
            if current is None:
                return "is not there, as before"
            self._kubernetes.delete(plural, key.name, namespace)
            return "deleted; it was not there before"
        manifest = {name: value for name, value in before.items() if name != "status"}
        manifest["apiVersion"], manifest["kind"] = key.api_version, key.kind
        metadata = {name: value for name, value in before["metadata"].items() if name not in _SERVER_FIELDS}
        if current is None:
            if any(owner.get("controller") for owner in metadata.get("ownerReferences", ())):
                return "left to its controller"
            self._kubernetes.create({**manifest, "metadata": metadata}, namespace)
            return "created again"
        metadata["resourceVersion"] = current["metadata"]["resourceVersion"]
        self._kubernetes.replace({**manifest, "metadata": metadata}, namespace)
        return "as before"


def _objects(output: str) -> list[Any]:
    """The objects in kubectl's output: one JSON document, a list, or several documents between lines of text."""
    objects: list[Any] = []
    decoder = json.JSONDecoder()
    at = 0
    while (start := _document_start(output, at)) >= 0:
        try:
            document, at = decoder.raw_decode(output, start)
        except ValueError:
            at = start + 1
            continue
        if isinstance(document, dict):
            objects += document.get("items", [document])
    return objects


def _document_start(output: str, at: int) -> int:
    """Position of the next line that starts with a brace; -1 if there is none."""
    while True:
        start = output.find("{", at)
        if start <= 0 or output[start - 1] == "\n":
            return start
        at = start + 1


def _key(obj: Any) -> Key | None:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
        return None
    metadata = obj["metadata"]
    return Key(obj.get("apiVersion", ""), obj.get("kind", ""), metadata.get("namespace", ""), metadata["name"])
