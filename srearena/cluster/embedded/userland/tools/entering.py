"""chroot and nsenter: run a program with another root, such as that of the machine."""

from __future__ import annotations

import re

from srearena.cluster.embedded.machine.files.filesystem import Filesystem
from srearena.cluster.embedded.machine.host_root import host_filesystem, machine_of
from srearena.cluster.embedded.machine.processes.execution import ExecError
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import dig
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox

_REASONS = {126: "Permission denied", 127: "No such file or directory"}
_NAMESPACES = {"target=": "t", "mount": "m", "uts": "u", "ipc": "i", "net": "n", "pid": "p", "cgroup": "C", "all": "a"}


_FILE = re.compile(r"(--(?:mount|uts|ipc|net|pid|cgroup))=(.*)/proc/(\d+)/ns/\w+")
"""A namespace by its file: the option, the root of the process file system, the process."""


def _through_host(process: Process, files: list[re.Match[str]]) -> bool:
    """Whether files of namespaces are those of the machine: below a mount of its root."""
    machine = machine_of(process.container)
    if machine is None or not files:
        return False
    roots = {mount.path for mount in process.files.filesystem.mounts if mount.root is machine.files.root}
    return all(found[2] in roots for found in files)


async def _run(process: Process, filesystem: Filesystem, words: list[str], name: str) -> int:
    """Change the root and become another program."""
    process.change_root(filesystem)
    try:
        process.execute(words or ["/bin/sh", "-i"], process.env)
    except ExecError as error:
        failed = f"can't execute '{error.name}'" if speaks_busybox(process) else f"failed to run command '{error.name}'"
        if name == "nsenter":
            failed = f"failed to execute {error.name}"
        await process.error(f"{name}: {failed}: {_REASONS[error.status]}\n")
        return error.status
    return 0


@tool("chroot")
async def chroot(process: Process, args: list[str]) -> int:
    options = parse(args, long={"userspec=": "u", "groups=": "g", "skip-chdir": "s"}, stop_early=True)
    if not options.operands:
        raise UsageError("missing operand\nTry 'chroot --help' for more information.")
    root, *words = options.operands
    machine = machine_of(process.container)
    try:
        if not process.credentials.can("SYS_CHROOT"):
            raise PermissionError(1, "Operation not permitted")
        filesystem = process.files.filesystem.beneath(root, process)
    except OSError as error:
        await process.error(f"chroot: cannot change root directory to '{root}': {error.strerror}\n")
        return 125
    if machine is not None and filesystem.root.root is machine.files.root:
        filesystem = host_filesystem(process.container, machine)
    return await _run(process, filesystem, words, "chroot")


@tool("nsenter")
async def nsenter(process: Process, args: list[str]) -> int:
    by_file = [found for arg in args if (found := _FILE.fullmatch(arg)) is not None]
    args = [found[1] if (found := _FILE.fullmatch(arg)) is not None else arg for arg in args]
    options = parse(args, "aFmuinpCU", "tSGrw", long=_NAMESPACES, stop_early=True)
    target = options.value("t") or next((found[3] for found in by_file), "")
    if not target.isdigit():
        raise UsageError("neither filename nor target pid supplied for ns/mnt")
    shares_host = bool(dig(process.container.host.pod, "spec", "hostPID")) or _through_host(process, by_file)
    entered = [letter for letter in "minupC" if letter in options or "a" in options]
    if not shares_host and int(target) in process.container.pids.processes:
        # Namespaces of a process of the same container are those that it is in.
        return await _run(process, process.files.filesystem, options.operands, "nsenter")
    if not shares_host or target != "1":
        await process.error(f"nsenter: cannot open /proc/{target}/ns/mnt: No such file or directory\n")
        return 1
    machine = machine_of(process.container)
    if machine is None or not process.credentials.can("SYS_ADMIN"):
        await process.error("nsenter: reassociate to namespace 'ns/mnt' failed: Operation not permitted\n")
        return 1
    if "n" in entered and not dig(process.container.host.pod, "spec", "hostNetwork"):
        await process.error("nsenter: reassociate to namespace 'ns/net' failed: Operation not permitted\n")
        return 1
    filesystem = process.files.filesystem
    if "m" in entered:
        filesystem = host_filesystem(process.container, machine)
    return await _run(process, filesystem, options.operands, "nsenter")
