"""The text filters that may follow a pipe, implemented here so that none of them can open a file.

They support the options that are common with kubectl; any other option is refused with a message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import groupby

from srearena.conductor.errors import BadAction
from srearena.regular_expressions import PatternError, literal, pattern

Filter = Callable[[Sequence[str], list[str]], list[str]]
_LONGEST_PATTERN = 500


def _options(
    name: str, arguments: Sequence[str], flags: str, values: str
) -> tuple[set[str], dict[str, str], list[str]]:
    """Parse a command line into flags, options with values, and operands."""
    present: set[str] = set()
    options: dict[str, str] = {}
    operands: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            operands += words
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in flags:
                present.add(letter)
            elif letter in values:
                options[letter] = letters or (words.pop(0) if words else "")
                letters = ""
            elif letter.isdigit() and "n" in values:
                options["n"], letters = letter + letters, ""
            else:
                raise BadAction(f"{name} does not support -{letter} here")
    return present, options, operands


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as problem:
        raise BadAction(f"{name} needs a number, not {text!r}") from problem


def _no_files(name: str, operands: Sequence[str]) -> None:
    if operands:
        raise BadAction(f"{name} reads only its pipe, no files")


def grep(arguments: Sequence[str], lines: list[str]) -> list[str]:
    flags, values, operands = _options("grep", arguments, "ivEFconwqP", "eABCm")
    patterns = [values["e"]] if "e" in values else operands[:1]
    _no_files("grep", operands if "e" in values else operands[1:])
    if not patterns:
        raise BadAction("grep needs a pattern")
    if len(patterns[0]) > _LONGEST_PATTERN:
        raise BadAction(f"grep takes a pattern of at most {_LONGEST_PATTERN} characters")
    expression = literal(patterns[0]) if "F" in flags else patterns[0]
    if not flags & {"E", "F", "P"}:
        # Basic regular expressions escape what extended ones use.
        expression = re.sub(r"\\([|+?(){}])", r"\1", expression)
    if "w" in flags:
        expression = rf"\b(?:{expression})\b"
    try:
        finder = pattern(f"(?i){expression}" if "i" in flags else expression)
    except PatternError as problem:
        raise BadAction(f"grep cannot compile the pattern {patterns[0]!r}: {problem}") from problem
    if "o" in flags:
        return [match.groups[0] for line in lines for match in finder.find_all(line) if match.groups[0]]
    hits = [number for number, line in enumerate(lines) if finder.matches(line) != ("v" in flags)]
    if "m" in values:
        hits = hits[: _number("grep", values["m"])]
    if "c" in flags:
        return [str(len(hits))]
    before = _number("grep", values.get("B", values.get("C", "0")))
    after = _number("grep", values.get("A", values.get("C", "0")))
    shown = _with_context(hits, before, after, len(lines)) if before or after else hits
    return [f"{n + 1}:{lines[n]}" if "n" in flags else lines[n] for n in shown]


def _with_context(hits: Sequence[int], before: int, after: int, count: int) -> list[int]:
    """The lines around hits, each once, in time linear in their number."""
    shown: list[int] = []
    for hit in hits:
        first = max(hit - before, shown[-1] + 1 if shown else 0)
        shown += range(first, min(hit + after + 1, count))
    return shown


def head(arguments: Sequence[str], lines: list[str]) -> list[str]:
    _, values, operands = _options("head", arguments, "", "n")
    _no_files("head", operands)
    return lines[: _number("head", values.get("n", "10"))]


def tail(arguments: Sequence[str], lines: list[str]) -> list[str]:
    _, values, operands = _options("tail", arguments, "", "n")
    _no_files("tail", operands)
    number = values.get("n", "10")
    if number.startswith("+"):
        return lines[max(_number("tail", number[1:]) - 1, 0) :]
    count = _number("tail", number)
    return lines[-count:] if count else []


def sort(arguments: Sequence[str], lines: list[str]) -> list[str]:
    flags, values, operands = _options("sort", arguments, "rnuh", "kt")
    _no_files("sort", operands)
    field = _number("sort", re.split(r"[,.nr]", values["k"])[0]) if "k" in values else 0

    def key(line: str) -> tuple[float, str]:
        parts = line.split(values.get("t"))
        text = line if not field else parts[field - 1] if field <= len(parts) else ""
        number = re.match(r"\s*-?\d+(\.\d+)?", text) if flags & {"n", "h"} else None
        return (float(number.group()) if number else 0.0, text)

    ordered = sorted(lines, key=key, reverse="r" in flags)
    return [line for line, _ in groupby(ordered)] if "u" in flags else ordered


def uniq(arguments: Sequence[str], lines: list[str]) -> list[str]:
    flags, _, operands = _options("uniq", arguments, "cdu", "")
    _no_files("uniq", operands)
    runs = [(line, len(list(run))) for line, run in groupby(lines)]
    if "d" in flags:
        runs = [(line, count) for line, count in runs if count > 1]
    if "u" in flags:
        runs = [(line, count) for line, count in runs if count == 1]
    return [f"{count:7d} {line}" if "c" in flags else line for line, count in runs]


def wc(arguments: Sequence[str], lines: list[str]) -> list[str]:
    flags, _, operands = _options("wc", arguments, "lwc", "")
    _no_files("wc", operands)
    counts = {
        "l": len(lines),
        "w": sum(len(line.split()) for line in lines),
        "c": sum(len(line.encode()) + 1 for line in lines),
    }
    return [" ".join(str(counts[letter]) for letter in "lwc" if letter in (flags or set("lwc")))]


def cut(arguments: Sequence[str], lines: list[str]) -> list[str]:
    _, values, operands = _options("cut", arguments, "s", "dfc")
    _no_files("cut", operands)
    spans = values.get("f") or values.get("c")
    if not spans:
        raise BadAction("cut needs -f or -c")
    separator = values.get("d", "\t")
    if "f" in values and len(separator) != 1:
        raise BadAction("the delimiter of cut is a single character")
    ranges = _ranges(spans)
    cut_lines = []
    for line in lines:
        parts: Sequence[str] = line.split(separator) if "f" in values else line
        selected = [part for first, last in ranges for part in parts[first - 1 : last]]
        cut_lines.append((separator if "f" in values else "").join(selected))
    return cut_lines


def _ranges(spans: str) -> list[tuple[int, int | None]]:
    """The selected positions in their order, each once, as cut selects them; None for the end of the line."""
    bounds: list[tuple[int, float]] = []
    for span in spans.split(","):
        first, dash, last = span.partition("-")
        start = _number("cut", first) if first else 1
        end = (_number("cut", last) if last else math.inf) if dash else start
        if start < 1 or end < start:
            raise BadAction(f"cut cannot use the range {span!r}")
        bounds.append((start, end))
    merged: list[tuple[int, float]] = []
    for start, end in sorted(bounds):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return [(start, None if end == math.inf else int(end)) for start, end in merged]


def tr(arguments: Sequence[str], lines: list[str]) -> list[str]:
    flags, _, operands = _options("tr", arguments, "ds", "")
    text = "\n".join(lines)
    sets = [operand.encode().decode("unicode_escape") for operand in operands]
    if "d" in flags and len(sets) == 1:
        text = text.translate(dict.fromkeys(map(ord, sets[0])))
    elif "s" in flags and len(sets) == 1:
        text = re.sub(f"([{re.escape(sets[0])}])\\1+", r"\1", text)
    elif len(sets) == 2 and sets[1]:
        padded = sets[1] + sets[1][-1] * (len(sets[0]) - len(sets[1]))
        text = text.translate({ord(a): b for a, b in zip(sets[0], padded, strict=False)})
    else:
        raise BadAction("tr needs two sets of characters, or -d or -s and one")
    return text.splitlines()


FILTERS: dict[str, Filter] = {
    "grep": grep,
    "egrep": lambda arguments, lines: grep(["-E", *arguments], lines),
    "head": head,
    "tail": tail,
    "sort": sort,
    "uniq": uniq,
    "wc": wc,
    "cut": cut,
    "tr": tr,
    "cat": lambda arguments, lines: lines,
}
