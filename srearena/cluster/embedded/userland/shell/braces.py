"""Brace expansion, bash's own: `{a,b}` and `{1..9..2}` on words before anything else happens to them."""

from __future__ import annotations

import re
from itertools import islice

from srearena.cluster.embedded.userland.shell.syntax import Literal, Part, Word

_SEQUENCE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?\Z")
MAX_WORDS = 10000
MAX_GROUPS = 20


def expand_braces(word: Word) -> list[Word]:
    """The words a word stands for; itself, where there are no braces to expand."""
    groups = sum(part.text.count("{") for part in word.parts if isinstance(part, Literal) and not part.quoted)
    if not 0 < groups <= MAX_GROUPS:
        return [word]
    # One unit per unquoted character or per part that is opaque to braces.
    units: list[str | Part] = []
    for part in word.parts:
        if isinstance(part, Literal) and not part.quoted:
            units.extend(part.text)
        else:
            units.append(part)
    return [_word(alternative) for alternative in _expand(units)[:MAX_WORDS]]


def _word(units: list[str | Part]) -> Word:
    parts: list[Part] = []
    for unit in units:
        if not isinstance(unit, str):
            parts.append(unit)
        elif parts and isinstance(parts[-1], Literal) and not parts[-1].quoted:
            parts[-1] = Literal(parts[-1].text + unit)
        else:
            parts.append(Literal(unit))
    return Word(tuple(parts))


def _expand(units: list[str | Part]) -> list[list[str | Part]]:
    for start, unit in enumerate(units):
        if unit != "{":
            continue
        end = _closing(units, start)
        if end is None:
            continue
        choices = _choices(units[start + 1 : end])
        if choices is None:
            continue
        tails = _expand(units[end + 1 :])
        heads = [expanded for choice in choices for expanded in _expand(choice)]
        combined = ([*units[:start], *head, *tail] for head in heads for tail in tails)
        return list(islice(combined, MAX_WORDS))
    return [units]


def _closing(units: list[str | Part], start: int) -> int | None:
    depth = 0
    for index in range(start, len(units)):
        depth += (units[index] == "{") - (units[index] == "}")
        if depth == 0:
            return index
    return None


def _choices(units: list[str | Part]) -> list[list[str | Part]] | None:
    """What is between the braces: alternatives, or a sequence; None where it is neither."""
    choices: list[list[str | Part]] = [[]]
    depth = 0
    for unit in units:
        depth += (unit == "{") - (unit == "}")
        if unit == "," and depth == 0:
            choices.append([])
        else:
            choices[-1].append(unit)
    if len(choices) > 1:
        return choices
    text = "".join(unit for unit in units if isinstance(unit, str))
    match = _SEQUENCE.match(text) if len(text) == len(units) else None
    return None if match is None else [list(item) for item in _sequence(*match.groups())]


def _sequence(first: str, last: str, step: str | None) -> list[str]:
    numeric = first.lstrip("-").isdigit() and last.lstrip("-").isdigit()
    if not numeric and (first.lstrip("-").isdigit() or last.lstrip("-").isdigit()):
        return [f"{{{first}..{last}}}"]
    low, high = (int(first), int(last)) if numeric else (ord(first), ord(last))
    stride = abs(int(step or 1)) or 1
    numbers = range(low, high + 1, stride) if low <= high else range(low, high - 1, -stride)
    width = max(len(first), len(last)) if numeric and ({first.lstrip("-")[:1], last.lstrip("-")[:1]} & {"0"}) else 0
    if numeric and all(len(bound.lstrip("-")) == 1 for bound in (first, last)):
        width = 0
    return [f"{value:0{width}d}" if numeric else chr(value) for value in numbers[:MAX_WORDS]]
