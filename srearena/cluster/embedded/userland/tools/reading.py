"""Tools that show files: cat, head, tail, wc, tee and their like."""

from __future__ import annotations

import re

from srearena.cluster.embedded.machine.files.file_view import RegularFile
from srearena.cluster.embedded.machine.files.streams import CHUNK, OpenFile
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.inputs import LineReader, ending, held_lines, opened, whole
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import complain, speaks_busybox

FOLLOW_INTERVAL = 1.0


@tool("cat")
async def cat(process: Process, args: list[str]) -> int:
    options = parse(args, "AbeEnstTuv", long={"number": "n", "show-all": "A", "squeeze-blank": "s"})
    status = 0
    number = 0
    for path in options.operands or ["-"]:
        file = await opened(process, "cat", path)
        if file is None:
            status = 1
            continue
        try:
            if options.flags - {"u"}:
                number = await _decorated(process, file, options.flags, number)
            else:
                while data := await file.read(CHUNK):
                    await process.write(data)
                    await process.spend()
        except BrokenPipeError:
            raise
        except OSError as error:
            text = (
                f"cat: read error: {error.strerror}\n"
                if speaks_busybox(process)
                else f"cat: {path}: {error.strerror}\n"
            )
            await process.error(text)
            status = 1
        finally:
            file.release()
    return status


async def _decorated(process: Process, file: OpenFile, flags: set[str], number: int) -> int:
    lines = LineReader(process, file)
    blank = False
    while (line := await lines.next()) is not None:
        empty = line == b"\n"
        if "s" in flags and empty and blank:
            continue
        blank = empty
        body, end = (line[:-1], b"\n") if line.endswith(b"\n") else (line, b"")
        if flags & {"A", "t", "T"}:
            body = body.replace(b"\t", b"^I")
        if flags & {"A", "v", "e", "t"}:
            body = re.sub(rb"[\x00-\x08\x0b-\x1f]", lambda m: b"^" + bytes((m.group()[0] + 64,)), body)
        if flags & {"A", "e", "E"} and end:
            end = b"$\n"
        if ("b" in flags and not empty) or ("n" in flags and "b" not in flags):
            number += 1
            body = f"{number:6d}\t".encode() + body
        await process.write(body + end)
    return number


@tool("tac")
async def tac(process: Process, args: list[str]) -> int:
    lines, status = await held_lines(process, "tac", args)
    await process.write("".join(f"{line}\n" for line in reversed(lines)))
    return status


@tool("rev")
async def rev(process: Process, args: list[str]) -> int:
    lines, status = await held_lines(process, "rev", args)
    await process.write("".join(f"{line[::-1]}\n" for line in lines))
    return status


_SUFFIXES = {"": 1, "b": 512, "k": 1024, "K": 1024, "m": 1024**2, "M": 1024**2, "G": 1024**3}


def count_of(text: str, what: str) -> int:
    found = re.fullmatch(r"([-+]?)(\d{1,15})([bkKmMG]?)", text)
    if found is None:
        raise UsageError(f"invalid number of {what}: '{text}'")
    return int(found.group(2)) * _SUFFIXES[found.group(3)]


def _old_style(args: list[str]) -> list[str]:
    """`-5` and `+5` for `-n 5` and `-n +5`."""
    changed: list[str] = []
    for index, arg in enumerate(args):
        if re.fullmatch(r"-\d+", arg) and (index == 0 or args[index - 1] not in ("-n", "-c")):
            changed += ["-n", arg[1:]]
        elif re.fullmatch(r"\+\d+", arg) and index == 0:
            changed += ["-n", arg]
        else:
            changed.append(arg)
    return changed


_LONG = {"lines=": "n", "bytes=": "c", "quiet": "q", "silent": "q", "verbose": "v", "follow": "f", "retry": "F"}


def _header(path: str, first: bool) -> str:
    return f"{'' if first else chr(10)}==> {'standard input' if path == '-' else path} <==\n"


