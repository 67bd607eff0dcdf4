"""What is known about a problem beside how to make it: for people who choose, and for oracles that grade.

Everything here but `id`, `application`, `level` and `difficulty` gives the answer away and stays with the conductor.
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
    """The answer to the analysis stage that goes with a level, where a problem does not say otherwise."""
    return _SYSTEM_LEVEL[level]


@dataclass(frozen=True, slots=True)
class Entity:
    """An object of the cluster, as ground truth names it."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)

    def as_group(self, *, root: bool) -> Group:
        return Group(str(self), self.kind, self.namespace or None, self.name, (), root)


@dataclass(frozen=True, slots=True)
class Summary:
    """A problem in a list. The first part is fit for anyone to see, `spoilers` is not."""

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
