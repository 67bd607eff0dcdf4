"""The children of a shell: what is said when there can be none, how they are waited for, and how they died."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.shell.control import ExitShell, Interrupt

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell

_DEATHS = {
    Signals.SIGHUP: "Hangup",
    Signals.SIGQUIT: "Quit",
    Signals.SIGKILL: "Killed",
    Signals.SIGSEGV: "Segmentation fault",
    Signals.SIGTERM: "Terminated",
    Signals.SIGABRT: "Aborted",
    Signals.SIGUSR1: "User defined signal 1",
    Signals.SIGUSR2: "User defined signal 2",
    Signals.SIGALRM: "Alarm clock",
}


@dataclass(slots=True)
class Job:
    """A child in the background."""

    number: int
    process: Process
    text: str


async def cannot_fork(shell: Shell, error: OSError) -> int:
    """Say that there can be no more children, and leave."""
    texts = {"dash": "Cannot fork", "busybox": f"can't fork: {error.strerror}"}
    await shell.complain(texts.get(shell.dialect.name, f"fork: retry: {error.strerror}"))
    raise ExitShell(2 if shell.dialect.name != "bash" else 254)


async def wait_for(shell: Shell, children: list[Process]) -> int:
    """Wait for what runs in the foreground; the status is that of the last."""
    if shell.terminal is not None:
        shell.terminal.foreground = children[0]
    statuses = [await shell.process.wait(child) for child in children]
    if shell.terminal is not None:
        shell.terminal.foreground = shell.process
        if children[-1].exit_signal == Signals.SIGINT:
            raise Interrupt
    await report_death(shell, children[-1])
    if "pipefail" in shell.options:
        return next((status for status in reversed(statuses) if status), 0)
    return statuses[-1]


async def report_death(shell: Shell, child: Process) -> None:
    text = _DEATHS.get(Signals(child.exit_signal)) if child.exit_signal else None
    if text is None or shell.forked:
        return
    if shell.dialect.name == "bash":
        await shell.complain(f"{child.pid:5d} {text:<23} {' '.join(child.argv)}")
    else:
        await shell.process.error(f"{text}\n")
