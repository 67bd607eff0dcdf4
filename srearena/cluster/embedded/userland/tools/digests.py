"""Checksums, encodings and comparisons: md5sum, sha256sum, base64, od, hexdump, xxd, cmp, diff."""

from __future__ import annotations

import base64 as base64_codec
import binascii
import difflib
import hashlib
import re

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.inputs import opened, whole
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.reading import count_of
from srearena.cluster.embedded.userland.tools.registry import tool

_ALGORITHMS = {"md5sum": "md5", "sha1sum": "sha1", "sha256sum": "sha256"}


@tool("md5sum", "sha1sum", "sha256sum")
async def checksum(process: Process, args: list[str]) -> int:
    options = parse(args, "bctswz", long={"check": "c", "binary": "b", "status": "s", "quiet": "quiet"})
    algorithm = _ALGORITHMS[process.name]
    status = 0
    for path in options.operands or ["-"]:
        file = await opened(process, process.name, path)
        if file is None:
            status = 1
            continue
        try:
            data = await whole(process, file)
        except OSError as error:
            await process.error(f"{process.name}: {path}: {error.strerror}\n")
            status = 1
            continue
        finally:
            file.release()
        if "c" in options:
            status = max(status, await _check(process, algorithm, data.decode(errors="replace")))
        else:
            digest = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
            await process.write(f"{digest}  {path}\n")
    return status


async def _check(process: Process, algorithm: str, listing: str) -> int:
    failed = 0
    for line in listing.splitlines():
        found = re.fullmatch(r"([0-9a-fA-F]+)[ *]+(.+)", line)
        if found is None:
            continue
        try:
            data = process.files.read_bytes(found.group(2))
        except OSError as error:
            await process.error(f"{process.name}: {found.group(2)}: {error.strerror}\n")
            failed += 1
            continue
        good = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest() == found.group(1).lower()
        failed += not good
        await process.write(f"{found.group(2)}: {'OK' if good else 'FAILED'}\n")
    if failed:
        await process.error(f"{process.name}: WARNING: {failed} computed checksum did NOT match\n")
    return int(failed > 0)


@tool("base64")
async def base64(process: Process, args: list[str]) -> int:
    options = parse(args, "dDi", "w", long={"decode": "d", "wrap=": "w", "ignore-garbage": "i"})
    file = await opened(process, "base64", options.operands[0] if options.operands else "-")
    if file is None:
        return 1
    data = await whole(process, file)
    file.release()
    if {"d", "D"} & options.flags:
        text = b"".join(data.split())
        try:
            await process.write(base64_codec.b64decode(text, validate=True))
        except binascii.Error:
            good = re.match(rb"(?:[A-Za-z0-9+/]{4})*", text)
            await process.write(base64_codec.b64decode(good.group()) if good else b"")
            await process.error("base64: invalid input\n")
            return 1
        return 0
    width = count_of(options.value("w", "76"), "columns")
    encoded = base64_codec.b64encode(data).decode()
    if width == 0:
        await process.write(encoded)
        return 0
    await process.write("".join(f"{encoded[i : i + width]}\n" for i in range(0, len(encoded), width)))
    return 0


def _printable(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)


@tool("xxd", "hexdump", "od")
async def dump(process: Process, args: list[str]) -> int:
    options = parse(args, "CcbxdoavpruiEe", "nsAtNjglw")
    file = await opened(process, process.name, options.operands[0] if options.operands else "-")
    if file is None:
        return 1
    data = await whole(process, file, 1024 * 1024)
    file.release()
    limit = options.value("n") or options.value("N") or (options.value("l") if process.name == "xxd" else "")
    if limit.isdigit():
        data = data[: int(limit)]
    name = process.name if process.name in ("xxd", "hexdump", "od") else "hexdump"
    if name == "xxd" and "p" in options:
        text = data.hex()
        await process.write("".join(f"{text[i : i + 60]}\n" for i in range(0, len(text), 60)))
        return 0
    for offset in range(0, len(data), 16):
        await process.write(
            _dump_line(name, options.flags, options.value("t"), options.value("A"), offset, data[offset : offset + 16])
        )
    if name != "xxd":
        end = "" if options.value("A") == "n" else f"{len(data):07o}\n" if name == "od" else f"{len(data):08x}\n"
        await process.write(end)
    return 0


