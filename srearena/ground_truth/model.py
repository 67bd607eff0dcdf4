"""The ground truth of one incident, whatever it was read from.

Plain data: groups of objects, which of them are root causes, aliases, how the failure propagated, and how the source
describes the fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Group:
    """Objects treated as one: selected by exact `name`, by `filters` on the name, or both."""

    id: str
    kind: str | None
    namespace: str | None
    name: str | None
    filters: tuple[str, ...]
    root: bool


@dataclass(frozen=True, slots=True)
class Propagation:
    """A step of the failure from one group to another, by their ids."""

    source: str
    target: str
    condition: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """The injected fault, as the source describes it."""

    group_id: str | None
    kind: str | None
    name: str | None
    condition: str
    mechanism: str
    category: str
    change: str


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that the fault causes."""

    name: str
    group_id: str | None
    description: str


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Root causes of an incident, how the failure propagated, and what it was."""

    incident_id: str
    format: str
    """`flat`, `v1`, `v2`, or `problem` for a live problem."""
    groups: tuple[Group, ...]
    aliases: tuple[tuple[str, ...], ...] = ()
    propagations: tuple[Propagation, ...] = ()
    faults: tuple[Fault, ...] = ()
    alerts: tuple[Alert, ...] = ()
    remedies: tuple[str, ...] = ()
    explanation: str = ""
    """What happened, in a sentence or two; only live problems have it, as well as the two classifications below."""
    system_level: str = ""
    fault_type: str = ""
    warnings: tuple[str, ...] = ()
    """What looks wrong in the file; `itbench-eval lint` shows it."""
    path: str = ""

    @property
    def roots(self) -> tuple[Group, ...]:
        """The groups that are root causes."""
        return tuple(group for group in self.groups if group.root)

    @property
    def is_noop(self) -> bool:
        """Whether nothing was wrong: the right answer is to blame nothing."""
        return not self.groups

    def group(self, group_id: str) -> Group | None:
        """The group with an id."""
        return next((group for group in self.groups if group.id == group_id), None)

    def as_document(self) -> dict[str, Any]:
        """The part that is written to the results of an episode; of groups that are aliases, the first is the root."""
        others = {name for names in self.aliases for name in names[1:]}
        return {
            "roots": [group.id for group in self.roots if group.id not in others],
            "aliases": [list(names) for names in self.aliases],
            "propagation": [[step.source, step.target] for step in self.propagations],
            "explanation": self.explanation,
            "system_level": self.system_level,
            "fault_type": self.fault_type,
        }
