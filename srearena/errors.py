"""The base class of errors that users can act on.

    SreArenaError                 its text says what happened, where, and what to do next
    ├── InputError                a path, option or file of the user is invalid: fix it and run again
    ├── ClusterError              a cluster cannot be started, reached or used (srearena.cluster.base)
    ├── SnapshotError             a recording cannot be read (srearena.snapshots.errors)
    └── ToolError                 a diagnostic tool cannot answer (sre_tools.errors)

The command line prints such an error as one line; any other exception is a bug and shows its traceback.
"""

from __future__ import annotations


class SreArenaError(Exception):
    """Base of every error a user can act on."""


class InputError(SreArenaError):
    """A path, option or file of the user is invalid."""


def one_line(problem: Exception) -> str:
    """What a library's error says, without line breaks; for YAML, the place and the reason alone."""
    mark, reason = getattr(problem, "problem_mark", None), getattr(problem, "problem", None)
    if mark is not None and reason:
        return f"line {mark.line + 1}, column {mark.column + 1}: {reason}"
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return " ".join(str(problem).split())
