"""cp, mv, install and dd: bytes from one place to another."""

from __future__ import annotations

import errno
import posixpath
import re

from srearena.cluster.embedded.machine.files.filesystem import FileStat
from srearena.cluster.embedded.machine.files.inodes import Executable, Symlink
from srearena.cluster.embedded.machine.files.streams import CHUNK, OpenFile
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.files import changed_mode, need_operand
from srearena.cluster.embedded.userland.tools.listing import human_size
from srearena.cluster.embedded.userland.tools.options import Options, UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import complain, speaks_busybox

DISK_RATE = 1e9
"""Bytes a second that a disk takes."""
_LONG = {
    "recursive": "r",
    "archive": "a",
    "force": "f",
    "preserve": "p",
    "no-clobber": "n",
    "no-dereference": "P",
    "target-directory=": "t",
    "verbose": "v",
    "no-target-directory": "T",
    "update": "u",
}


def _into(process: Process, source: str, place: str, options: Options) -> str:
    """The path a copy gets: inside the place if that is a directory."""
    if process.files.is_dir(place) and "T" not in options:
        return posixpath.join(place, posixpath.basename(source.rstrip("/")))
    return place


async def _split_operands(process: Process, options: Options) -> tuple[list[str], str] | None:
    if "t" in options:
        return options.operands, options.value("t")
    need_operand(options.operands, 2)
    sources, place = options.operands[:-1], options.operands[-1]
    if len(sources) > 1 and not process.files.is_dir(place):
        text = (
            f"can't create '{place}': Not a directory"
            if speaks_busybox(process)
            else f"target '{place}': No such file or directory"
        )
        await process.error(f"{process.name}: {text}\n")
        return None
    return sources, place


@tool("cp")
async def cp(process: Process, args: list[str]) -> int:
    options = parse(args, "rRafpnLPdviuHlsT", "tS", long=_LONG)
    split = await _split_operands(process, options)
    if split is None:
        return 1
    sources, place = split
    status = 0
    for source in sources:
        status = max(status, await _copy(process, source, _into(process, source, place, options), options, top=True))
    return status


async def _copy(process: Process, source: str, target: str, options: Options, *, top: bool) -> int:
    files = process.files
    recursive = bool({"r", "R", "a"} & options.flags)
    keep_links = bool({"P", "d", "a"} & options.flags) or (recursive and not top)
    try:
        found = files.stat(source, follow=not keep_links)
    except OSError as error:
        await complain(process, "cp", source, error)
        return 1
    await process.spend()
    if found.is_dir:
        return await _copy_folder(process, source, target, found, options, recursive)
    if "n" in options and files.exists(target, follow=False):
        return 0
    if files.exists(target) and files.stat(target).node is found.node:
        await process.error(f"cp: '{source}' and '{target}' are the same file\n")
        return 1
    try:
        if isinstance(found.node, Symlink):
            if files.exists(target, follow=False):
                files.unlink(target)
            files.symlink(found.node.target, target)
        elif isinstance(found.node, Executable):
            await _copy_binary(process, found, target)
        else:
            status = await _copy_content(process, source, target, found)
            if status:
                return status
        _keep_attributes(process, target, found, options)
    except OSError as error:
        await complain(process, "cp.create", target, error)
        return 1
    return 0


async def _copy_binary(process: Process, found: FileStat, target: str) -> None:
    """A copied program remains executable and runs the same code."""
    files = process.files
    files.write_bytes(target, b"", found.node.mode)
    place = files.filesystem.resolve(target, process)
    assert isinstance(found.node, Executable)
    copy = found.node.clone()
    space = place.mount.volume.space
    space.take(copy.size)
    copy.space = space
    copy.uid, copy.gid, copy.mtime = process.credentials.uid, process.credentials.gid, process.clock.now
    copy.mode &= ~process.umask
    files.filesystem.own_parent(place).put(place.name, copy)


