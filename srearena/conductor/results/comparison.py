"""Comparison of two runs, per problem and in total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from srearena.conductor.results.store import totals

Documents = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Change:
    """The results of one problem in two runs."""

    problem: str
    before: str
    after: str
    """Passed trials of all, as `1/3`; empty where the run does not have the problem. The same for `before`."""

    @property
    def kind(self) -> str:
        if not self.before or not self.after:
            return "only in one"
        first, second = _pass_rate(self.before), _pass_rate(self.after)
        return "same" if first == second else "better" if second > first else "worse"


def compare(before: Documents, after: Documents) -> list[Change]:
    names = sorted({document["problem"] for document in (*before, *after)})
    return [Change(name, _passed_of(before, name), _passed_of(after, name)) for name in names]


def as_document(before: Documents, after: Documents) -> dict[str, Any]:
    changes = compare(before, after)
    return {
        "problems": [{"problem": c.problem, "before": c.before, "after": c.after, "change": c.kind} for c in changes],
        "before": totals(before),
        "after": totals(after),
    }


def _passed_of(documents: Documents, problem: str) -> str:
    outcomes = [document["outcome"] for document in documents if document["problem"] == problem]
    return f"{sum(outcome == 'pass' for outcome in outcomes)}/{len(outcomes)}" if outcomes else ""


def _pass_rate(text: str) -> float:
    passed, _, of = text.partition("/")
    return int(passed) / int(of)
