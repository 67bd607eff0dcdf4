"""Errors of this package, one type per thing a caller can do about it.

    SreArenaError                     the message can be printed as it is
    ├── InputError                    a path, option or file of the user is invalid: fix it and run again
    └── EvaluationError               base class of the following
        ├── UnreadableSubmission      an agent's output holds no diagnosis: it is graded zero, never raised to the user
        └── JudgeError                the model gave no verdict: the field stays empty, and the result names it
            └── JudgeRefused          the endpoint refuses all requests (key, model): do not retry

Every message says what happened, where, and what to do next.
"""

from __future__ import annotations

from srearena.errors import InputError, SreArenaError

__all__ = ["EvaluationError", "InputError", "JudgeError", "JudgeRefused", "UnreadableSubmission"]


class EvaluationError(SreArenaError):
    """Base class of the errors of this package."""


class UnreadableSubmission(EvaluationError):
    """The text holds no diagnosis that could be graded."""


class JudgeError(EvaluationError):
    """The judge gave no usable verdict after all retries."""


class JudgeRefused(JudgeError):
    """The endpoint refuses every request (bad key, unknown model)."""
