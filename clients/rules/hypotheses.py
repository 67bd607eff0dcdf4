"""Hypotheses: what may be at fault, how strongly the evidence speaks for it, and what would repair it.

A hypothesis is `CONFIRMED` where the cluster itself reports the reason or an object contradicts another, `LIKELY` where
a suspicious change meets a component that suffers, `POSSIBLE` where it meets one that does not, and a `SYMPTOM` where
something suffers and nothing tells why. A
caller that fails because its callee fails is explained away: only the deepest symptoms of a call chain remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class Strength(IntEnum):
    """How strongly the evidence speaks for a hypothesis."""

    SYMPTOM = 1
    POSSIBLE = 2
    LIKELY = 3
    CONFIRMED = 4


@dataclass(frozen=True, slots=True)
class Repair:
    """A kubectl command, and the one that takes it back (empty where taking it back makes no sense)."""

    command: str
    undo: str = ""


@dataclass(slots=True)
class Hypothesis:
    """A possible origin."""

    culprit: str
    """The object, as answers name it: namespace/Kind/name."""
    why: str
    strength: Strength
    repairs: list[Repair] = field(default_factory=list)
    """Commands that belong together."""
    components: frozenset[str] = frozenset()
    """Names of the workloads whose trouble it explains; by default the culprit's own name."""
    kind: str = "Misconfiguration"
    """The type of fault, for the analysis stage."""
    fails_by_itself: bool = False
    """A symptom that no other component can cause, such as a program that ends."""
    others: list[list[Repair]] = field(default_factory=list)
    """Other repairs, for when the first one does not help."""

    def __post_init__(self) -> None:
        if not self.components:
            self.components = frozenset({self.culprit.rpartition("/")[2]})

    @property
    def plans(self) -> list[list[Repair]]:
        """The repairs in the order in which they are tried."""
        return [plan for plan in (self.repairs, *self.others) if plan]


def reachable(start: str, calls: Mapping[str, Iterable[str]]) -> set[str]:
    """Everything that a component calls, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for callee in calls.get(waiting.pop(), ()):
            if callee not in found:
                found.add(callee)
                waiting.append(callee)
    return found - {start}


def explain_away(hypotheses: Iterable[Hypothesis], calls: Mapping[str, Iterable[str]]) -> list[Hypothesis]:
    """Drop symptoms of components that have an own or a called component's better explanation."""
    remaining = list(hypotheses)
    causes = {name for one in remaining if one.strength > Strength.SYMPTOM for name in one.components}
    suffering = {name for one in remaining for name in one.components}
    kept = []
    for one in remaining:
        if one.strength is Strength.SYMPTOM:
            below = set().union(*(reachable(name, calls) for name in one.components))
            if one.components & causes or below & (causes | suffering - one.components):
                # In a cycle of calls no member is deeper: all of them stay.
                back = {name for name in below & suffering if one.components & reachable(name, calls)}
                if one.components & causes or below & causes or (below & suffering) - back - one.components:
                    continue
        kept.append(one)
    return kept


def conclude(hypotheses: Iterable[Hypothesis], calls: Mapping[str, Iterable[str]]) -> list[Hypothesis]:
    """The origins: of the strongest evidence, one hypothesis per object."""
    remaining = explain_away(hypotheses, calls)
    strongest = max((one.strength for one in remaining), default=Strength.SYMPTOM)
    certain = {name for one in remaining if one.strength is Strength.CONFIRMED for name in one.components}
    by_culprit: dict[str, Hypothesis] = {}
    for one in sorted(remaining, key=lambda one: -one.strength):
        known = by_culprit.get(one.culprit)
        if known is not None:
            known.others += one.plans
            known.components |= one.components
            continue
        if one.strength is not strongest:
            # A second fault, unless what suffers is explained by a certain one.
            affected = one.components.union(*(reachable(name, calls) for name in one.components))
            second = one.strength is Strength.LIKELY or one.fails_by_itself
            if not second or affected & certain or not certain:
                continue
        by_culprit[one.culprit] = one
    return list(by_culprit.values())
