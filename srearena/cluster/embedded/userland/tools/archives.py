"""tar and gzip: enough for `kubectl cp` both ways, in the real formats."""

from __future__ import annotations

import gzip as gzip_codec
import io
import posixpath
import tarfile
import zlib

from srearena.cluster.embedded.machine.files.inodes import Directory, Symlink
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland import glob_patterns
from srearena.cluster.embedded.userland.tools.inputs import MAX_HELD, opened, whole
from srearena.cluster.embedded.userland.tools.listing import accounts_of
from srearena.cluster.embedded.userland.tools.options import Options, UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import complain, speaks_busybox

_LONG = {
    "create": "c",
    "extract": "x",
    "get": "x",
    "list": "t",
    "file=": "f",
    "directory=": "C",
    "gzip": "z",
    "verbose": "v",
    "exclude=": "exclude",
    "no-same-owner": "o",
    "touch": "m",
    "to-stdout": "O",
    "strip-components=": "strip",
    "no-same-permissions": "nsp",
    "overwrite": "overwrite",
    "dereference": "h",
}


def unpacked(data: bytes) -> bytes:
    """A gzip stream's content, up to what a tool can hold."""
    result = bytearray()
    while data and len(result) < MAX_HELD:
        stream = zlib.decompressobj(wbits=31)
        result += stream.decompress(data, MAX_HELD - len(result))
        if not stream.eof and len(result) < MAX_HELD:
            raise zlib.error("unexpected end of file")
        data = stream.unused_data.lstrip(b"\0")
    return bytes(result)


