"""Detection: whether something is wrong, answered with Yes or No.

Why it cannot be gamed: an agent that always says Yes fails on every no-op problem and in every no-op stage, and the
false-positive rate over a suite is reported with its score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from srearena.conductor.errors import BadSubmission
from srearena.conductor.oracles.base import Oracle, Verdict

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_YES = frozenset(("yes", "true"))
_NO = frozenset(("no", "false"))


def yes_or_no(submission: Any) -> bool:
    """Parse the answer into a truth value; BadSubmission for anything else."""
    if isinstance(submission, bool):
        return submission
    word = submission.strip().strip(".!\"'").lower() if isinstance(submission, str) else None
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise BadSubmission('this stage takes "Yes" or "No": submit("Yes") or submit("No")')


class DetectionOracle(Oracle):
    def __init__(self, problem: Problem, expected: bool | str = True) -> None:
        super().__init__(problem)
        self.expected = yes_or_no(expected)

    def evaluate(self, submission: Any) -> Verdict:
        answered = yes_or_no(submission)
        answer, right = ("Yes" if value else "No" for value in (answered, self.expected))
        return Verdict.of(answered is self.expected, f"answered {answer}, and it is {right}", answered=answer)
