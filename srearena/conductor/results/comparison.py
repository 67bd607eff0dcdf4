"""Two runs side by side: where they differ, problem by problem, and in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from srearena.conductor.results.store import totals

Documents = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Change:
    problem: str
    before: str
    after: str
    """How often each passed, as `1/3`; empty where a run does not have the problem."""

    @property
    def kind(self) -> str:
        if not self.before or not self.after:
            return "only in one"
        first, second = _share(self.before), _share(self.after)
        return "same" if first == second else "better" if second > first else "worse"


def compare(before: Documents, after: Documents) -> list[Change]:
    names = sorted({document["problem"] for document in (*before, *after)})
    return [Change(name, _passed(before, name), _passed(after, name)) for name in names]


def as_document(before: Documents, after: Documents) -> dict[str, Any]:
    changes = compare(before, after)
    return {
        "problems": [{"problem": c.problem, "before": c.before, "after": c.after, "change": c.kind} for c in changes],
        "before": totals(before),
        "after": totals(after),
    }


def _passed(documents: Documents, problem: str) -> str:
    outcomes = [document["outcome"] for document in documents if document["problem"] == problem]
    return f"{sum(outcome == 'pass' for outcome in outcomes)}/{len(outcomes)}" if outcomes else ""


def _share(text: str) -> float:
    passed, _, of = text.partition("/")
    return int(passed) / int(of)
