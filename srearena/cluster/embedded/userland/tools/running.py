"""Tools that run other programs: xargs, env, nohup, nice, time, watch."""

from __future__ import annotations

import re

from srearena.cluster.embedded.machine.files.streams import NullFile
from srearena.cluster.embedded.machine.processes.execution import ExecError
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.idling import duration
from srearena.cluster.embedded.userland.tools.inputs import whole
from srearena.cluster.embedded.userland.tools.options import Options, UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox

MAX_ARGUMENTS = 5000
_REASONS = {126: "Permission denied", 127: "No such file or directory"}


async def run_program(process: Process, words: list[str], name: str, env: dict[str, str] | None = None) -> int:
    """Run a command as a child and return its status; complain in the tool's name where it cannot be."""
    try:
        child = process.spawn(words, env=env)
    except ExecError as error:
        text = f"can't execute '{words[0]}': " if speaks_busybox(process) else f"'{words[0]}': "
        if name in ("xargs", "nohup", "nice") and not speaks_busybox(process):
            text = f"{words[0]}: " if name == "xargs" else f"failed to run command '{words[0]}': "
        await process.error(f"{name}: {text}{_REASONS[error.status]}\n")
        return error.status
    return await process.wait(child)


def _quoted_words(text: str) -> list[str]:
    """Words as xargs reads them: blanks separate, quotes and backslashes protect."""
    words: list[str] = []
    current: str | None = None
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char in " \t\n":
            if current is not None:
                words.append(current)
                current = None
        elif char in "'\"":
            end = text.find(char, index)
            if end < 0:
                raise UsageError(f"unmatched {'single' if char == chr(39) else 'double'} quote")
            current = (current or "") + text[index:end]
            index = end + 1
        elif char == "\\" and index < len(text):
            current = (current or "") + text[index]
            index += 1
        else:
            current = (current or "") + char
    if current is not None:
        words.append(current)
    return words


@tool("xargs")
async def xargs(process: Process, args: list[str]) -> int:
    options = parse(
        args,
        "0rtpxo",
        "nIdPLsE",
        long={
            "null": "0",
            "no-run-if-empty": "r",
            "max-args=": "n",
            "max-procs=": "P",
            "verbose": "t",
            "delimiter=": "d",
        },
        stop_early=True,
    )
    command = options.operands or ["echo"]
    data = await whole(process, process.fd(0))
    text = data.decode(errors="surrogateescape")
    if "I" in options:
        items = [line.strip() for line in text.split("\n") if line.strip()]
    elif "0" in options:
        items = [item for item in text.split("\0") if item]
    elif "d" in options:
        items = text.removesuffix("\n").split(options.value("d").replace("\\n", "\n"))
        items = items if text else []
    elif "L" in options:
        items = [line for line in text.split("\n") if line.strip()]
    else:
        items = _quoted_words(text)
    status = 0
    for words in _commands(options, command, items):
        if "t" in options:
            await process.error(" ".join(words) + "\n")
        code = await _run_item(process, words)
        if code in (126, 127):
            return code
        if code == 255:
            await process.error(f"xargs: {words[0]}: exited with status 255; aborting\n")
            return 124
        if code > 128:
            await process.error(f"xargs: {words[0]}: terminated by signal {code - 128}\n")
            return 125
        if code:
            status = 123
    return status


def _commands(options: Options, command: list[str], items: list[str]) -> list[list[str]]:
    if "I" in options:
        mark = options.value("I")
        return [[word.replace(mark, item) for word in command] for item in items]
    if "L" in options:
        size = _positive(options.value("L"))
        groups = [items[i : i + size] for i in range(0, len(items), size)]
        return [[*command, *(word for line in group for word in line.split())] for group in groups]
    size = _positive(options.value("n")) if "n" in options else MAX_ARGUMENTS
    if not items:
        return [] if "r" in options else [command]
    return [[*command, *items[i : i + size]] for i in range(0, len(items), size)]


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise UsageError(f'invalid number "{text}" for -n option')
    return int(text)


async def _run_item(process: Process, words: list[str]) -> int:
    saved = process.fds.get(0)
    process.fds[0] = NullFile()
    try:
        return await run_program(process, words, "xargs")
    finally:
        if saved is not None:
            process.fds[0] = saved


@tool("env")
async def env(process: Process, args: list[str]) -> int:
    options = parse(args, "i0", "uSC", long={"ignore-environment": "i", "unset=": "u", "null": "0"}, stop_early=True)
    environment = {} if "i" in options or "-" in options.operands[:1] else dict(process.env)
    words = [word for word in options.operands if word != "-"] if "-" in options.operands[:1] else options.operands
    for name in options.all("u"):
        environment.pop(name, None)
    while words and re.match(r"[^=]+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if not words:
        end = "\0" if "0" in options else "\n"
        await process.write("".join(f"{name}={value}{end}" for name, value in environment.items()))
        return 0
    try:
        process.execute(words, environment)
    except ExecError as error:
        text = f"can't execute '{words[0]}'" if speaks_busybox(process) else f"'{words[0]}'"
        await process.error(f"env: {text}: {_REASONS[error.status]}\n")
        return error.status
    return 0


@tool("nohup", "nice")
async def nohup(process: Process, args: list[str]) -> int:
    words = args[2:] if args[:1] == ["-n"] else [arg for arg in args[:1] if not arg.startswith("-")] + args[1:]
    if not words:
        if process.name == "nice":
            await process.write("0\n")
            return 0
        raise UsageError("missing operand")
    if process.name == "nohup":
        process.ignore(1)
    return await run_program(process, words, process.name)


@tool("time")
async def time(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if arg not in ("-p", "-v")] if args[:1] and args[0].startswith("-") else args
    started = process.clock.now
    status = await run_program(process, words, "time") if words else 0
    minutes, seconds = divmod(process.clock.now - started, 60)
    await process.error(f"real\t{int(minutes)}m {seconds:.2f}s\nuser\t0m 0.00s\nsys\t0m 0.00s\n")
    return status


@tool("watch")
async def watch(process: Process, args: list[str]) -> int:
    options = parse(args, "dteg", "n", long={"interval=": "n", "no-title": "t"}, stop_early=True)
    interval = max(0.1, duration(options.value("n", "2")) or 2.0)
    if not options.operands:
        raise UsageError("missing operand")
    command = " ".join(options.operands)
    while True:
        await process.write(f"\x1b[H\x1b[JEvery {interval:.1f}s: {command}\n\n")
        await run_program(process, ["sh", "-c", command], "watch")
        await process.sleep(interval)


@tool("which")
async def which(process: Process, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    status = 0 if names else 1
    for name in names:
        found = process.files.search(name, process.env.get("PATH", ""))
        if found is None or not process.files.is_file(found) or not process.files.may(found, 1):
            status = 1
        else:
            await process.write(f"{found}\n")
    return status
