"""Builtins about processes: wait, jobs, kill, trap, limits and the mask of new files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.machine.processes.signals import signal_number
from srearena.cluster.embedded.userland.shell.builtins.registry import builtin
from srearena.cluster.embedded.userland.shell.children import Job, report_death
from srearena.cluster.embedded.userland.tools.signals import kill as kill_tool

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


def _job(shell: Shell, text: str) -> Job | None:
    """The job that `%1`, `%%` or a process number means."""
    if text in ("%%", "%+", "%"):
        return shell.jobs[-1] if shell.jobs else None
    if text == "%-":
        return shell.jobs[-2] if len(shell.jobs) > 1 else None
    if text.startswith("%"):
        return next((job for job in shell.jobs if str(job.number) == text[1:] or job.text.startswith(text[1:])), None)
    return next((job for job in shell.jobs if str(job.process.pid) == text), None)


async def _wait_for(shell: Shell, process: Process) -> int:
    """Wait for one child; a trapped signal cuts it short."""
    while not process.done.is_set:
        if shell.process.pending:
            number = shell.process.pending[0]
            await shell.run_pending_traps()
            return 128 + number
        await shell.process.changed()
    process.reap()
    await report_death(shell, process)
    shell.jobs = [job for job in shell.jobs if job.process is not process]
    return process.done.value


@builtin("wait")
async def wait(shell: Shell, args: list[str]) -> int:
    if not args:
        for job in list(shell.jobs):
            status = await _wait_for(shell, job.process)
            if not job.process.done.is_set:
                return status
        while shell.helpers:
            await _wait_for(shell, shell.helpers.pop())
        return 0
    status = 0
    if args[0] == "-n":
        while shell.jobs and not any(job.process.done.is_set for job in shell.jobs):
            await shell.process.changed()
        ended = next((job for job in shell.jobs if job.process.done.is_set), None)
        return 127 if ended is None else await _wait_for(shell, ended.process)
    for text in args:
        wanted = _job(shell, text)
        if wanted is None:
            status = 127
            if not text.lstrip("%").isdigit():
                await shell.complain(
                    f"wait: No such job: {text}" if shell.dialect.name != "bash" else f"wait: {text}: no such job"
                )
                status = 2
            elif shell.dialect.name == "bash":
                await shell.complain(f"wait: pid {text} is not a child of this shell")
            continue
        status = await _wait_for(shell, wanted.process)
    return status


@builtin("jobs")
async def list_jobs(shell: Shell, args: list[str]) -> int:
    pids_only = "-p" in args
    for job in list(shell.jobs):
        ended = job.process.done.is_set
        if pids_only:
            await shell.process.write(f"{job.process.pid}\n")
            continue
        state = "Running" if not ended else "Done" if job.process.done.value == 0 else f"Done({job.process.done.value})"
        if job.process.stopped:
            state = "Stopped"
        mark = "+" if job is shell.jobs[-1] else "-" if len(shell.jobs) > 1 and job is shell.jobs[-2] else " "
        await shell.process.write(f"[{job.number}] {mark} {state:<26} {job.text}\n")
        if ended:
            job.process.reap()
            shell.jobs.remove(job)
    return 0


@builtin("fg", "bg")
async def foreground(shell: Shell, args: list[str]) -> int:
    job = _job(shell, args[0] if args else "%%")
    if job is None or not shell.interactive:
        await shell.complain("fg: no job control" if not shell.interactive else "fg: no current job")
        return 2 if shell.dialect.name == "dash" else 1
    return await _wait_for(shell, job.process)


@builtin("kill")
async def kill(shell: Shell, args: list[str]) -> int:
    targets: list[str] = []
    for arg in args:
        job = _job(shell, arg) if arg.startswith("%") else None
        if arg.startswith("%") and job is None:
            await shell.complain(f"kill: No such job: {arg}")
            return 2
        targets.append(str(job.process.pid) if job is not None else arg)
    return await kill_tool(shell.process, targets, prefix=shell.complaint_prefix("kill"))


@builtin("trap")
async def trap(shell: Shell, args: list[str]) -> int:
    if args and args[0] == "--":
        args = args[1:]
    if not args or args == ["-p"]:
        await shell.process.write(shell.describe_traps())
        return 0
    if args == ["-l"]:
        return await kill_tool(shell.process, ["-l"])
    action: str | None = args[0]
    names = args[1:]
    if action == "-" or (len(args) == 1 and signal_number(args[0]) is not None):
        action = None
        names = args[1:] or args
    status = 0
    for name in names:
        number = signal_number(name)
        if number is None:
            await shell.complain(
                f"trap: {name}: bad trap"
                if shell.dialect.name == "dash"
                else f"trap: {name}: invalid signal specification"
            )
            status = 1
        else:
            shell.set_trap(number, action)
    return status


_LIMITS = (
    ("t", "time", "(seconds)", "unlimited"),
    ("f", "file", "(blocks)", "unlimited"),
    ("d", "data", "(kb)", "unlimited"),
    ("s", "stack", "(kb)", "8192"),
    ("c", "coredump", "(blocks)", "unlimited"),
    ("m", "memory", "(kb)", "unlimited"),
    ("l", "locked memory", "(kb)", "8192"),
    ("p", "process", "", "unlimited"),
    ("n", "nofiles", "", ""),
    ("v", "vmemory", "(kb)", "unlimited"),
)


@builtin("ulimit")
async def ulimit(shell: Shell, args: list[str]) -> int:
    letters = "".join(arg[1:] for arg in args if arg.startswith("-"))
    values = [arg for arg in args if not arg.startswith("-")]
    process = shell.process
    if "a" in letters:
        rows = (f"{name + unit:<20} {value or process.nofile}\n" for letter, name, unit, value in _LIMITS)
        await process.write("".join(rows))
        return 0
    kind = next((letter for letter in letters if letter not in "HS"), "f")
    known = next((row for row in _LIMITS if row[0] == kind), None)
    if known is None:
        await shell.complain(f"ulimit: Illegal option -{kind}")
        return 2
    if not values:
        await process.write(f"{process.nofile if kind == 'n' else known[3]}\n")
        return 0
    if kind == "n" and values[0].isdigit():
        wanted = int(values[0])
        if wanted > process.nofile and not process.credentials.can("SYS_RESOURCE"):
            await shell.complain("ulimit: error setting limit (Operation not permitted)")
            return 2
        process.nofile = wanted
    return 0


@builtin("umask")
async def umask(shell: Shell, args: list[str]) -> int:
    if not args or args[0] == "-S":
        await shell.process.write(f"{shell.process.umask:04o}\n")
        return 0
    if not re.fullmatch(r"[0-7]{1,4}", args[0]):
        await shell.complain(f"umask: Illegal number: {args[0]}")
        return 2
    shell.process.umask = int(args[0], 8) & 0o777
    return 0
