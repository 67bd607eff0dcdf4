"""kill and what finds processes to kill: pkill, killall, pgrep, pidof."""

from __future__ import annotations

from signal import Signals

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.machine.processes.signals import signal_name, signal_number
from srearena.cluster.embedded.userland.posix_regex import RegexError, compile_regex
from srearena.cluster.embedded.userland.tools.registry import tool


def _may_signal(sender: Process, target: Process) -> bool:
    who = sender.credentials
    return who.can("KILL") or who.uid in (target.credentials.uid,)


def send(sender: Process, target: Process, number: int) -> str | None:
    """Deliver a signal; what stands in the way, if anything does."""
    if not _may_signal(sender, target):
        return "Operation not permitted"
    if number and not target.done.is_set:
        target.raise_signal(number)
    return None


async def kill(process: Process, args: list[str], prefix: str = "kill: ") -> int:
    number = int(Signals.SIGTERM)
    words = list(args)
    if words and words[0] in ("-l", "-L"):
        return await _list_signals(process, words[1:])
    if words and words[0] in ("-s", "-n") and len(words) > 1:
        found = signal_number(words[1])
        words = words[2:]
    elif words and words[0].startswith("-") and len(words[0]) > 1 and words[0] != "--":
        found = signal_number(words[0][1:])
        if found is None:
            await process.error(f"{prefix}bad signal name '{words[0][1:]}'\n")
            return 1
        words = words[1:]
    else:
        found = number
    if found is None:
        await process.error(f"{prefix}invalid signal\n")
        return 1
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        await process.error(f"{prefix}you need to specify whom to kill\n")
        return 1
    status = 0
    for word in words:
        status = max(status, await _kill_one(process, word, found, prefix))
    return status


async def _kill_one(process: Process, word: str, number: int, prefix: str) -> int:
    pids = process.container.pids
    text = word.removeprefix("-")
    if not text.isdigit():
        await process.error(f"{prefix}invalid number '{word}'\n")
        return 1
    pid = int(text)
    if word == "-1":
        targets = [p for p in pids.processes.values() if p.pid != 1 and p is not process]
    elif word.startswith("-") or pid == 0:
        group = pid or process.group
        targets = [p for p in pids.processes.values() if p.group == group]
    else:
        targets = [p for p in (pids.get(pid),) if p is not None]
    if not targets:
        await process.error(f"{prefix}can't kill pid {pid}: No such process\n")
        return 1
    problems = [problem for target in targets if (problem := send(process, target, number)) is not None]
    if problems:
        await process.error(f"{prefix}can't kill pid {pid}: {problems[0]}\n")
        return 1
    await process.heed_signals()
    return 0


async def _list_signals(process: Process, words: list[str]) -> int:
    if words:
        for word in words:
            if word.isdigit():
                await process.write(f"{signal_name(int(word) % 128)}\n")
            else:
                await process.write(f"{signal_number(word) or 0}\n")
        return 0
    await process.write("".join(f"{number}) {signal_name(number)}\n" for number in range(1, 32)))
    return 0


@tool("kill")
async def kill_command(process: Process, args: list[str]) -> int:
    return await kill(process, args)


def _selected(process: Process, args: list[str]) -> tuple[list[Process], dict[str, bool], int, str | None]:
    flags = {"f": False, "x": False, "l": False, "v": False, "o": False, "n": False, "a": False, "c": False}
    number = int(Signals.SIGTERM)
    pattern: str | None = None
    for arg in args:
        if arg.startswith("-") and len(arg) > 1:
            found = signal_number(arg[1:])
            if found is not None:
                number = found
            else:
                flags.update(dict.fromkeys((letter for letter in arg[1:] if letter in flags), True))
        else:
            pattern = arg
    if pattern is None:
        return [], flags, number, None
    regex = compile_regex(pattern, extended=True)
    chosen = []
    for other in process.container.pids.processes.values():
        text = " ".join(other.argv) if flags["f"] else other.name
        found_match = regex.search(text)
        matched = found_match is not None and (not flags["x"] or found_match.end - found_match.start == len(text))
        if matched is not flags["v"] and other is not process and not other.done.is_set:
            chosen.append(other)
    return chosen, flags, number, pattern


@tool("pkill", "pgrep")
async def by_pattern(process: Process, args: list[str]) -> int:
    name = process.name if process.name in ("pkill", "pgrep") else "pgrep"
    try:
        chosen, flags, number, pattern = _selected(process, args)
    except RegexError as error:
        await process.error(f"{name}: bad regex '{args[-1]}': {error}\n")
        return 2
    if pattern is None:
        await process.error(f"{name}: no matching criteria specified\n")
        return 2
    if name == "pgrep":
        for other in chosen:
            shown = f" {' '.join(other.argv)}" if flags["a"] else f" {other.name}" if flags["l"] else ""
            await process.write(f"{other.pid}{shown}\n")
    else:
        for other in chosen:
            problem = send(process, other, number)
            if problem is not None:
                await process.error(f"{name}: killing pid {other.pid} failed: {problem}\n")
        await process.heed_signals()
    return 0 if chosen else 1


@tool("killall")
async def killall(process: Process, args: list[str]) -> int:
    number = int(Signals.SIGTERM)
    status = 0
    for arg in args:
        if arg.startswith("-"):
            number = signal_number(arg[1:]) or number
            continue
        found = [p for p in process.container.pids.processes.values() if p.name == arg and p is not process]
        if not found:
            await process.error(f"killall: {arg}: no process killed\n")
            status = 1
        for other in found:
            send(process, other, number)
    await process.heed_signals()
    return status


@tool("pidof")
async def pidof(process: Process, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    found = [p for p in process.container.pids.processes.values() if p.name in names and not p.done.is_set]
    if found:
        await process.write(" ".join(str(p.pid) for p in reversed(found)) + "\n")
    return 0 if found else 1