@tool("head")
async def head(process: Process, args: list[str]) -> int:
    options = parse(_old_style(args), "qvz", "nc", long=_LONG)
    by_bytes = "c" in options
    text = options.value("c") if by_bytes else options.value("n", "10")
    count = count_of(text, "bytes" if by_bytes else "lines")
    all_but = text.startswith("-")
    status = 0
    paths = options.operands or ["-"]
    for index, path in enumerate(paths):
        file = await opened(process, "head", path)
        if file is None:
            status = 1
            continue
        try:
            if (len(paths) > 1 or "v" in options) and "q" not in options:
                await process.write(_header(path, index == 0))
            if all_but:
                data = await whole(process, file)
                kept = data[:-count] if by_bytes and count else data
                if not by_bytes:
                    lines = data.splitlines(keepends=True)
                    kept = b"".join(lines[: max(0, len(lines) - count)])
                await process.write(kept)
            elif by_bytes:
                while count > 0 and (data := await file.read(min(count, CHUNK))):
                    count -= len(data)
                    await process.write(data)
            else:
                await _first_lines(process, file, count)
        except BrokenPipeError:
            raise
        except OSError as error:
            await process.error(f"head: error reading '{path}': {error.strerror}\n")
            status = 1
        finally:
            file.release()
    return status


async def _first_lines(process: Process, file: OpenFile, count: int) -> None:
    lines = LineReader(process, file)
    for _ in range(count):
        line = await lines.next()
        if line is None:
            return
        await process.write(line)


@tool("tail")
async def tail(process: Process, args: list[str]) -> int:
    options = parse(_old_style(args), "fFqvz", "ncs", long=_LONG)
    by_bytes = "c" in options
    text = options.value("c") if by_bytes else options.value("n", "10")
    count = count_of(text, "bytes" if by_bytes else "lines")
    follow = bool({"f", "F"} & options.flags)
    status = 0
    paths = options.operands or ["-"]
    files: list[tuple[str, OpenFile]] = []
    try:
        for path in paths:
            file = await opened(process, "tail", path)
            if file is None:
                status = 1
                continue
            if (len(paths) > 1 or "v" in options) and "q" not in options:
                await process.write(_header(path, not files))
            files.append((path, file))
            from_start = text.startswith("+")
            data = await (whole(process, file) if from_start or by_bytes else ending(process, file, count))
            await process.write(_last_part(data, from_start, by_bytes, count))
        if follow and files:
            await _follow(process, files, by_name="F" in options)
    except BrokenPipeError:
        raise
    except OSError as error:
        await process.error(f"tail: error reading '{paths[0]}': {error.strerror}\n")
        status = 1
    finally:
        for _, file in files:
            file.release()
    return status


def _last_part(data: bytes, from_start: bool, by_bytes: bool, count: int) -> bytes:
    if by_bytes:
        return data[max(0, count - 1) :] if from_start else data[-count:] if count else b""
    lines = data.splitlines(keepends=True)
    if from_start:
        return b"".join(lines[max(0, count - 1) :])
    return b"".join(lines[-count:]) if count else b""


async def _follow(process: Process, files: list[tuple[str, OpenFile]], *, by_name: bool) -> None:
    """Show what is appended; with -F also after the file was replaced."""
    current = files[-1][0]
    while True:
        await process.sleep(FOLLOW_INTERVAL)
        for index, (path, file) in enumerate(files):
            if isinstance(file, RegularFile) and file.offset > file.node.size:
                await process.error(f"tail: {path}: file truncated\n")
                file.offset = 0
            while data := await file.read(CHUNK):
                if path != current:
                    await process.write(_header(path, False))
                    current = path
                await process.write(data)
            if by_name and isinstance(file, RegularFile) and _was_replaced(process, path, file):
                await process.error(f"tail: '{path}' has been replaced;  following new file\n")
                files[index] = (path, process.open(path, "r"))
                file.release()


def _was_replaced(process: Process, path: str, file: RegularFile) -> bool:
    return process.files.is_file(path) and process.files.stat(path).node is not file.node


