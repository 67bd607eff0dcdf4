"""The chain of admission plug-ins, in the order of a real server's.

A plug-in that must wait for an external call (a webhook) raises `AdmissionPending` before anything has changed; who
sent the write waits for its signal and sends the same write again, and the plug-in then has its answer ready.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry.errors import Forbidden
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.resources import Resource

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class AdmissionPending(Exception):
    """An answer is on its way: wait for `ready`, then do the same again."""

    def __init__(self, ready: Signal[Any]) -> None:
        super().__init__("waiting for an admission webhook")
        self.ready = ready


@dataclass(slots=True)
class Attributes:
    """One write as admission sees it; `obj` may be changed in place by mutating plug-ins."""

    operation: Operation
    row: Resource
    namespace: str
    name: str
    user: User
    obj: Obj | None = None
    old: Obj | None = None
    subresource: str = ""
    dry_run: bool = False
    options: Obj = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    memo: dict[str, Any] = field(default_factory=dict)
    """What a plug-in wants to remember from `admit` to `validate`."""

    def is_for(self, group_resource: str, *operations: Operation, subresource: str = "") -> bool:
        return (
            self.subresource == subresource
            and self.row.group_resource == group_resource
            and (not operations or self.operation in operations)
        )

    def refusal(self, why: str) -> Forbidden:
        """`pods "web-" is forbidden: why`: as long as a name is not generated yet, what it will start with is named."""
        named = meta(self.obj or {})
        name = self.name or named.get("name") or named.get("generateName") or "Unknown"
        return Forbidden(self.row.group_resource, name, why)


class Plugin:
    """One admission plug-in. Raising an ApiError refuses the write."""

    name = ""

    def admit(self, attributes: Attributes) -> None:
        """Look at the write and change its object where this plug-in sees fit."""

    def validate(self, attributes: Attributes) -> None:
        """Look at the final object; nothing may be changed any more."""


class AdmissionChain:
    def __init__(self) -> None:
        self.plugins: list[Plugin] = []

    def admit(self, attributes: Attributes) -> None:
        for plugin in self.plugins:
            plugin.admit(attributes)

    def validate(self, attributes: Attributes) -> None:
        for plugin in self.plugins:
            plugin.validate(attributes)
