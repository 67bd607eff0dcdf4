"""ls and stat: files as rows of facts."""

from __future__ import annotations

import posixpath
from datetime import UTC, datetime

from srearena.cluster.embedded.machine.files.filesystem import FileStat
from srearena.cluster.embedded.machine.files.inodes import Device, Symlink
from srearena.cluster.embedded.machine.processes.accounts import Accounts
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.options import Options, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import complain

_HALF_YEAR = 182.62 * 86400


def accounts_of(process: Process) -> Accounts:
    return process.container.program.accounts(process.container.files)


def mode_text(found: FileStat) -> str:
    """`drwxr-xr-x` and so on."""
    mode = found.node.mode
    letters = [letter if mode & (0o400 >> index) else "-" for index, letter in enumerate("rwxrwxrwx")]
    for bit, place, letter in ((0o4000, 2, "s"), (0o2000, 5, "s"), (0o1000, 8, "t")):
        if mode & bit:
            letters[place] = letter if letters[place] == "x" else letter.upper()
    return found.node.letter + "".join(letters)


def human_size(size: int, units: str = "KMGTP") -> str:
    """1.5K, 23M: rounded up, as ls and du do."""
    if size < 1024:
        return str(size)
    value = float(size)
    for unit in units:
        value /= 1024
        if value < 9.95:
            tenths = -(-int(value * 1000) // 100) / 10
            return f"{tenths:.1f}{unit}" if tenths < 10 else f"10{unit}"
        if value < 1023.5 or unit == units[-1]:
            return f"{-(-int(value * 1000) // 1000)}{unit}"
    return str(size)


def _when(moment: float, now: float) -> str:
    date = datetime.fromtimestamp(moment, UTC)
    if abs(now - moment) < _HALF_YEAR and moment <= now:
        return date.strftime("%b %e %H:%M")
    return date.strftime("%b %e  %Y")


_LONG = {
    "all": "a",
    "almost-all": "A",
    "human-readable": "h",
    "recursive": "R",
    "reverse": "r",
    "directory": "d",
    "size": "s",
    "inode": "i",
    "color?=": "color",
    "full-time": "full-time",
}


@tool("ls")
async def ls(process: Process, args: list[str]) -> int:
    options = parse(args, "1aAlhdRrtSsinFLpoGkCxmqHTUZ", "wI", long=_LONG)
    status = 0
    files: list[tuple[str, FileStat]] = []
    folders: list[str] = []
    for path in options.operands or ["."]:
        try:
            found = process.files.stat(path, follow="l" not in options and "d" not in options)
        except OSError as error:
            if process.files.exists(path, follow=False):
                files.append((path, process.files.stat(path, follow=False)))
                continue
            await complain(process, "ls", path, error)
            status = 2 if process.container.program.family.dialect == "gnu" else 1
            continue
        if found.is_dir and "d" not in options:
            folders.append(path)
        else:
            files.append((path, found))
    if files:
        await process.write(_rows(process, options, _ordered(options, files)))
    several = len(folders) + len(files) > 1 or "R" in options
    for index, path in enumerate(sorted(folders) if "U" not in options else folders):
        lead = "\n" if files or index else ""
        status = max(status, await _list_folder(process, options, path, lead if several else "", several))
    return status


async def _list_folder(process: Process, options: Options, path: str, lead: str, titled: bool) -> int:
    try:
        names = process.files.listdir(path)
    except OSError as error:
        await complain(process, "ls.open", path, error)
        return 2 if process.container.program.family.dialect == "gnu" else 1
    if "a" in options:
        names = [".", "..", *names]
    elif "A" not in options:
        names = [name for name in names if not name.startswith(".")]
    entries: list[tuple[str, FileStat]] = []
    for name in names:
        full = posixpath.join(path, name)
        if process.files.exists(full, follow=False):
            entries.append((name, process.files.stat(full, follow="L" in options and process.files.exists(full))))
    head = f"{lead}{path}:\n" if titled else lead
    total = sum(_blocks(found) for _, found in entries)
    if "l" in options or "s" in options or "o" in options:
        shown = human_size(total * 1024) if "h" in options else str(total)
        head += f"total {shown}\n"
    await process.write(head + _rows(process, options, _ordered(options, entries)))
    status = 0
    if "R" in options:
        for name, found in _ordered(options, entries):
            if found.is_dir and name not in (".", ".."):
                await process.spend()
                status = max(status, await _list_folder(process, options, posixpath.join(path, name), "\n", True))
    return status


def _blocks(found: FileStat) -> int:
    """Kilobytes on disk."""
    return 4 * -(-found.size // 4096) if not found.is_link else 0


def _ordered(options: Options, entries: list[tuple[str, FileStat]]) -> list[tuple[str, FileStat]]:
    if "t" in options:
        entries = sorted(entries, key=lambda entry: -entry[1].node.mtime)
    elif "S" in options:
        entries = sorted(entries, key=lambda entry: -entry[1].size)
    elif "U" not in options:
        entries = sorted(entries, key=lambda entry: entry[0])
    return entries[::-1] if "r" in options else entries


def _mark(options: Options, found: FileStat) -> str:
    if "F" in options:
        if found.is_dir:
            return "/"
        if found.is_link:
            return "@" if "l" not in options else ""
        return "*" if found.node.mode & 0o111 and found.is_file else ""
    return "/" if "p" in options and found.is_dir else ""


def _rows(process: Process, options: Options, entries: list[tuple[str, FileStat]]) -> str:
    if "l" not in options and "o" not in options and "n" not in options:
        sizes = "s" in options
        return "".join(f"{f'{_blocks(f)} ' if sizes else ''}{name}{_mark(options, f)}\n" for name, f in entries)
    accounts = accounts_of(process)
    numeric = "n" in options
    rows: list[tuple[str, str, str, str, str, str, str]] = []
    for name, found in entries:
        node = found.node
        size = human_size(found.size) if "h" in options else str(found.size)
        if isinstance(node, Device):
            size = f"{node.numbers[0]}, {node.numbers[1]:3d}"
        target = f" -> {node.target_for(process)}" if isinstance(node, Symlink) else ""
        rows.append(
            (
                mode_text(found),
                str(node.links),
                str(node.uid) if numeric else accounts.user_name(node.uid),
                str(node.gid) if numeric else accounts.group_name(node.gid),
                size,
                _when(node.mtime, process.clock.now),
                f"{name}{_mark(options, found)}{target}",
            )
        )
    if process.container.program.family.dialect == "busybox":
        return "".join(f"{m}{n:>5} {u:<8} {g:<8} {s:>9} {w} {f}\n" for m, n, u, g, s, w, f in rows)
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    return "".join(
        f"{m} {n:>{widths[1]}} {u:<{widths[2]}} {g:<{widths[3]}} {s:>{widths[4]}} {w} {f}\n"
        for m, n, u, g, s, w, f in rows
    )


def _stat_format(process: Process, template: str, path: str, found: FileStat) -> str:
    node = found.node
    accounts = accounts_of(process)
    stamp = datetime.fromtimestamp(node.mtime, UTC).strftime("%Y-%m-%d %H:%M:%S.%f000 +0000")
    values = {
        "n": path,
        "N": f"'{path}'" + (f" -> '{node.target_for(process)}'" if isinstance(node, Symlink) else ""),
        "s": str(found.size),
        "a": f"{node.mode:o}",
        "A": mode_text(found),
        "u": str(node.uid),
        "U": accounts.user_name(node.uid),
        "g": str(node.gid),
        "G": accounts.group_name(node.gid),
        "F": "regular empty file" if found.is_file and not found.size else node.type_name,
        "h": str(node.links),
        "y": stamp,
        "Y": str(int(node.mtime)),
        "z": stamp,
        "Z": str(int(node.mtime)),
        "x": stamp,
        "X": str(int(node.mtime)),
        "b": str(_blocks(found) * 2),
        "B": "512",
        "o": "4096",
        "i": str(inode_number(found.path)),
        "m": found.mount.path,
        "%": "%",
    }
    result: list[str] = []
    index = 0
    while index < len(template):
        if template[index] == "%" and index + 1 < len(template):
            index += 1
            result.append(values.get(template[index], "?"))
        else:
            result.append(template[index])
        index += 1
    return "".join(result)


def inode_number(path: str) -> int:
    """A number for a path: files here have no table they are in, but tools print one."""
    value = 5381
    for char in path:
        value = (value * 33 + ord(char)) & 0x7FFFFFF
    return value


@tool("stat")
async def stat(process: Process, args: list[str]) -> int:
    options = parse(args, "Lft", "c", long={"format=": "c", "printf=": "printf", "dereference": "L", "terse": "t"})
    status = 0
    for path in options.operands:
        try:
            found = process.files.stat(path, follow="L" in options)
        except OSError as error:
            await complain(process, "stat", path, error)
            status = 1
            continue
        if "printf" in options:
            text = _stat_format(process, options.value("printf").replace("\\n", "\n"), path, found)
        elif "c" in options:
            text = _stat_format(process, options.value("c") + "\n", path, found)
        else:
            template = (
                "  File: %n\n  Size: %-s\tBlocks: %b\t   IO Block: %o   %F\n"
                "Device: 35h/53d\tInode: %i\tLinks: %h\n"
                "Access: (0%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nAccess: %x\nModify: %y\nChange: %z\n"
            )
            text = _stat_format(process, template.replace("%-s", "%s"), path, found)
        await process.write(text)
    return status