def _dump_line(name: str, flags: set[str], kind: str, address: str, offset: int, row: bytes) -> str:
    if name == "xxd":
        pairs = " ".join(row[i : i + 2].hex() for i in range(0, len(row), 2))
        return f"{offset:08x}: {pairs:<39}  {_printable(row)}\n"
    if name == "hexdump" and "C" in flags:
        left = " ".join(f"{byte:02x}" for byte in row[:8])
        right = " ".join(f"{byte:02x}" for byte in row[8:])
        return f"{offset:08x}  {left:<23}  {right:<23}  |{_printable(row)}|\n"
    prefix = "" if address == "n" else f"{offset:07o}"
    if name == "od" and ("c" in flags or kind.startswith("c")):
        names = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
        cells = (names.get(byte) or (chr(byte) if 32 <= byte < 127 else f"{byte:03o}") for byte in row)
        return prefix + "".join(f"{cell:>4}" for cell in cells) + "\n"
    if name == "od" and kind.startswith("x1"):
        return prefix + "".join(f" {byte:02x}" for byte in row) + "\n"
    if name == "od" and (kind.startswith(("u1", "d1")) or "b" in flags):
        shape = "{:4d}" if kind else " {:03o}"
        return prefix + "".join(shape.format(byte) for byte in row) + "\n"
    words = [int.from_bytes(row[i : i + 2], "little") for i in range(0, len(row), 2)]
    if name == "od":
        return prefix + "".join(f" {word:06o}" for word in words) + "\n"
    return f"{offset:07x} " + " ".join(f"{word:04x}" for word in words) + "\n"


async def _two_files(process: Process, operands: list[str]) -> tuple[bytes, bytes] | None:
    if len(operands) != 2:
        raise UsageError(f"missing operand after '{operands[-1] if operands else process.name}'")
    contents: list[bytes] = []
    for path in operands:
        file = await opened(process, process.name, path)
        if file is None:
            return None
        contents.append(await whole(process, file))
        file.release()
    return contents[0], contents[1]


@tool("cmp")
async def cmp(process: Process, args: list[str]) -> int:
    options = parse(args, "sl", long={"silent": "s", "quiet": "s"})
    pair = await _two_files(process, options.operands)
    if pair is None:
        return 2
    first, second = pair
    if first == second:
        return 0
    if "s" not in options:
        place = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
        if place is None:
            short = options.operands[0] if len(first) < len(second) else options.operands[1]
            await process.error(f"cmp: EOF on {short}\n")
        else:
            line = first[:place].count(b"\n") + 1
            await process.write(f"{options.operands[0]} {options.operands[1]} differ: byte {place + 1}, line {line}\n")
    return 1


@tool("diff")
async def diff(process: Process, args: list[str]) -> int:
    options = parse(args, "uqrNwbiaB", "UL", long={"unified": "u", "brief": "q", "recursive": "r"})
    pair = await _two_files(process, options.operands)
    if pair is None:
        return 2
    first, second = (data.decode(errors="replace").splitlines() for data in pair)
    if first == second:
        return 0
    left, right = options.operands
    if "q" in options:
        await process.write(f"Files {left} and {right} differ\n")
        return 1
    await process.spend(len(first) * 1e-6 + len(second) * 1e-6)
    if "u" in options or process.container.program.family.dialect == "busybox":
        lines = difflib.unified_diff(first, second, left, right, lineterm="")
        await process.write("".join(f"{line}\n" for line in lines))
        return 1
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        letter = {"replace": "c", "delete": "d", "insert": "a"}[tag]
        await process.write(f"{_span(i1, i2)}{letter}{_span(j1, j2)}\n")
        await process.write("".join(f"< {line}\n" for line in first[i1:i2]))
        if tag == "replace":
            await process.write("---\n")
        await process.write("".join(f"> {line}\n" for line in second[j1:j2]))
    return 1


def _span(start: int, end: int) -> str:
    if end - start == 0:
        return str(start)
    return str(start + 1) if end - start == 1 else f"{start + 1},{end}"
