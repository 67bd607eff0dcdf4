"""Errors of CEL: of an expression that does not compile, and of one that cannot be evaluated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem of an expression, at an offset of its text."""

    offset: int
    message: str

    def text(self, source: str) -> str:
        """The problem as cel-go prints it: place, line and a caret under the column."""
        before = source[: self.offset]
        line = before.count("\n")
        column = len(before) - (before.rfind("\n") + 1)
        shown = source.split("\n")[line].replace("\t", " ")
        return f"ERROR: <input>:{line + 1}:{column + 1}: {self.message}\n | {shown}\n | {'.' * column}^"


class CompileError(ValueError):
    """The expression does not parse, or its types do not agree."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: issue.offset)
        super().__init__("\n".join(issue.text(source) for issue in self.issues))


class EvaluationError(ValueError):
    """The expression has no value for these variables."""


class CostExceeded(EvaluationError):
    """The evaluation took more steps than one expression may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")
