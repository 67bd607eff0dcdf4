"""Tools that change the tree: touch, mkdir, rm, ln, chmod, chown and the small ones about paths."""

from __future__ import annotations

import posixpath
import re

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.dates import parse_date
from srearena.cluster.embedded.userland.tools.listing import accounts_of
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.reading import count_of
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import complain, speaks_busybox


def need_operand(operands: list[str], least: int = 1) -> None:
    if len(operands) < least:
        after = f" after '{operands[-1]}'" if operands else ""
        raise UsageError(f"missing {'destination ' if operands else ''}file operand{after}")


@tool("touch")
async def touch(process: Process, args: list[str]) -> int:
    options = parse(args, "acmfh", "dtr", long={"date=": "d", "no-create": "c", "reference=": "r"})
    if not options.operands:
        raise UsageError("missing file operand")
    moment: float | None = None
    if "d" in options:
        moment = parse_date(options.value("d"), process.clock.now)
        if moment is None:
            await process.error(f"touch: invalid date format '{options.value('d')}'\n")
            return 1
    elif "r" in options and process.files.exists(options.value("r")):
        moment = process.files.stat(options.value("r")).node.mtime
    status = 0
    for path in options.operands:
        if "c" in options and not process.files.exists(path):
            continue
        try:
            process.files.touch(path, moment)
        except OSError as error:
            await complain(process, "touch", path, error)
            status = 1
    return status


@tool("mkdir")
async def mkdir(process: Process, args: list[str]) -> int:
    options = parse(args, "pv", "m", long={"parents": "p", "mode=": "m", "verbose": "v"})
    if not options.operands:
        raise UsageError("missing operand")
    status = 0
    for path in options.operands:
        try:
            process.files.mkdir(path, 0o777, parents="p" in options)
            if "m" in options:
                process.files.chmod(path, changed_mode(options.value("m"), 0o777, True))
            if "v" in options:
                await process.write(f"mkdir: created directory '{path}'\n")
        except OSError as error:
            await complain(process, "mkdir", path, error)
            status = 1
    return status


@tool("rmdir")
async def rmdir(process: Process, args: list[str]) -> int:
    options = parse(args, "pv", long={"ignore-fail-on-non-empty": "ignore"})
    status = 0
    for path in options.operands:
        try:
            process.files.rmdir(path)
        except OSError as error:
            await complain(process, "rmdir", path, error)
            status = 1
    return status


@tool("rm", "unlink")
async def rm(process: Process, args: list[str]) -> int:
    options = parse(args, "rRfivdI", long={"recursive": "r", "force": "f", "verbose": "v"})
    force = "f" in options
    if not options.operands:
        if force:
            return 0
        raise UsageError("missing operand")
    status = 0
    for path in options.operands:
        status = max(status, await _remove(process, path, recursive=bool({"r", "R"} & options.flags), force=force))
    return status


async def _remove(process: Process, path: str, *, recursive: bool, force: bool) -> int:
    files = process.files
    if posixpath.basename(path.rstrip("/")) in (".", "..", "") and recursive:
        if path.strip("/") == "":
            text = "it is dangerous to operate recursively on '/'\nrm: use --no-preserve-root to override this failsafe"
            await process.error(f"rm: {text}\n")
        else:
            await process.error(f"rm: refusing to remove '.' or '..' directory: skipping '{path}'\n")
        return 1
    try:
        found = files.stat(path, follow=False)
        if not found.is_dir:
            files.unlink(path)
            return 0
        if not recursive:
            reason = (
                "can't remove '{}': Is a directory" if speaks_busybox(process) else "cannot remove '{}': Is a directory"
            )
            await process.error(f"rm: {reason.format(path)}\n")
            return 1
        status = 0
        for name in files.listdir(path):
            await process.spend()
            status = max(status, await _remove(process, posixpath.join(path, name), recursive=True, force=force))
        if status == 0:
            files.rmdir(path)
        return status
    except FileNotFoundError as error:
        if force:
            return 0
        await complain(process, "rm", path, error)
    except OSError as error:
        await complain(process, "rm", path, error)
    return 1


