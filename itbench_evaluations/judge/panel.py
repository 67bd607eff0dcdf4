"""Combine several judges and votes into one verdict: the lower median, which no single generous voter can raise.

A voter that fails is omitted and named. A trial has a verdict if more than half of the requested votes arrived.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from itbench_evaluations.errors import JudgeError
from itbench_evaluations.grading import Case
from itbench_evaluations.judge import rubric
from itbench_evaluations.judge.client import JudgeClient


@dataclass(slots=True)
class Verdict:
    """The panel's verdict on one trial."""

    scores: dict[str, float] | None
    votes: dict[str, dict[str, float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def lower_median(values: Sequence[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]


class Panel:
    """All judges with all their votes."""

    def __init__(self, client: JudgeClient) -> None:
        self._client = client
        settings = client.settings
        self.voters = [(model, vote) for model in settings.models for vote in range(settings.votes)]

    @staticmethod
    def voter_name(model: str, vote: int) -> str:
        return model if vote == 0 else f"{model}#{vote + 1}"

    async def judge(self, case: Case) -> Verdict:
        """Judge a case's explanations; without any, no request is sent."""
        items = case.to_judge
        if not items:
            return Verdict({})
        question, components, removed = rubric.reasoning_question(case.view.truth, items)
        replies = await asyncio.gather(
            *(self._client.ask(question, rubric.read_verdicts, model, vote) for model, vote in self.voters),
            return_exceptions=True,
        )
        verdict = Verdict(None, removed=removed)
        for (model, vote), reply in zip(self.voters, replies, strict=True):
            if isinstance(reply, JudgeError):
                verdict.errors.append(f"{self.voter_name(model, vote)}: {reply}")
            elif isinstance(reply, BaseException):
                raise reply
            else:
                scores = {components[item_id]: score for item_id, score in reply.items()}
                verdict.votes[self.voter_name(model, vote)] = scores
        if 2 * len(verdict.votes) > len(self.voters):
            verdict.scores = {
                component: lower_median([vote[component] for vote in verdict.votes.values()])
                for component in components.values()
            }
        return verdict

    async def match(self, case: Case) -> tuple[dict[str, str], list[str]]:
        """Choose groups for names that no rule could match: only if most voters choose the same one."""
        names = case.unmatched[:50]
        if not names or not case.view.truth.groups:
            return {}, []
        question, ids = rubric.matching_question(case.view.truth, names)
        replies = await asyncio.gather(
            *(self._client.ask(question, rubric.read_matches, model, vote) for model, vote in self.voters),
            return_exceptions=True,
        )
        errors: list[str] = []
        ballots: dict[str, Counter[str]] = {name_id: Counter() for name_id in ids}
        for (model, vote), reply in zip(self.voters, replies, strict=True):
            if isinstance(reply, JudgeError):
                errors.append(f"{self.voter_name(model, vote)}: {reply}")
            elif isinstance(reply, BaseException):
                raise reply
            else:
                for name_id, group in reply.items():
                    if group is not None:
                        ballots[name_id][group] += 1
        groups: dict[str, str] = {}
        for name_id, ballot in ballots.items():
            if ballot and 2 * max(ballot.values()) > len(self.voters):
                groups[ids[name_id]] = ballot.most_common(1)[0][0]
        return groups, errors
