"""Regular expressions over log lines: RE2 itself, since a query may run one over every line there is.

Time in proportion to the text is a must (whoever may query must not be able to hold the cluster up), and so is speed.
`network.patterns` promises the former for the small texts of a Corefile in plain Python; over some hundred thousand
lines it takes minutes, RE2 a tenth of a second. Complaints are in Go's words, which that module knows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from srearena.cluster.embedded.network.pattern_syntax import Parser, PatternError

__all__ = ["PatternError", "named_groups", "pattern"]

_MAX_MEMORY = 4 << 20
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = _MAX_MEMORY


@lru_cache(maxsize=512)
def pattern(text: str) -> Any:
    """A compiled expression over bytes: `search` and `match` as in `re`."""
    try:
        return re2.compile(text.encode(), _OPTIONS)
    except re2.error as problem:
        Parser(text).parse()
        raise PatternError(_words(problem), text) from problem


def named_groups(text: str) -> dict[str, int]:
    """The named groups of an expression, by number."""
    groups = pattern(text).groupindex
    return {name.decode() if isinstance(name, bytes) else name: number for name, number in groups.items()}


def _words(problem: Exception) -> str:
    said = problem.args[0] if problem.args else b""
    return (said.decode() if isinstance(said, bytes) else str(said)).split(":")[0]