@tool("ln", "link")
async def ln(process: Process, args: list[str]) -> int:
    options = parse(args, "sfnvTrbi", "t", long={"symbolic": "s", "force": "f", "no-dereference": "n"})
    need_operand(options.operands)
    targets, place = options.operands[:-1], options.operands[-1]
    if not targets:
        targets, place = [place], "."
    files = process.files
    status = 0
    for target in targets:
        into = files.is_dir(place) and not ("n" in options and _is_link(process, place)) and "T" not in options
        path = posixpath.join(place, posixpath.basename(target.rstrip("/"))) if into else place
        try:
            if "f" in options and files.exists(path, follow=False):
                files.unlink(path)
            if "s" in options:
                files.symlink(target, path)
            else:
                files.hard_link(target, path)
        except OSError as error:
            await complain(process, "ln" if "s" in options else "ln.hard", path, error)
            status = 1
    return status


def _is_link(process: Process, path: str) -> bool:
    return process.files.exists(path, follow=False) and process.files.stat(path, follow=False).is_link


_SYMBOLIC = re.compile(r"([ugoa]*)([-+=])([rwxXst]*)\Z")


def changed_mode(text: str, old: int, is_directory: bool) -> int:
    """A mode as chmod takes it, octal or `u+x,go-w`, applied to an old one."""
    if re.fullmatch(r"[0-7]{1,4}", text):
        return int(text, 8)
    mode = old
    for clause in text.split(","):
        found = _SYMBOLIC.match(clause)
        if found is None:
            raise UsageError(f"invalid mode: '{text}'")
        who, operator, letters = found.groups()
        who = "ugo" if "a" in who or not who else who
        bits = 0
        for group in who:
            shift = {"u": 6, "g": 3, "o": 0}[group]
            for letter in letters:
                if letter == "X":
                    bits |= (1 << shift) if is_directory or old & 0o111 else 0
                elif letter in "rwx":
                    bits |= {"r": 4, "w": 2, "x": 1}[letter] << shift
                elif letter == "s":
                    bits |= {"u": 0o4000, "g": 0o2000}.get(group, 0)
        bits |= 0o1000 if "t" in letters else 0
        if operator == "+":
            mode |= bits
        elif operator == "-":
            mode &= ~bits
        else:
            for group in who:
                mode &= ~(7 << {"u": 6, "g": 3, "o": 0}[group])
            mode |= bits
    return mode


@tool("chmod")
async def chmod(process: Process, args: list[str]) -> int:
    # A mode may look like an option: -x.
    words = [f"a{arg}" if re.fullmatch(r"-[rwxXst]+", arg) and arg not in ("-r",) else arg for arg in args]
    options = parse(words, "Rvcf", long={"recursive": "R", "reference=": "reference"})
    if len(options.operands) < 2:
        raise UsageError("missing operand" + (f" after '{options.operands[0]}'" if options.operands else ""))
    mode, *paths = options.operands
    status = 0
    for path in paths:
        status = max(status, await _each(process, path, "chmod", "R" in options, lambda p: _chmod(process, p, mode)))
    return status


def _chmod(process: Process, path: str, mode: str) -> None:
    found = process.files.stat(path)
    process.files.chmod(path, changed_mode(mode, found.node.mode, found.is_dir))


async def _each(process: Process, path: str, name: str, recursive: bool, change: object) -> int:
    """Apply a change to a path, and to all below it if asked."""
    assert callable(change)
    status = 0
    try:
        found = process.files.stat(path, follow=not recursive)
    except OSError as error:
        await complain(process, name, path, error)
        return 1
    try:
        if not (recursive and found.is_link):
            change(path)
    except OSError as error:
        await complain(process, f"{name}.change", path, error)
        status = 1
    if recursive and found.is_dir:
        for child in process.files.listdir(path):
            await process.spend()
            status = max(status, await _each(process, posixpath.join(path, child), name, True, change))
    return status


@tool("chown", "chgrp")
async def chown(process: Process, args: list[str]) -> int:
    options = parse(args, "RhvcfHLP", long={"recursive": "R", "no-dereference": "h", "reference=": "reference"})
    if len(options.operands) < 2:
        raise UsageError("missing operand" + (f" after '{options.operands[0]}'" if options.operands else ""))
    owner, *paths = options.operands
    accounts = accounts_of(process)
    user, separator, group = owner.partition(":") if process.name != "chgrp" else ("", ":", owner)
    uid: int | None = None
    gid: int | None = None
    if user:
        known = accounts.by_name(user)
        if known is None and not user.isdigit():
            text = f"unknown user {user}" if speaks_busybox(process) else f"invalid user: '{owner}'"
            await process.error(f"chown: {text}\n")
            return 1
        uid = known.uid if known is not None else int(user)
        if separator and not group:
            gid = accounts.by_uid(uid).gid
    if group:
        gid = accounts.group_id(group)
        if gid is None:
            text = f"unknown group {group}" if speaks_busybox(process) else f"invalid group: '{owner}'"
            await process.error(f"{process.name}: {text}\n")
            return 1
    status = 0
    for path in paths:
        recursive = "R" in options
        change = lambda p: process.files.chown(p, uid, gid, follow="h" not in options)  # noqa: E731
        status = max(status, await _each(process, path, "chown", recursive, change))
    return status