async def _copy_content(process: Process, source: str, target: str, found: FileStat) -> int:
    try:
        reader = process.open(source, "r")
    except OSError as error:
        await complain(process, "cp.open", source, error)
        return 1
    writer: OpenFile | None = None
    try:
        writer = process.open(target, "w", found.node.mode & 0o777)
        try:
            while data := await reader.read(CHUNK):
                await writer.write(data)
                await process.spend()
        except OSError as error:
            situation = "cp.write" if error.errno in (errno.ENOSPC, errno.EFBIG) else "cp.open"
            await complain(process, situation, target if situation == "cp.write" else source, error)
            return 1
    finally:
        reader.release()
        if writer is not None:
            writer.release()
    return 0


async def _copy_folder(
    process: Process, source: str, target: str, found: FileStat, options: Options, recursive: bool
) -> int:
    if not recursive:
        text = (
            f"omitting directory '{source}'"
            if speaks_busybox(process)
            else f"-r not specified; omitting directory '{source}'"
        )
        await process.error(f"cp: {text}\n")
        return 1
    files = process.files
    if f"{files.canonical(target)}/".startswith(f"{found.path}/"):
        await process.error(f"cp: cannot copy a directory, '{source}', into itself, '{target}'\n")
        return 1
    try:
        names = files.listdir(source)
        if not files.is_dir(target):
            files.mkdir(target, found.node.mode & 0o777)
    except OSError as error:
        await complain(process, "cp.mkdir", target, error)
        return 1
    status = 0
    for name in names:
        copy = _copy(process, posixpath.join(source, name), posixpath.join(target, name), options, top=False)
        status = max(status, await copy)
    _keep_attributes(process, target, found, options)
    return status


def _keep_attributes(process: Process, target: str, found: FileStat, options: Options) -> None:
    if not {"p", "a"} & options.flags or found.is_link:
        return
    node = process.files.stat(target).node
    node.mtime = found.node.mtime
    process.files.chmod(target, found.node.mode)
    if process.credentials.can("CHOWN"):
        process.files.chown(target, found.node.uid, found.node.gid)


