"""The shells as programs: how one starts, where its commands come from, and what it is when typed at."""

from __future__ import annotations

import errno
from signal import Signals

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.machine.processes.terminal import Terminal, terminal_of
from srearena.cluster.embedded.userland.shell.builtins.names import OPTIONS
from srearena.cluster.embedded.userland.shell.control import ExitShell, Interrupt, ReturnFunction
from srearena.cluster.embedded.userland.shell.dialect import BASH, BUSYBOX, DASH, Dialect
from srearena.cluster.embedded.userland.shell.interpreter import Shell
from srearena.cluster.embedded.userland.shell.parser import Parser
from srearena.cluster.embedded.userland.shell.tokens import ShellSyntaxError
from srearena.cluster.embedded.userland.tools.registry import Tool, tool, tool_names


@tool("sh")
async def sh(process: Process, args: list[str]) -> int:
    kind = process.container.program.family.shell
    return await run_shell(process, args, {"busybox": BUSYBOX, "bash": BASH}.get(kind, DASH))


@tool("ash")
async def ash(process: Process, args: list[str]) -> int:
    return await run_shell(process, args, BUSYBOX)


@tool("dash")
async def dash(process: Process, args: list[str]) -> int:
    return await run_shell(process, args, DASH)


@tool("bash")
async def bash(process: Process, args: list[str]) -> int:
    return await run_shell(process, args, BASH)


@tool("busybox")
async def busybox(process: Process, args: list[str]) -> int:
    """One binary for everything: the name it is called by says what it is."""
    name = process.name
    if name == "busybox":
        if not args or args[0] in ("--help", "--list"):
            known = sorted(tool_names() & set(process.container.program.family.tools))
            await process.write("BusyBox v1.36.1 multi-call binary.\n" if not args else "")
            await process.write("\n".join(known) + "\n")
            return 0
        name, args = args[0], args[1:]
        process.argv = [name, *args]
        process.name = name
    if name not in process.container.program.family.tools or name not in tool_names():
        await process.error(f"{name}: applet not found\n")
        return 127
    if name == "sh":
        return await run_shell(process, args, BUSYBOX)
    return await Tool(name).run(process)


async def run_shell(process: Process, args: list[str], dialect: Dialect) -> int:
    options: set[str] = set()
    command: str | None = None
    wants_command = forced_interactive = from_stdin = False
    words = list(args)
    while words and words[0][:1] in ("-", "+") and len(words[0]) > 1:
        word = words.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            continue
        for letter in word[1:]:
            if letter == "c":
                wants_command = True
            elif letter == "i":
                forced_interactive = True
            elif letter == "s":
                from_stdin = True
            elif letter == "o" and words:
                options.add(OPTIONS.get(words.pop(0), ""))
            elif letter != "l":
                options.add(letter)
    options.discard("")
    name = process.argv[0] if process.argv else dialect.name
    shell = Shell(process, dialect, name)
    if wants_command:
        if not words:
            await process.error(f"{name}: {'0: ' if dialect.name == 'dash' else ''}-c requires an argument\n")
            return 2
        command = words.pop(0)
    if command is None and words and not from_stdin:
        return await _run_script(shell, words, options)
    if command is not None and words:
        shell.name = words.pop(0)
    shell.arguments = words
    shell.options = options
    if command is not None:
        text = command
        return await shell.run_to_end(lambda: shell.run_text(text, tail=True))
    terminal = terminal_of(process.fd(0)) if 0 in process.fds else None
    if terminal is not None or forced_interactive:
        return await _interact(shell, terminal)
    return await shell.run_to_end(lambda: _run_stdin(shell))


async def _run_script(shell: Shell, words: list[str], options: set[str]) -> int:
    path = words[0]
    process = shell.process
    found = (
        path if process.files.exists(path) or "/" in path else process.files.search(path, process.env.get("PATH", ""))
    )
    try:
        text = process.files.read_text(found if found is not None else path)
    except OSError as error:
        name = shell.dialect.name
        reason = str(error.strerror)
        if name == "dash":
            missing = error.errno == errno.ENOENT
            await process.error(f"{shell.name}: 0: cannot open {path}: {'No such file' if missing else reason}\n")
            return 2 if missing else 126
        if name == "busybox":
            await process.error(f"{shell.name}: can't open '{path}': {reason}\n")
            return 2
        await process.error(f"{shell.name}: {path}: {reason}\n")
        return 127 if error.errno == errno.ENOENT else 126
    shell.name = path
    shell.arguments = words[1:]
    shell.options = options
    shell.is_script = True
    return await shell.run_to_end(lambda: shell.run_text(text))


