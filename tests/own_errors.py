"""Exceptions of our own code that were logged and survived: a test in which that happens fails.

A test that provokes such an error says so: `@pytest.mark.expected_errors("pattern", ...)`. Every logged error must
match one of the patterns, and every pattern must match an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

OURS = ("srearena", "sre_tools", "itbench_evaluations", "itbench_leaderboard", "zero", "clients", "website", "asyncio")


class ErrorLog(logging.Handler):
    """Collects what our packages log as errors, or with an exception."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self._texts: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in OURS and (record.levelno >= logging.ERROR or record.exc_info):
            self._texts.append(self.format(record))

    def take(self) -> list[str]:
        """The errors since the last call."""
        taken, self._texts = self._texts, []
        return taken


def complaints(errors: Iterable[str], expected: Iterable[str]) -> list[str]:
    """What is wrong with the errors of a test, given the patterns it declares."""
    errors, expected = list(errors), list(expected)
    unexpected = [text for text in errors if not any(re.search(pattern, text) for pattern in expected)]
    missing = [
        f"no error matches {pattern!r}" for pattern in expected if not any(re.search(pattern, e) for e in errors)
    ]
    return unexpected + missing