@tool("mv")
async def mv(process: Process, args: list[str]) -> int:
    options = parse(args, "fnviuT", "tS", long=_LONG)
    split = await _split_operands(process, options)
    if split is None:
        return 1
    sources, place = split
    files = process.files
    status = 0
    for source in sources:
        target = _into(process, source, place, options)
        if "n" in options and files.exists(target, follow=False):
            continue
        try:
            files.stat(source, follow=False)
        except OSError as error:
            await complain(process, "mv", source, error)
            status = 1
            continue
        try:
            files.rename(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                await complain(process, "mv.move", source, error)
                status = 1
                continue
            whole = Options(flags={"a"})
            copied = await _copy(process, source, target, whole, top=False)
            if copied == 0:
                await _discard(process, source)
            status = max(status, copied)
    return status


async def _discard(process: Process, path: str) -> None:
    if process.files.stat(path, follow=False).is_dir:
        for name in process.files.listdir(path):
            await _discard(process, posixpath.join(path, name))
        process.files.rmdir(path)
    else:
        process.files.unlink(path)


@tool("install")
async def install(process: Process, args: list[str]) -> int:
    options = parse(args, "dDpvcsT", "mogt", long={"mode=": "m", "directory": "d"})
    mode = options.value("m", "755")
    if "d" in options:
        for path in options.operands:
            process.files.mkdir(path, 0o755, parents=True)
        return 0
    split = await _split_operands(process, options)
    if split is None:
        return 1
    sources, place = split
    status = 0
    for source in sources:
        target = _into(process, source, place, options)
        if "D" in options:
            process.files.mkdir(posixpath.dirname(target) or ".", 0o755, parents=True)
        status = max(status, await _copy(process, source, target, options, top=True))
        if not status:
            process.files.chmod(target, changed_mode(mode, 0o755, False))
    return status


_UNITS = {
    "": 1,
    "c": 1,
    "w": 2,
    "b": 512,
    "k": 1024,
    "K": 1024,
    "kB": 1000,
    "M": 1024**2,
    "MB": 10**6,
    "G": 1024**3,
    "GB": 10**9,
}


def _amount(text: str, name: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([a-zA-Z]{0,2})", text)
    if found is None or found.group(2) not in _UNITS:
        raise UsageError(f"invalid number: '{text}'" if name else "invalid number")
    return int(found.group(1)) * _UNITS[found.group(2)]


@tool("dd")
async def dd(process: Process, args: list[str]) -> int:
    operands: dict[str, str] = {}
    for arg in args:
        name, equals, value = arg.partition("=")
        if not equals or name not in (
            "if",
            "of",
            "bs",
            "ibs",
            "obs",
            "count",
            "skip",
            "seek",
            "conv",
            "status",
            "oflag",
            "iflag",
        ):
            raise UsageError(f"unrecognized operand '{arg}'")
        operands[name] = value
    size = min(_amount(operands.get("bs", operands.get("ibs", "512")), "bs"), 64 * 1024 * 1024)
    if size == 0:
        raise UsageError("invalid number: '0'")
    count = _amount(operands["count"], "count") if "count" in operands else None
    reader: OpenFile | None = None
    writer: OpenFile | None = None
    try:
        try:
            reader = process.open(operands["if"], "r") if "if" in operands else process.fd(0).retain()
        except OSError as error:
            await complain(process, "dd", operands["if"], error)
            return 1
        try:
            append = "notrunc" in operands.get("conv", "") or "append" in operands.get("oflag", "")
            mode = "a" if append else "w"
            writer = process.open(operands["of"], mode) if "of" in operands else process.fd(1).retain()
        except OSError as error:
            await complain(process, "dd", operands["of"], error)
            return 1
        return await _transfer(process, reader, writer, operands, size, count)
    finally:
        for file in (reader, writer):
            if file is not None:
                file.release()


async def _transfer(
    process: Process, reader: OpenFile, writer: OpenFile, operands: dict[str, str], size: int, count: int | None
) -> int:
    started = process.clock.now
    for _ in range(_amount(operands.get("skip", "0"), "skip")):
        if not await reader.read(size):
            break
    full = partial = total = 0
    waiting = 0.0
    problem = ""
    while count is None or full + partial < count:
        data = await reader.read(size)
        if not data:
            break
        try:
            await writer.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            problem = str(error.strerror)
            break
        total += len(data)
        full += len(data) == size
        partial += len(data) != size
        waiting += len(data) / DISK_RATE
        if waiting >= 0.001:
            await process.sleep(waiting)
            waiting = 0.0
        await process.spend()
    if problem:
        name = operands.get("of", "standard output")
        await process.error(f"dd: error writing '{name}': {problem}\n")
    if operands.get("status") != "none":
        status, seconds = operands.get("status", ""), process.clock.now - started
        await process.error(_summary(process, full, partial, total, seconds, status, bool(problem)))
    return int(bool(problem))


def _summary(process: Process, full: int, partial: int, total: int, seconds: float, status: str, failed: bool) -> str:
    counts = f"{full + failed}+{partial} records in\n{full}+{partial} records out\n"
    if status == "noxfer":
        return counts
    seconds = max(seconds, 1e-6)
    rate = total / seconds
    if speaks_busybox(process):
        return (
            f"{counts}{total} bytes ({human_size(total)}B) copied, {seconds:.6f} seconds, {human_size(int(rate))}B/s\n"
        )
    size = "" if total < 1000 else f" ({_decimal(total)}, {human_size(total, 'KMGTP')}iB)"
    return f"{counts}{total} bytes{size} copied, {seconds:.6g} s, {_decimal(int(rate))}/s\n"


def _decimal(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.1f} {unit}" if value < 10 and unit != "B" else f"{value:.0f} {unit}"
        value /= 1000
    return ""
