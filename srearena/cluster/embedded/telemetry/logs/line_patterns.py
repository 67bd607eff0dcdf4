"""Regular expressions that capture from log lines: a query may run one over every line stored."""

from __future__ import annotations

from srearena.regular_expressions import Pattern, PatternError, pattern

_MAX_PROGRAM = 1000
"""Instructions of an expression with groups: unlike a mere search, capturing takes time in proportion to them."""


def line_pattern(text: str) -> Pattern:
    """The expression compiled, or a PatternError where it is none or too large to run over every line."""
    expression = pattern(text)
    if expression.program.groups and expression.program.programsize > _MAX_PROGRAM:
        raise PatternError("expression too large", text[:32])
    return expression