async def _run_stdin(shell: Shell) -> int:
    """Commands from standard input, one at a time, leaving the rest for the commands themselves to read."""
    pending = ""
    line = 1
    while True:
        data = await shell.process.fd(0).read_line()
        pending += data.decode(errors="surrogateescape")
        if not pending:
            return shell.status
        try:
            parser = Parser(pending, shell.dialect, line=line)
            nodes = []
            while (node := parser.next_command()) is not None:
                nodes.append(node)
            if data and (pending.endswith("\\\n") or parser.awaits_document):
                continue
        except ShellSyntaxError as error:
            if error.incomplete and data:
                continue
            shell.line = error.line
            await shell.complain(error.message)
            raise ExitShell(2) from None
        line += pending.count("\n")
        pending = ""
        for node in nodes:
            shell.status = await shell.run(node)
        if not data:
            return shell.status


def _prompt(shell: Shell) -> str:
    prompt = shell.variables.get("PS1")
    process = shell.process
    root = process.credentials.uid == 0
    home = shell.variables.get("HOME") or ""
    place = shell.directory
    if home and home != "/" and (place == home or place.startswith(f"{home}/")):
        place = "~" + place[len(home) :]
    accounts = process.container.program.accounts(process.container.files)
    values = {
        "$": "#" if root else "$",
        "w": place,
        "W": place.rpartition("/")[2] or "/",
        "h": process.container.host.hostname.partition(".")[0],
        "H": process.container.host.hostname,
        "u": accounts.by_uid(process.credentials.uid).name or "I have no name!",
        "s": shell.dialect.name,
        "n": "\n",
        "\\": "\\",
        "[": "",
        "]": "",
    }
    template = prompt if prompt is not None else shell.dialect.prompt
    if shell.dialect.name == "dash":
        return template.replace("\\$", values["$"]) if prompt is None else prompt
    text: list[str] = []
    index = 0
    while index < len(template):
        if template[index] == "\\" and index + 1 < len(template):
            index += 1
            text.append(values.get(template[index], "\\" + template[index]))
        else:
            text.append(template[index])
        index += 1
    return "".join(text)


async def _interact(shell: Shell, terminal: Terminal | None) -> int:
    """Prompt, read, run, until ^D or exit."""
    process = shell.process
    shell.terminal = terminal
    if terminal is not None:
        process.group = process.pid
        terminal.foreground = process
    process.ignore(Signals.SIGTERM)
    process.ignore(Signals.SIGQUIT)
    process.ignore(Signals.SIGTSTP)

    def interrupt(number: int) -> None:
        shell.interrupted = True

    process.handle(Signals.SIGINT, interrupt)
    return await shell.run_to_end(lambda: _read_and_run(shell, terminal))


async def _read_and_run(shell: Shell, terminal: Terminal | None) -> int:
    process = shell.process
    pending = ""
    while True:
        shell.interrupted = False
        await process.error(_prompt(shell) if not pending else "> ")
        data = await (process.fd(0).read_line() if terminal is None else terminal.read_line())
        if data is None:
            pending = ""
            shell.status = 130
            continue
        if not data:
            if terminal is not None:
                await process.error("exit\n" if shell.dialect.name == "bash" else "\n")
            return shell.status
        pending += data.decode(errors="surrogateescape")
        shell.line = 1
        try:
            parser = Parser(pending, shell.dialect)
            nodes = []
            while (node := parser.next_command()) is not None:
                nodes.append(node)
            if pending.endswith("\\\n") or parser.awaits_document:
                continue
        except ShellSyntaxError as error:
            if error.incomplete:
                continue
            pending = ""
            shell.status = 2
            await shell.complain(error.message)
            continue
        pending = ""
        try:
            for node in nodes:
                shell.status = await shell.run(node)
        except Interrupt:
            shell.status = 130
            await process.error("\n")
        except ReturnFunction as leaving:
            shell.status = leaving.status
