"""Errors of LogQL queries.

QueryError               refused with status 400; the text is Loki's
├── SyntaxProblem        it cannot be read
├── StageProblem         it can be read, but one of its stages cannot be carried out
└── PipelineProblem      a line could not be turned into a number
"""

from __future__ import annotations


class QueryError(ValueError):
    """The query failed; the text is Loki's."""


class SyntaxProblem(QueryError):
    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        place = f"at line {line}, col {column}" if line or column else ""
        super().__init__(f"parse error {place}: {message}")


class StageProblem(QueryError):
    """An error of one stage; `of` adds the text of the stage."""

    def of(self, stage: str) -> SyntaxProblem:
        return SyntaxProblem(f"stage '{stage}' : {self}")


class PipelineProblem(QueryError):
    """A sample whose line met an error on its way; naming the error in a label filter skips such lines."""

    def __init__(self, kind: str, series: str) -> None:
        super().__init__(
            f"pipeline error: '{kind}' for series: '{series}'.\n"
            f'Use a label filter to intentionally skip this error. (e.g | __error__!="{kind}").\n'
            'To skip all potential errors you can match empty errors.(e.g __error__="")\n'
            'The label filter can also be specified after unwrap. (e.g | unwrap latency | __error__="" )\n'
        )
