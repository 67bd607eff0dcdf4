"""cut, paste and tr: columns and characters."""

from __future__ import annotations

import re

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.inputs import LineReader, held_lines, opened
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool

MAX_FIELD = 100_000


def _ranges(text: str) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{0,9})(-?)(\d{0,9})", part)
        if found is None or part in ("", "-"):
            raise UsageError(f"invalid field value '{part}'")
        low = int(found.group(1) or 1)
        high = low if not found.group(2) else int(found.group(3) or MAX_FIELD)
        if low == 0:
            raise UsageError("fields are numbered from 1")
        if high < low:
            raise UsageError("invalid decreasing range")
        result.append((low, min(high, MAX_FIELD)))
    return result


def _chosen(count: int, ranges: list[tuple[int, int]], complement: bool) -> list[int]:
    indexes = {i for low, high in ranges for i in range(low, min(high, count) + 1)}
    return [i for i in range(1, count + 1) if (i in indexes) is not complement]


@tool("cut")
async def cut(process: Process, args: list[str]) -> int:
    options = parse(
        args,
        "nsz",
        "bcdf",
        long={"delimiter=": "d", "fields=": "f", "characters=": "c", "bytes=": "b", "only-delimited": "s"}
        | {"output-delimiter=": "output", "complement": "complement"},
    )
    kinds = [kind for kind in "bcf" if kind in options]
    if len(kinds) != 1:
        raise UsageError("you must specify a list of bytes, characters, or fields")
    kind = kinds[0]
    ranges = _ranges(options.value(kind))
    delimiter = options.value("d", "\t")
    if len(delimiter) != 1:
        raise UsageError("the delimiter must be a single character")
    joiner = options.value("output") if "output" in options else delimiter
    status = 0
    for path in options.operands or ["-"]:
        file = await opened(process, "cut", path)
        if file is None:
            status = 1
            continue
        lines = LineReader(process, file)
        while (raw := await lines.next()) is not None:
            line = raw.decode(errors="surrogateescape").removesuffix("\n")
            if kind != "f":
                text = "".join(line[i - 1] for i in _chosen(len(line), ranges, "complement" in options))
            elif delimiter not in line:
                if "s" in options:
                    continue
                text = line
            else:
                parts = line.split(delimiter)
                text = joiner.join(parts[i - 1] for i in _chosen(len(parts), ranges, "complement" in options))
            await process.write(f"{text}\n")
        file.release()
    return status


@tool("paste")
async def paste(process: Process, args: list[str]) -> int:
    options = parse(args, "sz", "d", long={"delimiters=": "d", "serial": "s"})
    delimiters = options.value("d", "\t").replace("\\n", "\n").replace("\\t", "\t") or "\t"
    columns: list[list[str]] = []
    for path in options.operands or ["-"]:
        lines, status = await held_lines(process, "paste", [path])
        if status:
            return status
        columns.append(lines)
    if "s" in options:
        for lines in columns:
            text = "".join(
                line + (delimiters[i % len(delimiters)] if i < len(lines) - 1 else "") for i, line in enumerate(lines)
            )
            await process.write(f"{text}\n")
        return 0
    for row in range(max(map(len, columns), default=0)):
        cells = [lines[row] if row < len(lines) else "" for lines in columns]
        text = "".join(
            cell + (delimiters[i % len(delimiters)] if i < len(cells) - 1 else "") for i, cell in enumerate(cells)
        )
        await process.write(f"{text}\n")
    return 0


_CLASSES = {
    "alpha": "".join(chr(c) for c in range(128) if chr(c).isalpha()),
    "digit": "0123456789",
    "alnum": "".join(chr(c) for c in range(128) if chr(c).isalnum()),
    "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "lower": "abcdefghijklmnopqrstuvwxyz",
    "space": "\t\n\v\f\r ",
    "blank": "\t ",
    "punct": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "cntrl": "".join(chr(c) for c in (*range(32), 127)),
    "print": "".join(chr(c) for c in range(32, 127)),
    "graph": "".join(chr(c) for c in range(33, 127)),
    "xdigit": "0123456789ABCDEFabcdef",
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}


def _set(text: str) -> str:
    """The characters a tr set stands for."""
    units: list[str] = []
    index = 0
    while index < len(text):
        found = re.compile(r"\[:(\w+):\]").match(text, index)
        if found is not None and found.group(1) in _CLASSES:
            units.extend(_CLASSES[found.group(1)])
            index = found.end()
            continue
        char, index = _character(text, index)
        if index + 1 < len(text) and text[index] == "-":
            last, index = _character(text, index + 1)
            if last < char:
                raise UsageError(f"range-endpoints of '{char}-{last}' are in reverse collating sequence order")
            units.extend(chr(code) for code in range(ord(char), min(ord(last), ord(char) + 65536) + 1))
        else:
            units.append(char)
    return "".join(units)


def _character(text: str, index: int) -> tuple[str, int]:
    if text[index] != "\\" or index + 1 >= len(text):
        return text[index], index + 1
    octal = re.compile(r"\\([0-7]{1,3})").match(text, index)
    if octal is not None:
        return chr(int(octal.group(1), 8) & 0xFF), octal.end()
    return _ESCAPES.get(text[index + 1], text[index + 1]), index + 2


@tool("tr")
async def tr(process: Process, args: list[str]) -> int:
    options = parse(args, "cCdst", long={"complement": "c", "delete": "d", "squeeze-repeats": "s"})
    sets = [_set(text) for text in options.operands]
    if not sets or (len(sets) == 1 and not {"d", "s"} & options.flags):
        after = f" after '{options.operands[0]}'" if sets else ""
        raise UsageError(f"missing operand{after}")
    first = frozenset(sets[0])
    complement = bool({"c", "C"} & options.flags)
    translate = len(sets) == 2 and "d" not in options
    table: dict[str, str] = {}
    if translate:
        if not sets[1]:
            raise UsageError("when not truncating set1, string2 must be non-empty")
        padded = sets[1] + sets[1][-1] * max(0, len(sets[0]) - len(sets[1]))
        table = dict(reversed(list(zip(sets[0], padded, strict=False))))
    squeezed = frozenset(sets[-1]) if "s" in options else frozenset()
    squeeze_complement = complement and len(sets) == 1
    last = ""
    while data := await process.read():
        result: list[str] = []
        for char in data.decode("latin-1"):
            inside = (char in first) is not complement
            if "d" in options and inside:
                continue
            if translate:
                char = (sets[1][-1] if inside else char) if complement else table.get(char, char)
            if "s" in options and char == last and (char in squeezed) is not squeeze_complement:
                continue
            last = char
            result.append(char)
        await process.write("".join(result).encode("latin-1", "replace"))
        await process.spend()
    return 0
