"""The metadata of a problem: for lists of problems, and for oracles.

Everything except `id`, `application`, `level` and `difficulty` discloses the answer and stays with the conductor.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from srearena.ground_truth import Group
from srearena.ground_truth.kinds import CLUSTER_SCOPED

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

WORKLOAD_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")
"""Kinds that run programs: such an object is a component itself."""
SYSTEM_LEVEL_MEANINGS: dict[SystemLevel, str] = {
    "Hardware": "a part of a machine fails, such as a disk with bad sectors",
    "Operating System": "a node's kernel, clock, tables or kubelet, such as a full connection tracking table",
    "Virtualization": "what Kubernetes is told about running and connecting containers, in any of its objects, such as "
    "image, command, probes, limits, placement, volumes, Services, DNS, policies, roles, admission, custom resources",
    "Application": "the programs themselves, such as their code, the variables, files and flags that they read, their "
    "stored data, users and messages",
    "None": "nothing is wrong",
}
FAULT_TYPE_MEANINGS: dict[FaultType, str] = {
    "Misconfiguration": "a setting has a wrong value, whatever it affects, such as a wrong target port or a "
    "quota that is too small",
    "Code Defect": "a program does something wrong with right settings, such as a bug in a new build or behind a flag",
    "Authentication Issue": "a user, password, certificate or right is missing, wrong or expired, such as a "
    "revoked role",
    "Network/Storage Issue": "packets or data are lost, delayed or damaged, and no setting is the reason, such as a "
    "link with losses",
    "Operation Error": "somebody or something acted wrongly on a running system, such as deleting, stopping or "
    "scaling something, upgrading too far or overloading it",
    "Dependency Problem": "something that a component waits for does not exist or does not answer, such as a Service",
    "None": "nothing is wrong",
}
"""The labels of the analysis stage with their meanings, as the question states them."""
_SYSTEM_LEVELS: dict[Level, tuple[SystemLevel, ...]] = {
    "none": ("None",),
    "application": ("Application",),
    "virtualization": ("Virtualization",),
    "network": ("Virtualization",),
    "node": ("Operating System",),
    "hardware": ("Hardware",),
    "operator": ("Virtualization",),
    "metastable": ("Application",),
    "correlated": ("Virtualization", "Application"),
}
"""The answers to the analysis stage that agree with a level; the first is the default."""


def usual_system_level(level: Level) -> SystemLevel:
    """The default answer to the analysis stage for a level."""
    return _SYSTEM_LEVELS[level][0]


def contradiction(level: Level, system_level: SystemLevel, fault_type: FaultType) -> str:
    """What is wrong with the labels of a problem; "" where they agree with its level."""
    if system_level not in _SYSTEM_LEVELS[level]:
        return f"a problem of level {level!r} cannot have the system level {system_level!r}"
    if (fault_type == "None") != (level == "none"):
        return f"a problem of level {level!r} cannot have the fault type {fault_type!r}"
    return ""


@dataclass(frozen=True, slots=True)
class Entity:
    """An object of the cluster in the ground truth."""

    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def parse(cls, text: str, namespace: str) -> Entity:
        """Parse `Kind/name` (in `namespace`, unless the kind is cluster-scoped) or `namespace/Kind/name`."""
        *scope, kind, name = text.split("/")
        default = "" if kind in CLUSTER_SCOPED else namespace
        return cls(kind, name, scope[0] if scope else default)

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)

    def as_group(self, *, root: bool) -> Group:
        return Group(str(self), self.kind, self.namespace or None, self.name, (), root)


@dataclass(frozen=True, slots=True)
class Origin:
    """One independent cause of an incident: naming any of its members names it."""

    changed: tuple[Entity, ...]
    """The objects whose change undoes the incident; where there are several, all of them together."""
    misbehaving: tuple[Entity, ...] = ()
    """The components that misbehave because of it, where the changed objects are not components themselves."""
    contributing: tuple[Entity, ...] = ()
    """Objects that make it worse: an answer may name them in addition, and is not right with them alone."""

    @property
    def members(self) -> tuple[Entity, ...]:
        return tuple(dict.fromkeys((*self.changed, *self.misbehaving)))


@dataclass(frozen=True, slots=True)
class Summary:
    """A problem in a list. Everything except `spoilers` may be shown to an agent."""

    id: str
    application: str
    level: Level
    difficulty: Difficulty
    runs_on: tuple[str, ...]
    spoilers: dict[str, Any] = field(default_factory=dict)

    def as_document(self, *, spoilers: bool = False) -> dict[str, Any]:
        document = asdict(self)
        hidden = document.pop("spoilers")
        return {**document, **hidden} if spoilers else document
