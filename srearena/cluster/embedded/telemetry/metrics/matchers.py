"""Label matchers and their regular expressions.

Expressions are Go's (RE2), anchored at both ends, and matched in time proportional to the text (see
`srearena.regular_expressions`), so that no query can block the cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from srearena.cluster.embedded.go_text import quoted
from srearena.regular_expressions import Pattern, PatternError, pattern

__all__ = ["Matcher", "PatternError", "anchored"]

_ALTERNATIVES = re.compile(r"[\w|\-/ :,]*", re.ASCII)


@lru_cache(maxsize=512)
def anchored(expression: str) -> Pattern:
    """Compile an anchored expression; PatternError where it is invalid."""
    pattern(expression)  # so that `a)(b` does not become valid by the parentheses around it
    return pattern(f"^(?s:{expression})$")


@dataclass(frozen=True, slots=True)
class Matcher:
    name: str
    operator: str
    """One of =, !=, =~, !~."""
    value: str
    _literals: frozenset[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.is_regular:
            if _ALTERNATIVES.fullmatch(self.value):
                object.__setattr__(self, "_literals", frozenset(self.value.split("|")))
            else:
                anchored(self.value)

    @property
    def is_regular(self) -> bool:
        return self.operator in ("=~", "!~")

    @property
    def is_negative(self) -> bool:
        return self.operator in ("!=", "!~")

    @property
    def literals(self) -> frozenset[str] | None:
        """The only values that can match, where they can be enumerated."""
        if self.operator == "=":
            return frozenset((self.value,))
        return self._literals if self.operator == "=~" else None

    def holds(self, value: str) -> bool:
        if not self.is_regular:
            matched = value == self.value
        elif self._literals is not None:
            matched = value in self._literals
        else:
            matched = anchored(self.value).matches(value)
        return matched is not self.is_negative

    def __str__(self) -> str:
        return f"{self.name}{self.operator}{quoted(self.value)}"
