"""The stages of an episode as a table: question, format of the answer, and the name of its time in results.

A problem declares its stages, always in this order; a run may select some of them. The no-op stage asks exactly what
detection asks, so an agent cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from srearena.conductor.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Stage:
    """One question to the agent."""

    name: str
    clock: str
    """The name of the time from opening to submission in results, such as TTD (time to detection)."""
    question: str
    example: str


_TABLE = (
    Stage(
        "noop",
        "TTN",
        "Is anything wrong with the system right now? Answer Yes or No.",
        'submit("Yes") or submit("No")',
    ),
    Stage(
        "detection",
        "TTD",
        "Is anything wrong with the system right now? Answer Yes or No.",
        'submit("Yes") or submit("No")',
    ),
    Stage(
        "localization",
        "TTL",
        "Which components are at fault? Name the origin of the trouble, not everything that suffers from it. Answer "
        "with a list of names; an empty list says that nothing is.",
        'submit(["some-component"])',
    ),
    Stage(
        "analysis",
        "TTA",
        "What kind of fault is it? Answer with the level of the system it is in (Hardware, Operating System, "
        "Virtualization, Application) and its type (Misconfiguration, Code Defect, Authentication Issue, "
        "Network/Storage Issue, Operation Error, Dependency Problem).",
        'submit({"system_level": "...", "fault_type": "..."})',
    ),
    Stage(
        "diagnosis",
        "TTR",
        "What happened, and why? Answer with the entities involved (`namespace/Kind/name`), which of them are "
        "independent causes, and how the trouble spread; or in plain words that name them.",
        'submit({"entities": [{"name": "some-namespace/Deployment/some-component", "contributing_factor": true}]})',
    ),
    Stage(
        "mitigation",
        "TTM",
        "Repair the system so that its users are served again, then say that you are done.",
        "submit()",
    ),
)
STAGES: dict[str, Stage] = {stage.name: stage for stage in _TABLE}
USUAL = ("detection", "localization", "mitigation")


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort stage names into the order of an episode; ProblemError for an unknown stage."""
    selected = set(names)
    unknown = sorted(selected - STAGES.keys())
    if unknown:
        raise ProblemError(f"no stage is called {unknown[0]!r}: choose from {', '.join(STAGES)}")
    return tuple(name for name in STAGES if name in selected)


def select_stages(offered: Sequence[str], requested: Sequence[str] | None) -> tuple[str, ...]:
    """The stages of a run: the requested ones, or all that the problem offers.

    Every problem supports the no-op stage, because it comes before the fault; it runs only on request.
    """
    if requested is None:
        return in_order(offered)
    names = in_order(requested)
    missing = [name for name in names if name not in offered and name != "noop"]
    if missing:
        raise ProblemError(f"this problem has no {missing[0]} stage: it offers {', '.join(offered)}")
    return names
