"""Variation: which arguments of a problem's constructor a seed draws, and from which values.

    class WrongDnsPolicy(InjectedProblem):
        varies = {"service": services, "nameserver": ("8.8.8.8", "1.1.1.1", "9.9.9.9")}

The arguments at registration are the catalogue's own choice, which `--fixed` gives. Everything else (remedy, roots,
explanation, oracles) follows from the arguments. A problem whose id names its target does not vary that target.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

Choice = Sequence[Any] | Callable[[Mapping[str, Any]], Sequence[Any]]
"""The values of one argument; a function gets the arguments drawn so far. No values: it stays as registered."""


def varied(kind: type[Problem], arguments: Mapping[str, Any], stream: random.Random) -> dict[str, Any]:
    """The constructor's arguments with what varies drawn from the stream, in the order of declaration."""
    drawn = dict(arguments)
    for name, choice in kind.varies.items():
        values = choice(drawn) if callable(choice) else choice
        if values:
            drawn[name] = stream.choice(values)
    return drawn