@tool("readlink")
async def readlink(process: Process, args: list[str]) -> int:
    options = parse(args, "fnemqsvz")
    status = 0
    for path in options.operands:
        try:
            if {"f", "e", "m"} & options.flags:
                text = process.files.canonical(path)
                if "e" in options:
                    process.files.stat(path)
            else:
                text = process.files.readlink(path)
        except OSError:
            status = 1
            continue
        await process.write(text + ("" if "n" in options else "\n"))
    return status


@tool("realpath")
async def realpath(process: Process, args: list[str]) -> int:
    options = parse(args, "emLPqsz")
    status = 0
    for path in options.operands:
        try:
            text = process.files.canonical(path)
            if "e" in options:
                process.files.stat(path)
        except OSError as error:
            await complain(process, "realpath", path, error)
            status = 1
            continue
        await process.write(f"{text}\n")
    return status


@tool("basename")
async def basename(process: Process, args: list[str]) -> int:
    options = parse(args, "az", "s", long={"suffix=": "s", "multiple": "a"})
    if not options.operands:
        raise UsageError("missing operand")
    words = options.operands
    suffix = options.value("s")
    if "a" not in options and "s" not in options:
        suffix = words[1] if len(words) > 1 else ""
        words = words[:1]
    for word in words:
        name = word.rstrip("/").rpartition("/")[2] or ("/" if word.startswith("/") else "")
        if suffix and name != suffix:
            name = name.removesuffix(suffix)
        await process.write(f"{name}\n")
    return 0


@tool("dirname")
async def dirname(process: Process, args: list[str]) -> int:
    if not args:
        raise UsageError("missing operand")
    for word in args:
        head = word.rstrip("/").rpartition("/")[0].rstrip("/")
        await process.write(f"{head or ('/' if word.startswith('/') else '.')}\n")
    return 0


@tool("truncate", "fallocate")
async def truncate(process: Process, args: list[str]) -> int:
    options = parse(args, "cno", "slr", long={"size=": "s", "length=": "l", "no-create": "c"})
    name = "fallocate" if "l" in options else "truncate"
    text = options.value("l") or options.value("s")
    if not text:
        raise UsageError(
            "you must specify either '--size' or '--reference'"
            if name == "truncate"
            else "no length argument specified"
        )
    size = count_of(text.removesuffix("B").removesuffix("i").lstrip("+-"), "bytes")
    status = 0
    for path in options.operands:
        try:
            old = process.files.stat(path).size if process.files.exists(path) else 0
            wanted = old + size if text.startswith("+") else max(0, old - size) if text.startswith("-") else size
            process.files.truncate(path, max(old, wanted) if name == "fallocate" else wanted)
        except OSError as error:
            if name == "fallocate":
                await process.error(f"fallocate: fallocate failed: {error.strerror}\n")
            else:
                await complain(process, "truncate", path, error)
            status = 1
    return status


@tool("mktemp")
async def mktemp(process: Process, args: list[str]) -> int:
    options = parse(args, "dqut", "p", long={"directory": "d", "tmpdir=": "p"})
    folder = options.value("p") or process.env.get("TMPDIR", "/tmp")
    template = options.operands[0] if options.operands else posixpath.join(folder, "tmp.XXXXXXXXXX")
    found = re.search(r"X{3,}", template)
    if found is None:
        await process.error(f"mktemp: too few X's in template '{template}'\n")
        return 1
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    filling = "".join(process.container.random.choices(letters, k=len(found.group())))
    path = template[: found.start()] + filling + template[found.end() :]
    try:
        if "d" in options:
            process.files.mkdir(path, 0o700)
        elif "u" not in options:
            process.files.open(path, "x", 0o600).release()
    except OSError as error:
        await process.error(f"mktemp: failed to create file via template '{template}': {error.strerror}\n")
        return 1
    await process.write(f"{path}\n")
    return 0