@tool("tar")
async def tar(process: Process, args: list[str]) -> int:
    words = list(args)
    if words and not words[0].startswith("-"):
        words[0] = "-" + words[0]
    words = _old_style(words)
    options = parse(words, "cxtzvmopkhPOajJSW", "fCTX", long=_LONG)
    if "C" in options:
        folder = options.value("C")
        if not process.files.is_dir(folder):
            await process.error(
                f"tar: {folder}: Cannot open: No such file or directory\ntar: Error is not recoverable: exiting now\n"
            )
            return 2
        process.cwd = process.files.canonical(folder)
    actions = [letter for letter in "cxt" if letter in options]
    if len(actions) != 1:
        raise UsageError("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
    if actions[0] == "c":
        return await _create(process, options)
    return await _extract(process, options, listing=actions[0] == "t")


def _old_style(words: list[str]) -> list[str]:
    """`-cf - path`: the letters may be bundled with the ones that take values last or in the middle."""
    if not words or words[0].startswith("--"):
        return words
    letters = words[0][1:]
    valued = [letter for letter in letters if letter in "fC"]
    if len(valued) == 1 and letters.endswith(valued[0]):
        return words
    if not valued:
        return words
    rest = words[1:]
    plain = "-" + "".join(letter for letter in letters if letter not in "fC")
    moved = [plain] if plain != "-" else []
    for letter in valued:
        moved += [f"-{letter}", rest.pop(0) if rest else ""]
    return moved + rest


async def _create(process: Process, options: Options) -> int:
    if not options.operands:
        await process.error("tar: Cowardly refusing to create an empty archive\n")
        return 2
    excluded = [glob_patterns.compiled(text) for text in options.all("exclude")]
    buffer = io.BytesIO()
    status = 0
    if "P" not in options and any(operand.startswith("/") for operand in options.operands):
        removing = "removing leading '/'" if speaks_busybox(process) else "Removing leading `/'"
        await process.error(f"tar: {removing} from member names\n")
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for operand in options.operands:
            status = max(status, await _add(process, archive, operand, options, excluded))
    data = buffer.getvalue()
    if "z" in options:
        data = gzip_codec.compress(data, mtime=0)
    target = options.value("f", "-")
    if target == "-":
        await process.write(data)
    else:
        try:
            process.files.write_bytes(target, data)
        except OSError as error:
            await complain(process, "tar.open", target, error)
            return 2
    return status


async def _add(
    process: Process, archive: tarfile.TarFile, path: str, options: Options, excluded: list[glob_patterns.Pattern]
) -> int:
    try:
        found = process.files.stat(path, follow="h" in options)
    except OSError as error:
        await complain(process, "tar", path, error)
        return 2
    name = path.lstrip("/")
    if any(pattern.matches(path) or pattern.matches(posixpath.basename(path)) for pattern in excluded):
        return 0
    await process.spend()
    node = found.node
    info = tarfile.TarInfo(name or ".")
    info.mode, info.uid, info.gid, info.mtime = node.mode, node.uid, node.gid, int(node.mtime)
    accounts = accounts_of(process)
    info.uname, info.gname = accounts.user_name(node.uid), accounts.group_name(node.gid)
    if "v" in options:
        await process.error(f"{name}{'/' if found.is_dir else ''}\n")
    if isinstance(node, Directory):
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
        status = 0
        try:
            names = process.files.listdir(path)
        except OSError as error:
            await complain(process, "tar.open", path, error)
            return 2
        for child in names:
            status = max(status, await _add(process, archive, posixpath.join(path, child), options, excluded))
        return status
    if isinstance(node, Symlink):
        info.type = tarfile.SYMTYPE
        info.linkname = node.target_for(process)
        archive.addfile(info)
        return 0
    try:
        data = process.files.read_bytes(path)
    except OSError as error:
        await complain(process, "tar.open", path, error)
        return 2
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
    return 0


async def _extract(process: Process, options: Options, *, listing: bool) -> int:
    source = options.value("f", "-")
    file = await opened(process, "tar.open", source)
    if file is None:
        return 2
    data = await whole(process, file)
    file.release()
    if data[:2] == b"\x1f\x8b":
        try:
            data = unpacked(data)
        except zlib.error:
            await process.error("gzip: stdin: unexpected end of file\n")
            return 2
    if not data.strip(b"\0"):
        return 0
    try:
        archive = tarfile.open(fileobj=io.BytesIO(data), mode="r:")  # noqa: SIM115
    except tarfile.TarError:
        await process.error(
            "tar: This does not look like a tar archive\ntar: Exiting with failure status due to previous errors\n"
        )
        return 2
    status = 0
    with archive:
        while True:
            try:
                member = archive.next()
            except tarfile.TarError:
                await process.error("tar: Unexpected EOF in archive\ntar: Error is not recoverable: exiting now\n")
                return 2
            if member is None:
                return status
            await process.spend()
            status = max(status, await _extract_member(process, archive, member, options, listing))


async def _extract_member(
    process: Process, archive: tarfile.TarFile, member: tarfile.TarInfo, options: Options, listing: bool
) -> int:
    name = member.name
    wanted = options.operands
    if wanted and not any(name == w.rstrip("/") or name.startswith(w.rstrip("/") + "/") for w in wanted):
        return 0
    if listing or "v" in options:
        await process.write(f"{name}{'/' if member.isdir() else ''}\n")
    if listing:
        return 0
    if options.value("strip").isdigit():
        name = "/".join(name.split("/")[int(options.value("strip")) :])
    path = posixpath.normpath(name.lstrip("/"))
    if path.startswith("..") or not name:
        return 0
    try:
        return await _write_member(process, archive, member, path, options)
    except OSError as error:
        await process.error(f"tar: {name}: Cannot open: {error.strerror}\n")
        return 2


async def _write_member(
    process: Process, archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, options: Options
) -> int:
    files = process.files
    source = archive.extractfile(member) if member.isreg() else None
    if "O" in options:
        await process.write(source.read() if source is not None else b"")
        return 0
    folder = posixpath.dirname(path)
    if folder and not files.is_dir(folder):
        files.mkdir(folder, 0o755, parents=True)
    if member.isdir():
        if not files.is_dir(path):
            files.mkdir(path, member.mode & 0o777)
        return 0
    if files.exists(path, follow=False) and not files.is_dir(path):
        files.unlink(path)
    if member.issym():
        files.symlink(member.linkname, path)
    elif member.islnk():
        files.hard_link(member.linkname, path)
    elif source is not None:
        files.write_bytes(path, source.read(), member.mode & 0o777)
        node = files.stat(path).node
        if "m" not in options:
            node.mtime = float(member.mtime)
        if process.credentials.can("CHOWN") and "o" not in options:
            files.chown(path, member.uid, member.gid)
    return 0


@tool("gzip", "gunzip", "zcat")
async def gzip(process: Process, args: list[str]) -> int:
    options = parse(args, "cdfknqvtl123456789", "S", long={"stdout": "c", "decompress": "d", "keep": "k", "force": "f"})
    unpack = "d" in options or process.name in ("gunzip", "zcat")
    to_stdout = "c" in options or process.name == "zcat" or not options.operands
    status = 0
    for path in options.operands or ["-"]:
        file = await opened(process, process.name, path)
        if file is None:
            status = 1
            continue
        data = await whole(process, file)
        file.release()
        try:
            result = unpacked(data) if unpack else gzip_codec.compress(data, mtime=0)
        except zlib.error:
            await process.error(f"gzip: {'stdin' if path == '-' else path}: not in gzip format\n")
            status = 1
            continue
        if to_stdout:
            await process.write(result)
            continue
        target = path.removesuffix(".gz") if unpack else f"{path}.gz"
        try:
            process.files.write_bytes(target, result)
            if "k" not in options and target != path:
                process.files.unlink(path)
        except OSError as error:
            await process.error(f"gzip: {target}: {error.strerror}\n")
            status = 1
    return status
