"""sort, uniq and shuf."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.inputs import held_lines
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool

_NUMBER = re.compile(r"\s*(-?\d*\.?\d*)")
_HUMAN = {"": 0, "K": 1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5}


@dataclass(frozen=True, slots=True)
class _Key:
    start: int
    start_char: int
    end: int | None
    end_char: int
    flags: str


def _key(text: str) -> _Key:
    found = re.fullmatch(r"(\d+)(?:\.(\d+))?([a-zA-Z]*)(?:,(\d+)(?:\.(\d+))?([a-zA-Z]*))?", text)
    if found is None or int(found.group(1)) == 0:
        raise UsageError(f"invalid number at field start: invalid count at start of '{text}'")
    start, start_char, flags, end, end_char, end_flags = found.groups()
    return _Key(
        int(start), int(start_char or 1), int(end) if end else None, int(end_char or 0), flags + (end_flags or "")
    )


def _selected(line: str, key: _Key, separator: str | None) -> str:
    """The part of a line that a key looks at."""
    if separator is None:
        fields = [(found.start(), found.end()) for found in re.finditer(r"\s*\S+", line)]
    else:
        fields = []
        position = 0
        for part in line.split(separator):
            fields.append((position, position + len(part)))
            position += len(part) + len(separator)
    if key.start > len(fields):
        return ""
    begin = fields[key.start - 1][0]
    if key.start_char > 1 or "b" in key.flags:
        while separator is None and "b" in key.flags and begin < len(line) and line[begin].isspace():
            begin += 1
        begin += key.start_char - 1
    if key.end is None:
        return line[begin:]
    if key.end > len(fields):
        return line[begin:]
    first, last = fields[key.end - 1]
    return line[begin : first + key.end_char if key.end_char else last]


def _number(text: str) -> float:
    found = _NUMBER.match(text)
    try:
        return float(found.group(1)) if found else 0.0
    except ValueError:
        return 0.0


def _human(text: str) -> tuple[float, float]:
    found = re.match(r"\s*(-?\d*\.?\d*)([KkMGTP]?)", text)
    value = _number(text)
    power = _HUMAN[found.group(2)] if found else 0
    return (0.0 if value == 0 else float(power + 1) * (1 if value > 0 else -1), value)


def _version(text: str) -> list[tuple[int, int, str]]:
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|\D+", text)]


def _comparable(flags: str) -> Callable[[str], object]:
    def convert(text: str) -> object:
        if "f" in flags:
            text = text.upper()
        if "d" in flags:
            text = "".join(char for char in text if char.isalnum() or char.isspace())
        if "n" in flags or "g" in flags:
            return _number(text)
        if "h" in flags:
            return _human(text)
        if "V" in flags:
            return _version(text)
        if "M" in flags:
            months = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
            return months.index(text.strip()[:3].upper()) + 1 if text.strip()[:3].upper() in months else 0
        return text.lstrip() if "b" in flags else text

    return convert


_LONG = {
    "reverse": "r",
    "numeric-sort": "n",
    "unique": "u",
    "key=": "k",
    "field-separator=": "t",
    "human-numeric-sort": "h",
    "version-sort": "V",
    "ignore-case": "f",
    "stable": "s",
    "output=": "o",
    "check": "c",
}


@tool("sort")
async def sort(process: Process, args: list[str]) -> int:
    options = parse(args, "rnubfghdMVscCzmi", "ktoST", long=_LONG)
    separator = options.value("t") or None
    if separator is not None and len(separator) > 1:
        separator = "\0" if separator == "\\0" else "\t" if separator == "\\t" else separator
        if len(separator) > 1:
            raise UsageError(f"multi-character tab '{separator}'")
    general = "".join(letter for letter in "nfghdMVb" if letter in options)
    keys = [_key(text) for text in options.all("k")]
    lines, status = await held_lines(process, "sort", options.operands)
    if status:
        return 2
    # Sorting is work: n lines cost about n comparisons worth of time.
    await process.spend(max(0.00002, len(lines) * 1e-7))
    compare = _comparison(keys, separator, general, "r" in options, stable="s" in options or "u" in options)
    if {"c", "C"} & options.flags:
        for number, (before, after) in enumerate(pairwise(lines), 2):
            if compare(before, after) > 0:
                if "c" in options:
                    await process.error(
                        f"sort: {options.operands[0] if options.operands else '-'}:{number}: disorder: {after}\n"
                    )
                return 1
        return 0
    lines.sort(key=cmp_to_key(compare))
    if "u" in options:
        lines = [line for index, line in enumerate(lines) if index == 0 or compare(lines[index - 1], line) != 0]
    text = "".join(f"{line}\n" for line in lines)
    if "o" in options:
        process.files.write_bytes(options.value("o"), text.encode(errors="surrogateescape"))
    else:
        await process.write(text)
    return 0


def _comparison(
    keys: list[_Key], separator: str | None, general: str, reverse: bool, *, stable: bool
) -> Callable[[str, str], int]:
    rules: list[tuple[Callable[[str], str], Callable[[str], object], bool]] = []
    for key in keys:
        flags = key.flags if key.flags else general
        rules.append(
            (
                lambda line, key=key: _selected(line, key, separator),  # type: ignore[misc]
                _comparable(flags.replace("r", "")),
                "r" in key.flags or (not key.flags and reverse),
            )
        )
    if not rules:
        rules.append((lambda line: line, _comparable(general), reverse))

    def compare(left: str, right: str) -> int:
        for select, convert, backwards in rules:
            first, second = convert(select(left)), convert(select(right))
            if first != second:
                return (-1 if first < second else 1) * (-1 if backwards else 1)  # type: ignore[operator]
        if stable or left == right:
            return 0
        return (-1 if left < right else 1) * (-1 if reverse else 1)

    return compare


@tool("uniq")
async def uniq(process: Process, args: list[str]) -> int:
    options = parse(args, "cduiz", "fsw", long={"count": "c", "repeated": "d", "unique": "u", "ignore-case": "i"})
    lines, status = await held_lines(process, "uniq", options.operands[:1])
    skip_fields = max(0, options.number("f", 0, "number of fields to skip"))
    skip_chars = max(0, options.number("s", 0, "number of bytes to skip"))

    def visible(line: str) -> str:
        if skip_fields:
            line = re.sub(rf"^(?:\s*\S+){{0,{min(skip_fields, 100)}}}", "", line)
        line = line[skip_chars:]
        return line.lower() if "i" in options else line

    groups: list[tuple[str, int]] = []
    for line in lines:
        if groups and visible(groups[-1][0]) == visible(line):
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
        else:
            groups.append((line, 1))
    for line, count in groups:
        if ("d" in options and count < 2) or ("u" in options and count > 1):
            continue
        await process.write(f"{count:7d} {line}\n" if "c" in options else f"{line}\n")
    return status


@tool("shuf")
async def shuf(process: Process, args: list[str]) -> int:
    options = parse(args, "erz", "ni", long={"head-count=": "n", "input-range=": "i", "echo": "e"})
    if "i" in options:
        low, _, high = options.value("i").partition("-")
        if not low.isdigit() or not high.isdigit() or int(high) - int(low) > 1_000_000:
            raise UsageError(f"invalid input range: '{options.value('i')}'")
        lines, status = [str(number) for number in range(int(low), int(high) + 1)], 0
    elif "e" in options:
        lines, status = options.operands, 0
    else:
        lines, status = await held_lines(process, "shuf", options.operands)
    lines = list(lines)
    process.container.random.shuffle(lines)
    if "n" in options:
        lines = lines[: int(options.value("n")) if options.value("n").isdigit() else 0]
    await process.write("".join(f"{line}\n" for line in lines))
    return status