@tool("wc")
async def wc(process: Process, args: list[str]) -> int:
    options = parse(
        args, "clwmL", long={"lines": "l", "words": "w", "bytes": "c", "chars": "m", "max-line-length": "L"}
    )
    wanted = [letter for letter in "lwmcL" if letter in options] or ["l", "w", "c"]
    paths = options.operands or ["-"]
    status = 0
    rows: list[tuple[list[int], str]] = []
    for path in paths:
        file = await opened(process, "wc", path)
        if file is None:
            status = 1
            continue
        try:
            counts = await _counts(process, file)
        except OSError as error:
            await complain(process, "wc", path, error)
            status = 1
            continue
        finally:
            file.release()
        rows.append(([counts[letter] for letter in wanted], path if options.operands else ""))
    if len(rows) > 1:
        totals = [
            max(c) if k == "L" else sum(c) for k, c in zip(wanted, zip(*(r[0] for r in rows), strict=True), strict=True)
        ]
        rows.append((totals, "total"))
    await process.write(_wc_table(rows, busybox=speaks_busybox(process), from_stdin=not options.operands))
    return status


async def _counts(process: Process, file: OpenFile) -> dict[str, int]:
    counts = dict.fromkeys("lwmcL", 0)
    in_word = False
    column = 0
    while data := await file.read(CHUNK):
        counts["c"] += len(data)
        counts["l"] += data.count(b"\n")
        words = data.split()
        counts["w"] += len(words) - (in_word and not data[:1].isspace() and bool(words))
        in_word = not data[-1:].isspace()
        counts["m"] += len(data.decode(errors="replace"))
        pieces = data.decode(errors="replace").split("\n")
        for index, piece in enumerate(pieces):
            column = column + len(piece) if index == 0 else len(piece)
            counts["L"] = max(counts["L"], column)
        await process.spend()
    return counts


def _wc_table(rows: list[tuple[list[int], str]], *, busybox: bool, from_stdin: bool) -> str:
    if busybox:
        width = 9 if rows and len(rows[0][0]) > 1 else 0
    elif rows and len(rows[0][0]) == 1 and len(rows) == 1:
        width = 0
    elif from_stdin:
        width = 7
    else:
        width = max((len(str(value)) for counts, _ in rows for value in counts), default=1)
    return "".join(
        f"{' '.join(f'{v:{width}d}' for v in counts)}{' ' + name if name else ''}\n" for counts, name in rows
    )


@tool("tee")
async def tee(process: Process, args: list[str]) -> int:
    options = parse(args, "aip", long={"append": "a", "ignore-interrupts": "i"})
    status = 0
    files: list[tuple[str, OpenFile]] = []
    for path in options.operands:
        try:
            files.append((path, process.open(path, "a" if "a" in options else "w")))
        except OSError as error:
            await complain(process, "tee", path, error)
            status = 1
    try:
        while data := await process.read():
            await process.write(data)
            for path, file in list(files):
                try:
                    await file.write(data)
                except OSError as error:
                    await complain(process, "tee", path, error)
                    status = 1
                    files.remove((path, file))
                    file.release()
            await process.spend()
    finally:
        for _, file in files:
            file.release()
    return status


@tool("nl")
async def nl(process: Process, args: list[str]) -> int:
    options = parse(args, "p", "bwsv")
    lines, status = await held_lines(process, "nl", options.operands)
    every = options.value("b") == "a"
    number = 0
    for line in lines:
        if line or every:
            number += 1
            await process.write(f"{number:6d}\t{line}\n")
        else:
            await process.write(f"       {line}\n")
    return status


@tool("fold")
async def fold(process: Process, args: list[str]) -> int:
    options = parse(args, "sb", "w")
    width = max(1, count_of(options.value("w", "80"), "columns"))
    lines, status = await held_lines(process, "fold", options.operands)
    for line in lines:
        while len(line) > width:
            cut = line.rfind(" ", 0, width) + 1 if "s" in options else 0
            cut = cut or width
            await process.write(line[:cut] + "\n")
            line = line[cut:]
        await process.write(line + "\n")
    return status


@tool("more", "less")
async def pager(process: Process, args: list[str]) -> int:
    return await cat(process, [arg for arg in args if not arg.startswith("-")])


@tool("strings")
async def strings(process: Process, args: list[str]) -> int:
    options = parse(args, "afo", "n")
    least = count_of(options.value("n", "4"), "bytes")
    for path in options.operands or ["-"]:
        file = await opened(process, "strings", path)
        if file is None:
            return 1
        data = await whole(process, file)
        file.release()
        for found in re.findall(rb"[\x20-\x7e\t]{%d,}" % max(1, min(least, 1000)), data):
            await process.write(found + b"\n")
    return 0
