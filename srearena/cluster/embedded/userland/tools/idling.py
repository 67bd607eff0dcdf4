"""Tools about time passing: sleep, timeout, and the trivial true and false."""

from __future__ import annotations

from signal import Signals

from srearena.cluster.embedded.machine.processes.execution import ExecError
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.machine.processes.signals import signal_number
from srearena.cluster.embedded.userland.tools.registry import tool

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> float | None:
    """Seconds of `5`, `0.5`, `10m`, `infinity`."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        value = float(number)
    except ValueError:
        return None
    if value < 0 or value != value:
        return None
    return min(value, 1e12) * _UNITS[unit]


@tool("sleep")
async def sleep(process: Process, args: list[str]) -> int:
    busybox = process.container.program.family.dialect == "busybox"
    if not args:
        await process.error("sleep: missing operand\nTry 'sleep --help' for more information.\n")
        return 1
    total = 0.0
    for arg in args:
        seconds = duration(arg)
        if seconds is None:
            hint = "" if busybox else "\nTry 'sleep --help' for more information."
            word = "invalid number" if busybox else "invalid time interval"
            await process.error(f"sleep: {word} '{arg}'{hint}\n")
            return 1
        total += seconds
    await process.sleep(total)
    return 0


@tool("usleep")
async def usleep(process: Process, args: list[str]) -> int:
    await process.sleep(int(args[0]) / 1e6 if args and args[0].isdigit() else 0)
    return 0


@tool("true")
async def true(process: Process, args: list[str]) -> int:
    return 0


@tool("false")
async def false(process: Process, args: list[str]) -> int:
    return 1


@tool("timeout")
async def timeout(process: Process, args: list[str]) -> int:
    words = list(args)
    number = int(Signals.SIGTERM)
    kill_after: float | None = None
    preserve = False
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("-s", "-k", "-t") and words:
            value = words.pop(0)
            if word == "-s":
                number = signal_number(value) or number
            elif word == "-k":
                kill_after = duration(value)
            else:
                words.insert(0, value)
        elif word.startswith("--signal="):
            number = signal_number(word[9:]) or number
        elif word.startswith("--kill-after="):
            kill_after = duration(word[13:])
        elif word == "--preserve-status":
            preserve = True
    seconds = duration(words[0]) if words else None
    if seconds is None or len(words) < 2:
        what = f"invalid time interval '{words[0]}'" if words and seconds is None else "missing operand"
        await process.error(f"timeout: {what}\nTry 'timeout --help' for more information.\n")
        return 125
    try:
        child = process.spawn(words[1:])
    except ExecError as error:
        reason = "No such file or directory" if error.status == 127 else "Permission denied"
        await process.error(f"timeout: failed to run command '{words[1]}': {reason}\n")
        return error.status
    if await child.done.wait(seconds or None):
        return await process.wait(child)
    child.raise_signal(number)
    if kill_after is not None and not await child.done.wait(kill_after):
        child.raise_signal(Signals.SIGKILL)
    status = await process.wait(child)
    busybox = process.container.program.family.dialect == "busybox"
    if preserve or busybox:
        return 143 if busybox and status == 128 + number else status
    return 137 if child.exit_signal == Signals.SIGKILL else 124
