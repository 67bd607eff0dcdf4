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

__all__ = ["PatternError", "named_groups", "pattern", "presence"]

_MAX_MEMORY = 32 << 20
_MAX_PROGRAM = 1000
"""Instructions of an expression that captures: unlike mere presence, capturing takes time in proportion to them."""


def _options(*, captures: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.never_capture = not captures
    return options


_CAPTURING, _LOOKING = _options(captures=True), _options(captures=False)


@lru_cache(maxsize=256)
def pattern(text: str) -> Any:
    """A compiled expression over bytes: `search`, `sub` and so on as in `re`."""
    compiled = _compiled(text, _CAPTURING)
    if compiled.groups and compiled.programsize > _MAX_PROGRAM:
        raise PatternError("expression too large", text[:32])
    return compiled


@lru_cache(maxsize=256)
def presence(text: str) -> Any:
    """As `pattern`, only to see whether there is a match: its groups capture nothing."""
    return _compiled(text, _LOOKING)


def _compiled(text: str, options: Any) -> Any:
    try:
        return re2.compile(text.encode(), options)
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
