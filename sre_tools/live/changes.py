"""What was changed through these tools, and how to put it back: the objects as they were before each change.

Rolling back means: what was there is as it was, what was not there is gone. Pods that a controller owns are left to it.
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
_ATTEMPTS = 5
_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")


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

    def saved(self, command: str, shown: str) -> Change | None:
        """Save the objects that a preview showed; to be kept once the command has worked."""
        change = Change(len(self._all) + 1, command)
        for obj in _objects(shown):
            key = _key(obj)
            if key is not None:
                with suppress(ServiceError):  # what may not be read cannot be put back
                    change.before[key] = self._now(key, obj)
        return change if change.before else None

    def keep(self, change: Change) -> None:
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
        """Put back what a change touched; the latest that was not rolled back yet, unless one is named."""
        open_ones = [change for change in self._all if not change.rolled_back]
        chosen = [change for change in open_ones if number in (None, change.number)]
        if not chosen:
            raise ToolError(f"there is no such change to roll back: {self.listing()}")
        change = chosen[-1]
        said = [f"{key}: {self._put_back(key, before)}" for key, before in change.before.items()]
        change.rolled_back = True
        return f"change {change.number} ({change.command}) rolled back:\n" + "\n".join(said)

    def _now(self, key: Key, shown: Obj) -> Obj | None:
        plural = self._kubernetes.resource_of(shown).name
        return self._kubernetes.find(plural, key.name, key.namespace or None)

    def _put_back(self, key: Key, before: Obj | None) -> str:
        problem: ServiceError
        for _ in range(_ATTEMPTS):
            try:
                return self._as_before(key, before)
            except Conflict as conflict:  # a controller wrote to it meanwhile: look again
                problem = conflict
            except ServiceError as other:
                problem = other
                break
        return f"could not be put back: {problem}"

    def _as_before(self, key: Key, before: Obj | None) -> str:
        known: Obj = before or {"apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name}}
        plural = self._kubernetes.resource_of(known).name
        place = key.namespace or None
        now = self._kubernetes.find(plural, key.name, place)
        if before is None:
            if now is None:
                return "is not there, as before"
            self._kubernetes.delete(plural, key.name, place)
            return "deleted; it was not there before"
        wanted = {name: value for name, value in before.items() if name != "status"}
        wanted["apiVersion"], wanted["kind"] = key.api_version, key.kind
        metadata = {name: value for name, value in before["metadata"].items() if name not in _SERVERS_OWN}
        if now is None:
            if any(owner.get("controller") for owner in metadata.get("ownerReferences", ())):
                return "left to its controller"
            self._kubernetes.create({**wanted, "metadata": metadata}, place)
            return "created again"
        metadata["resourceVersion"] = now["metadata"]["resourceVersion"]
        self._kubernetes.replace({**wanted, "metadata": metadata}, place)
        return "as before"


def _objects(shown: str) -> list[Any]:
    """The objects in what kubectl printed: one document, a list of them, or several one after the other, amid words."""
    found: list[Any] = []
    decoder = json.JSONDecoder()
    at = 0
    while (start := _beginning(shown, at)) >= 0:
        try:
            document, at = decoder.raw_decode(shown, start)
        except ValueError:
            at = start + 1
            continue
        if isinstance(document, dict):
            found += document.get("items", [document])
    return found


def _beginning(shown: str, at: int) -> int:
    """Where the next line that opens a document begins."""
    while True:
        start = shown.find("{", at)
        if start <= 0 or shown[start - 1] == "\n":
            return start
        at = start + 1


def _key(obj: Any) -> Key | None:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
        return None
    metadata = obj["metadata"]
    return Key(obj.get("apiVersion", ""), obj.get("kind", ""), metadata.get("namespace", ""), metadata["name"])
