"""The metadata of a problem: for lists of problems, and for oracles.

Everything except `id`, `application`, `level` and `difficulty` discloses the answer and stays with the conductor.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from srearena.ground_truth import Group

Level = Literal[
    "none", "application", "virtualization", "network", "node", "hardware", "operator", "metastable", "correlated"
]
Difficulty = Literal["easy", "medium", "hard"]
SystemLevel = Literal["Hardware", "Operating System", "Virtualization", "Application", "None"]
FaultType = Literal[
    "Misconfiguration",
    "Code Defect",
    "Authentication Issue",
    "Network/Storage Issue",
    "Operation Error",
    "Dependency Problem",
    "None",
]

_SYSTEM_LEVEL: dict[Level, SystemLevel] = {
    "none": "None",
    "application": "Application",
    "virtualization": "Virtualization",
    "network": "Virtualization",
    "node": "Operating System",
    "hardware": "Hardware",
    "operator": "Application",
    "metastable": "Application",
    "correlated": "Virtualization",
}


def usual_system_level(level: Level) -> SystemLevel:
    """The default answer to the analysis stage for a level."""
    return _SYSTEM_LEVEL[level]


@dataclass(frozen=True, slots=True)
class Entity:
    """An object of the cluster in the ground truth."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)

    def as_group(self, *, root: bool) -> Group:
        return Group(str(self), self.kind, self.namespace or None, self.name, (), root)


@dataclass(frozen=True, slots=True)
class Summary:
    """A problem in a list. Everything except `spoilers` may be shown to an agent."""

    id: str
    application: str
    level: Level
    difficulty: Difficulty
    stages: tuple[str, ...]
    runs_on: tuple[str, ...]
    spoilers: dict[str, Any] = field(default_factory=dict)

    def as_document(self, *, spoilers: bool = False) -> dict[str, Any]:
        document = asdict(self)
        hidden = document.pop("spoilers")
        return {**document, **hidden} if spoilers else document
