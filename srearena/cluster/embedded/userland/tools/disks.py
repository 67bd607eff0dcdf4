"""df, du, mount and sync: what the disks say."""

from __future__ import annotations

import posixpath

from srearena.cluster.embedded.machine.files.filesystem import Mount
from srearena.cluster.embedded.machine.files.inodes import File
from srearena.cluster.embedded.machine.files.procfs import mount_options
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.listing import human_size
from srearena.cluster.embedded.userland.tools.options import parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import complain, speaks_busybox

_PSEUDO = frozenset(("proc", "sysfs", "cgroup2", "devpts", "mqueue"))
INODES_PER_BYTE = 16384


def _rows(process: Process, paths: list[str], everything: bool) -> list[Mount]:
    mounts = process.files.filesystem.mounts
    if not paths:
        shown = [mount for mount in mounts if everything or mount.volume.fstype not in _PSEUDO]
        return [mount for mount in shown if everything or mount.volume.space.limits[0] or mount.path == "/"]
    return [process.files.stat(path).mount for path in paths]


@tool("df")
async def df(process: Process, args: list[str]) -> int:
    options = parse(args, "haHikTPm", "tB", long={"human-readable": "h", "all": "a", "inodes": "i", "print-type": "T"})
    status = 0
    paths: list[str] = []
    for path in options.operands:
        try:
            process.files.stat(path)
        except OSError as error:
            await complain(process, "df", path, error)
            status = 1
        else:
            paths.append(path)
    if options.operands and not paths:
        return status
    mounts = _rows(process, paths, "a" in options)
    human = "h" in options or "H" in options
    unit = 1024 * 1024 if "m" in options or options.value("B") == "M" else 1024
    heads = ["Filesystem", "1K-blocks" if unit == 1024 else "1M-blocks", "Used", "Available", "Use%", "Mounted on"]
    if human:
        heads[1], heads[3] = "Size", "Available" if speaks_busybox(process) else "Avail"
    if "i" in options:
        heads[1:5] = ["Inodes", "IUsed", "IFree", "IUse%"]
    table = [heads]
    for mount in mounts:
        size, used = mount.volume.space.limits
        if "i" in options:
            size, used = size // INODES_PER_BYTE, used // INODES_PER_BYTE
        free = max(0, size - used)
        percent = f"{-(-used * 100 // size) if size else 0}%"
        step = 1 if "i" in options else unit
        cells = [human_size(v) if human else str(-(-v // step)) for v in (size, used, free)]
        table.append([mount.volume.source, *cells, percent, mount.path])
        if "T" in options:
            table[-1].insert(1, mount.volume.fstype)
    if "T" in options:
        table[0].insert(1, "Type")
    await process.write(_table(table))
    return status


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    widths[0] = max(widths[0], 20)
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [
            cell.ljust(width) if rows[0][index] == "Type" else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row[1:-1], widths[1:], strict=True), 1)
        ]
        lines.append(f"{' '.join(cells)} {row[-1]}\n")
    return "".join(lines)


@tool("du")
async def du(process: Process, args: list[str]) -> int:
    options = parse(
        args,
        "hsakcbmxL",
        "d",
        long={"human-readable": "h", "summarize": "s", "all": "a", "total": "c", "bytes": "b", "max-depth=": "d"}
        | {"apparent-size": "apparent"},
    )
    depth = 0 if "s" in options else int(options.value("d")) if options.value("d").isdigit() else None
    status = 0
    total = 0
    for path in options.operands or ["."]:
        if not process.files.exists(path, follow=False):
            try:
                process.files.stat(path)
            except OSError as error:
                await complain(process, "du", path, error)
                status = 1
                continue
        rows: list[tuple[int, str]] = []
        total += await _measure(process, path, 0, depth, "a" in options, "b" in options, rows)
        for size, name in rows:
            await process.write(f"{_size_text(size, options.flags)}\t{name}\n")
    if "c" in options:
        await process.write(f"{_size_text(total, options.flags)}\ttotal\n")
    return status


def _size_text(size: int, flags: set[str]) -> str:
    if "b" in flags:
        return str(size)
    if "h" in flags:
        return human_size(size) if size >= 1024 else (str(size) if size else "0")
    return str(-(-size // (1024 * 1024 if "m" in flags else 1024)))


async def _measure(
    process: Process, path: str, level: int, depth: int | None, files: bool, exact: bool, rows: list[tuple[int, str]]
) -> int:
    """Bytes at and below a path; rows for everything that is to be shown."""
    await process.spend()
    found = process.files.stat(path, follow=False)
    size = found.size if exact else -(-found.size // 4096) * 4096
    if not isinstance(found.node, File) and not found.is_dir:
        size = 0
    if found.is_dir:
        try:
            names = process.files.listdir(path)
        except OSError as error:
            text = f"can't open '{path}'" if speaks_busybox(process) else f"cannot read directory '{path}'"
            await process.error(f"du: {text}: {error.strerror}\n")
            names = []
        for name in names:
            size += await _measure(process, posixpath.join(path, name), level + 1, depth, files, exact, rows)
    if (found.is_dir or files or level == 0) and (depth is None or level <= depth):
        rows.append((size, path))
    return size


@tool("mount")
async def mount(process: Process, args: list[str]) -> int:
    options = parse(args, "alrwvnf", "to")
    kinds = options.value("t").split(",") if "t" in options else []
    if options.operands:
        text = (
            "mount: permission denied (are you root?)\n" if speaks_busybox(process) else "mount: permission denied.\n"
        )
        await process.error(text)
        return 1 if speaks_busybox(process) else 32
    rows = (
        f"{m.volume.source} on {m.path} type {m.volume.fstype} ({mount_options(m)})\n"
        for m in process.files.filesystem.mounts
        if not kinds or m.volume.fstype in kinds
    )
    await process.write("".join(rows))
    return 0


@tool("umount")
async def umount(process: Process, args: list[str]) -> int:
    target = args[-1] if args else ""
    if speaks_busybox(process):
        await process.error(f"umount: can't unmount {target}: Operation not permitted\n")
        return 1
    await process.error(f"umount: {target}: must be superuser to unmount.\n")
    return 32


@tool("sync")
async def sync(process: Process, args: list[str]) -> int:
    return 0
