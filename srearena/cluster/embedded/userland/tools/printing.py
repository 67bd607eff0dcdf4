"""echo, printf, yes, seq and their like: tools that only print."""

from __future__ import annotations

import re

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.registry import tool

_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
}
_ESCAPE = re.compile(r"\\(?:(0[0-7]{0,3})|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.)|\Z)", re.DOTALL)
_DIRECTIVE = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?([a-zA-Z%])")
MAX_WIDTH = 65536


def unescape(text: str, *, octal_needs_zero: bool = True, plain: bool = False) -> tuple[bytes, bool]:
    """Backslash escapes as echo (or, without the zero, printf) reads them; True where `\\c` ended the output.

    `plain` is dash, which knows no hexadecimal.
    """
    result: list[bytes] = []
    position = 0
    for found in _ESCAPE.finditer(text):
        result.append(text[position : found.start()].encode(errors="surrogateescape"))
        position = found.end()
        zero, hexadecimal, octal, char = found.groups()
        if zero is not None:
            result.append(bytes((int(zero, 8) & 0xFF,)))
        elif hexadecimal is not None:
            result.append(found.group(0).encode() if plain else bytes((int(hexadecimal, 16),)))
        elif octal is not None:
            result.append(found.group(0).encode() if octal_needs_zero else bytes((int(octal, 8) & 0xFF,)))
        elif char == "c" and (octal_needs_zero or not plain):
            return b"".join(result), True
        else:
            shown = _ESCAPES.get(char or "", found.group(0))
            result.append(shown.encode(errors="surrogateescape"))
    result.append(text[position:].encode(errors="surrogateescape"))
    return b"".join(result), False


def echoed(args: list[str], flags: str, *, always_escape: bool) -> bytes:
    """What echo prints, given the flags it understands."""
    newline, escape = True, always_escape
    while args and len(args[0]) > 1 and args[0][0] == "-" and all(letter in flags for letter in args[0][1:]):
        for letter in args[0][1:]:
            if letter == "n":
                newline = False
            else:
                escape = letter == "e"
        args = args[1:]
    text = " ".join(args)
    stopped = False
    if escape:
        data, stopped = unescape(text, plain=always_escape)
    else:
        data = text.encode(errors="surrogateescape")
    return data if stopped or not newline else data + b"\n"


@tool("echo")
async def echo(process: Process, args: list[str]) -> int:
    await process.write(echoed(args, "neE", always_escape=False))
    return 0


class _Formatter:
    """printf: the format is used again as long as there are arguments."""

    def __init__(self, args: list[str], plain: bool) -> None:
        self.plain = plain
        self.format = args[0]
        self.args = args[1:]
        self.errors: list[str] = []
        self.stopped = False

    def result(self) -> bytes:
        output = bytearray()
        while True:
            before = len(self.args)
            output += self._once()
            if self.stopped or not self.args or len(self.args) == before:
                return bytes(output)

    def _once(self) -> bytes:
        output = bytearray()
        position = 0
        text = self.format
        while position < len(text) and not self.stopped:
            if text[position] == "%":
                found = _DIRECTIVE.match(text, position)
                if found is None:
                    self.errors.append(f"{text[position:]}: invalid directive")
                    self.stopped = True
                    break
                output += self._directive(found)
                position = found.end()
            else:
                end = text.find("%", position)
                end = len(text) if end < 0 else end
                data, self.stopped = unescape(text[position:end], octal_needs_zero=False, plain=self.plain)
                output += data
                position = end
        return bytes(output)

    def _take(self) -> str | None:
        return self.args.pop(0) if self.args else None

    def _size(self, text: str | None) -> int | None:
        if text == "*":
            return max(-MAX_WIDTH, min(MAX_WIDTH, self._integer(self._take() or "0")))
        return None if text is None else min(MAX_WIDTH, int(text))

    def _directive(self, found: re.Match[str]) -> bytes:
        flags, width_text, precision_text, kind = found.groups()
        if kind == "%":
            return b"%"
        width = self._size(width_text)
        precision = self._size(precision_text) if "." in found.group(0) else None
        if precision is None and "." in found.group(0):
            precision = 0
        if width is not None and width < 0:
            flags, width = flags + "-", -width
        argument = self._take()
        if kind == "b":
            data, self.stopped = unescape(argument or "", plain=self.plain)
            return data
        if kind in "sc":
            text = argument or ""
            text = text[:1] if kind == "c" else text if precision is None else text[:precision]
            return _padded(text, flags.replace("0", ""), width).encode(errors="surrogateescape")
        if kind in "diuxXo":
            return self._number(argument, flags, width, precision, kind).encode()
        if kind in "feEgG":
            return self._float(argument, flags, width, precision, kind).encode()
        if kind == "q":
            return _padded("'" + (argument or "").replace("'", "'\\''") + "'", flags, width).encode()
        self.errors.append(f"%{kind}: invalid directive")
        self.stopped = True
        return b""

    def _integer(self, text: str) -> int:
        if text[:1] in ("'", '"') and len(text) > 1:
            return ord(text[1])
        digits = text.strip()
        found = re.match(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)", digits)
        if found is None:
            if text:
                self.errors.append(f"{text}: expected numeric value")
            return 0
        if found.end() != len(digits):
            self.errors.append(f"{text}: not completely converted")
        body = found.group(0)
        sign = -1 if body.startswith("-") else 1
        body = body.lstrip("+-")[:30]
        base = 16 if body.lower().startswith("0x") else 8 if len(body) > 1 and body[0] == "0" else 10
        try:
            return sign * int(body, base)
        except ValueError:
            self.errors.append(f"{text}: not completely converted")
            return 0

    def _number(self, argument: str | None, flags: str, width: int | None, precision: int | None, kind: str) -> str:
        value = self._integer(argument or "")
        if kind not in "di" and value < 0:
            value += 2**64
        digits = format(abs(value), {"x": "x", "X": "X", "o": "o"}.get(kind, "d"))
        if precision is not None:
            digits = digits.rjust(precision, "0")
        if "#" in flags and value:
            digits = {"x": "0x", "X": "0X", "o": "0"}.get(kind, "") + digits
        sign = (
            "-" if value < 0 else "+" if "+" in flags and kind in "di" else " " if " " in flags and kind in "di" else ""
        )
        if "0" in flags and "-" not in flags and precision is None and width is not None:
            return sign + digits.rjust(width - len(sign), "0")
        return _padded(sign + digits, flags, width)

    def _float(self, argument: str | None, flags: str, width: int | None, precision: int | None, kind: str) -> str:
        try:
            value = float(argument or "0")
        except ValueError:
            self.errors.append(f"{argument}: expected numeric value")
            value = 0.0
        text = format(value, f".{6 if precision is None else min(precision, 100)}{kind}")
        if "+" in flags and value >= 0:
            text = "+" + text
        if "0" in flags and "-" not in flags and width is not None:
            sign = text[0] if text[0] in "+-" else ""
            return sign + text.removeprefix(sign).rjust(width - len(sign), "0")
        return _padded(text, flags, width)


