"""What can go wrong here, one type per thing a caller can do about it.

    EvaluationError               the base: its text is fit to print as it stands
    ├── InputError                a path, flag or file of the user's is wrong: fix it and run again
    ├── UnreadableSubmission      an agent's output holds no diagnosis: it is graded zero, never raised to the user
    └── JudgeError                no verdict came from the model: the field stays empty, by name
        └── JudgeRefused          the endpoint will not serve us at all (key, model): asking again is pointless

Every message says what happened, where, and what to do next.
"""

from __future__ import annotations


class EvaluationError(Exception):
    """Base of everything this package raises on purpose."""


class InputError(EvaluationError):
    """Something the user gave us cannot be used."""


class UnreadableSubmission(EvaluationError):
    """The text holds no diagnosis that could be graded."""


class JudgeError(EvaluationError):
    """The judge gave no usable verdict, after every retry."""


class JudgeRefused(JudgeError):
    """The endpoint refuses every request (bad key, unknown model): stop asking."""
