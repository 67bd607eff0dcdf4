"""The stages of an episode as a table: question, format of the answer, and the name of its time in results.

Every problem, healthy systems included, asks the same stages in the same words, so that neither their number nor their
text tells anything: by default `USUAL`. A run may select others, of any problem, always in the order of the table. The
no-op stage asks exactly what detection asks, before the fault is injected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srearena.conductor.errors import ProblemError
from srearena.conductor.problems.metadata import FAULT_TYPE_MEANINGS, SYSTEM_LEVEL_MEANINGS


@dataclass(frozen=True, slots=True)
class Stage:
    """One question to the agent."""

    name: str
    clock: str
    """The name of the time from opening to submission in results, such as TTD (time to detection)."""
    question: str
    example: str


def _meanings(labels: Mapping[Any, str]) -> str:
    return "; ".join(f"{label}: {meaning}" for label, meaning in labels.items())


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
        "Which components are at fault? Name the origin of the trouble, not everything that suffers from it: the "
        "object whose change would undo it (of any kind: a workload, Service, ConfigMap, policy, quota, role, webhook, "
        "node, custom resource, feature flag), or the component that misbehaves because of that object; where there "
        "are several independent causes, one for each. Answer with a list of names (name, kind/name, namespace/name or "
        "namespace/kind/name); an empty list says that nothing is.",
        'submit(["some-component"])',
    ),
    Stage(
        "analysis",
        "TTA",
        f"What kind of fault is it? Answer with the level of the system it is in ({_meanings(SYSTEM_LEVEL_MEANINGS)}) "
        f"and its type ({_meanings(FAULT_TYPE_MEANINGS)}).",
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
        "Repair the system so that its users are served again, then say that you are done. Leave a system as it is "
        "where nothing is wrong with it.",
        "submit()",
    ),
)
STAGES: dict[str, Stage] = {stage.name: stage for stage in _TABLE}
USUAL = ("detection", "localization", "mitigation")


def public_name(name: str) -> str:
    """The name of a stage for agents: the no-op stage looks like detection."""
    return "detection" if name == "noop" else name


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort stage names into the order of an episode; ProblemError for an unknown stage."""
    selected = set(names)
    unknown = sorted(selected - STAGES.keys())
    if unknown:
        raise ProblemError(f"no stage is called {unknown[0]!r}: choose from {', '.join(STAGES)}")
    return tuple(name for name in STAGES if name in selected)


def select_stages(requested: Sequence[str] | None) -> tuple[str, ...]:
    """The stages of a run: the requested ones, or the usual ones; the same for every problem."""
    return USUAL if requested is None else in_order(requested)