def _padded(text: str, flags: str, width: int | None) -> str:
    if width is None:
        return text
    return text.ljust(width) if "-" in flags else text.rjust(width)


def format_text(args: list[str], *, plain: bool = False) -> tuple[bytes, list[str]]:
    """What printf prints for a format and its arguments, and what it has to complain about."""
    formatter = _Formatter(args, plain)
    return formatter.result(), formatter.errors


@tool("printf")
async def printf(process: Process, args: list[str]) -> int:
    if not args:
        await process.error("printf: missing operand\nTry 'printf --help' for more information.\n")
        return 1
    text, errors = format_text(args)
    await process.write(text)
    for error in errors:
        await process.error(f"printf: {error}\n")
    return int(bool(errors))


@tool("yes")
async def yes(process: Process, args: list[str]) -> int:
    line = (" ".join(args) or "y") + "\n"
    block = line.encode(errors="surrogateescape") * max(1, 4096 // len(line))
    while True:
        await process.write(block)
        await process.spend()


def _decimal(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e18 else None


@tool("seq")
async def seq(process: Process, args: list[str]) -> int:
    separator = "\n"
    equal_width = False
    numbers: list[str] = []
    words = iter(args)
    for word in words:
        if word == "-w":
            equal_width = True
        elif word == "-s":
            separator = next(words, "\n")
        elif word.startswith("-s") and len(word) > 2:
            separator = word[2:]
        else:
            numbers.append(word)
    values = [_decimal(text) for text in numbers]
    bad = next((text for text, value in zip(numbers, values, strict=True) if value is None), None)
    if not 1 <= len(numbers) <= 3 or bad is not None:
        what = (
            "missing operand"
            if not numbers
            else f"invalid floating point argument: '{bad}'"
            if bad
            else "extra operand"
        )
        await process.error(f"seq: {what}\nTry 'seq --help' for more information.\n")
        return 1
    known = [value for value in values if value is not None]
    first = known[0] if len(known) > 1 else 1
    step = known[1] if len(known) > 2 else 1
    last = known[-1]
    if step == 0:
        await process.error(
            f"seq: invalid Zero increment value: '{numbers[1]}'\nTry 'seq --help' for more information.\n"
        )
        return 1
    digits = max((len(text.partition(".")[2]) for text in numbers[:-1]), default=0)
    width = max(len(_number_text(first, digits, 0)), len(_number_text(last, digits, 0))) if equal_width else 0
    await _count(process, first, step, last, digits, width, separator)
    return 0


def _number_text(value: float, digits: int, width: int) -> str:
    text = f"{value:.{digits}f}" if digits else str(int(value))
    return text.rjust(width, "0")


async def _count(
    process: Process, first: float, step: float, last: float, digits: int, width: int, separator: str
) -> None:
    """Print in blocks, so that a long sequence yields to its reader."""
    index = 0
    block: list[str] = []
    value = first
    margin = abs(step) * 1e-9 if isinstance(step, float) else 0
    started = False
    while value <= last + margin if step > 0 else value >= last - margin:
        block.append((separator if started else "") + _number_text(value, digits, width))
        started = True
        index += 1
        value = first + index * step
        if len(block) >= 1000:
            await process.write("".join(block))
            await process.spend()
            block = []
    if started:
        await process.write("".join(block) + "\n")
