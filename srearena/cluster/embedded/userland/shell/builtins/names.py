"""Builtins about names and values: set, export, read, local, getopts and their kin."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.files.streams import OpenFile
from srearena.cluster.embedded.userland.shell import quoting
from srearena.cluster.embedded.userland.shell.arithmetic import ArithmeticFailure, evaluate
from srearena.cluster.embedded.userland.shell.builtins.flow import number_argument
from srearena.cluster.embedded.userland.shell.builtins.registry import builtin
from srearena.cluster.embedded.userland.shell.control import ExitShell
from srearena.cluster.embedded.userland.shell.variables import ReadOnlyVariable

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
OPTIONS = {
    "allexport": "a",
    "errexit": "e",
    "ignoreeof": "I",
    "interactive": "i",
    "monitor": "m",
    "noclobber": "C",
    "noexec": "n",
    "noglob": "f",
    "nolog": "N",
    "notify": "b",
    "nounset": "u",
    "pipefail": "pipefail",
    "stdin": "s",
    "verbose": "v",
    "xtrace": "x",
}


async def _bad_name(shell: Shell, command: str, name: str) -> int:
    texts = {
        "dash": f"{command}: {name}: bad variable name",
        "busybox": f"{command}: {name}: bad variable name",
        "bash": f"{command}: `{name}': not a valid identifier",
    }
    await shell.complain(texts[shell.dialect.name])
    if shell.dialect.name == "bash" or shell.interactive:
        return 1
    raise ExitShell(2)


async def _readonly(shell: Shell, error: ReadOnlyVariable, command: str = "") -> int:
    prefix = f"{command}: " if command and shell.dialect.name != "bash" else ""
    text = "readonly variable" if shell.dialect.name == "bash" else "is read only"
    await shell.complain(f"{prefix}{error.name}: {text}")
    if shell.dialect.name == "bash" or shell.interactive:
        return 1
    raise ExitShell(2)


@builtin("export")
async def export(shell: Shell, args: list[str]) -> int:
    off = bool(args) and args[0] == "-n"
    names = [arg for arg in args if arg not in ("-n", "-p", "--")]
    if not names:
        await shell.process.write(_listing(shell, "export", shell.variables.exported))
        return 0
    return await _marked(shell, "export", names, lambda name: shell.variables.export(name, on=not off))


async def _marked(shell: Shell, command: str, items: list[str], mark: Callable[[str], None]) -> int:
    """Assign where there is something to assign, then mark."""
    status = 0
    for item in items:
        name, equals, value = item.partition("=")
        if not _NAME.match(name):
            status = await _bad_name(shell, command, name)
            continue
        try:
            if equals:
                shell.assign(name, value)
        except ReadOnlyVariable as error:
            status = await _readonly(shell, error, command)
            continue
        mark(name)
    return status


def _listing(shell: Shell, command: str, names: set[str]) -> str:
    prefix = {"export": "declare -x", "readonly": "declare -r"}[command] if shell.dialect.name == "bash" else command
    lines = []
    for name in sorted(names):
        value = shell.variables.get(name)
        if value is None:
            lines.append(f"{prefix} {name}\n")
        elif shell.dialect.name == "bash":
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{prefix} {name}="{escaped}"\n')
        else:
            lines.append(f"{prefix} {name}={quoting.quoted(value, always=True)}\n")
    return "".join(lines)


@builtin("readonly")
async def readonly(shell: Shell, args: list[str]) -> int:
    names = [arg for arg in args if arg not in ("-p", "--")]
    if not names:
        await shell.process.write(_listing(shell, "readonly", shell.variables.readonly))
        return 0
    return await _marked(shell, "readonly", names, shell.variables.protect)


@builtin("unset")
async def unset(shell: Shell, args: list[str]) -> int:
    functions = "-f" in args
    status = 0
    for name in (arg for arg in args if arg not in ("-f", "-v")):
        if functions:
            shell.functions.pop(name, None)
            continue
        try:
            shell.variables.unset(name)
        except ReadOnlyVariable as error:
            status = await _readonly(shell, error, "unset")
        else:
            if shell.dialect.name == "bash":
                shell.functions.pop(name, None)
    return status


@builtin("local")
async def local(shell: Shell, args: list[str]) -> int:
    if not shell.variables.in_function:
        texts = {"dash": "local: not in a function", "busybox": "local: not in a function"}
        await shell.complain(texts.get(shell.dialect.name, "local: can only be used in a function"))
        if shell.dialect.name == "bash":
            return 1
        raise ExitShell(2)
    for item in args:
        if item.startswith("-"):
            continue
        name, equals, value = item.partition("=")
        if not _NAME.match(name):
            return await _bad_name(shell, "local", name)
        shell.variables.make_local(name)
        try:
            if equals:
                shell.assign(name, value)
            elif shell.dialect.name == "bash":
                shell.variables.unset(name)
        except ReadOnlyVariable as error:
            return await _readonly(shell, error, "local")
    return 0


@builtin("declare", "typeset", extended=True)
async def declare(shell: Shell, args: list[str]) -> int:
    flags = "".join(arg[1:] for arg in args if arg.startswith("-"))
    names = [arg for arg in args if not arg.startswith("-")]
    if shell.variables.in_function and "g" not in flags:
        await local(shell, names)
    else:
        for item in names:
            name, equals, value = item.partition("=")
            if equals:
                shell.assign(name, value)
    for item in names:
        name = item.partition("=")[0]
        if "x" in flags:
            shell.variables.export(name)
        if "r" in flags:
            shell.variables.protect(name)
    return 0


@builtin("set")
async def set_options(shell: Shell, args: list[str]) -> int:
    if not args:
        rows = (
            f"{name}={quoting.quoted(shell.variables.get(name) or '', always=True)}\n"
            for name in sorted(shell.variables)
        )
        await shell.process.write("".join(rows))
        return 0
    index = 0
    while index < len(args):
        word = args[index]
        if word in ("--", "-"):
            shell.arguments = args[index + 1 :]
            if word == "-":
                shell.options -= {"x", "v"}
            return 0
        if not word or word[0] not in "-+" or len(word) < 2:
            shell.arguments = args[index:]
            return 0
        on = word[0] == "-"
        for letter in word[1:]:
            if letter == "o":
                if index + 1 >= len(args):
                    await shell.process.write(_option_listing(shell, on))
                    return 0
                index += 1
                letter = OPTIONS.get(args[index], "")
                if not letter or (letter == "pipefail" and shell.dialect.name == "dash" and not shell.dialect.extended):
                    return await _bad_option(shell, f"-o {args[index]}", args[index])
            elif letter not in "abCefhmnuvxEI":
                return await _bad_option(shell, f"-{letter}", f"-{letter}")
            if on:
                shell.options.add(letter)
            else:
                shell.options.discard(letter)
        index += 1
    return 0


async def _bad_option(shell: Shell, text: str, bare: str) -> int:
    texts = {"dash": f"set: Illegal option {text}", "busybox": f"set: illegal option {text}"}
    await shell.complain(texts.get(shell.dialect.name, f"set: {bare}: invalid option"))
    if shell.dialect.name == "bash":
        return 2
    raise ExitShell(2)


def _option_listing(shell: Shell, table: bool) -> str:
    if table:
        head = "Current option settings\n" if shell.dialect.name != "bash" else ""
        return head + "".join(
            f"{name:<15} {'on' if letter in shell.options else 'off'}\n" for name, letter in OPTIONS.items()
        )
    return "".join(f"set {'-' if letter in shell.options else '+'}o {name}\n" for name, letter in OPTIONS.items())


@builtin("shift")
async def shift(shell: Shell, args: list[str]) -> int:
    count = await number_argument(shell, "shift", args, 1)
    if count > len(shell.arguments):
        if shell.dialect.name == "bash":
            return 1
        await shell.complain("shift: can't shift that many")
        raise ExitShell(2)
    shell.arguments = shell.arguments[count:]
    return 0


@builtin("let", extended=True)
async def let(shell: Shell, args: list[str]) -> int:
    value = 0
    for expression in args:
        try:
            value = evaluate(expression, lambda name: shell.variables.get(name) or "", shell.assign)
        except ArithmeticFailure as failure:
            await shell.complain(f"let: {expression}: {failure}")
            return 1
    return int(value == 0)


@builtin("read")
async def read(shell: Shell, args: list[str]) -> int:
    raw = False
    timeout: float | None = None
    count: int | None = None
    descriptor = 0
    silent = False
    names: list[str] = []
    words = iter(args)
    for word in words:
        if not word.startswith("-") or word == "-" or names:
            names.append(word)
            continue
        for position, letter in enumerate(word[1:], 1):
            if letter == "r":
                raw = True
            elif letter == "s":
                silent = True
            elif letter in "pntud":
                value = word[position + 1 :] or next(words, "")
                if letter == "p" and shell.process.fds.get(0) is not None and shell.process.fd(0).is_tty:
                    await shell.process.error(value)
                elif letter == "n":
                    count = int(value) if value.isdigit() else None
                elif letter == "t":
                    timeout = _seconds(value)
                elif letter == "u" and value.isdigit():
                    descriptor = int(value)
                break
            else:
                await shell.complain(f"read: Illegal option -{letter}")
                return 2
    if not names and shell.dialect.name == "dash":
        await shell.complain("read: arg count")
        return 2
    for name in names:
        if not _NAME.match(name):
            return await _bad_name(shell, "read", name)
    del silent
    line, complete = await _read_line(shell, shell.process.fd(descriptor), raw=raw, timeout=timeout, count=count)
    _distribute(shell, line, names or ["REPLY"], bare=not names)
    return 0 if complete else 1


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


async def _read_line(
    shell: Shell, file: OpenFile, *, raw: bool, timeout: float | None, count: int | None
) -> tuple[str, bool]:
    """A logical line, in which escaped characters are preceded by \\0, and whether it was complete."""
    text = ""
    while True:
        if count is not None:
            data = await file.read(max(1, count))
            return data.decode(errors="surrogateescape").rstrip("\n"), bool(data)
        task = shell.process.spawn_thread(file.read_line())
        if not await task.done.wait(timeout):
            task.cancel()
            return text, False
        data = task.done.value or b""
        line = data.decode(errors="surrogateescape").replace("\0", "")
        complete = line.endswith("\n")
        line = line.removesuffix("\n")
        if raw:
            return text + line, complete
        unescaped, continues = _unescape(line)
        text += unescaped
        if not continues or not complete:
            return text, complete


def _unescape(line: str) -> tuple[str, bool]:
    result: list[str] = []
    index = 0
    while index < len(line):
        if line[index] != "\\":
            result.append(line[index])
            index += 1
        elif index + 1 == len(line):
            return "".join(result), True
        else:
            result.append("\0" + line[index + 1])
            index += 2
    return "".join(result), False


def _distribute(shell: Shell, line: str, names: list[str], *, bare: bool) -> None:
    separators = shell.variables.get("IFS")
    separators = " \t\n" if separators is None else separators
    white = "".join(char for char in separators if char in " \t\n")
    if bare:
        shell.assign("REPLY", line.replace("\0", ""))
        return
    units = _units(line)
    position = 0
    while position < len(units) and units[position] in white and units[position]:
        position += 1
    for index, name in enumerate(names):
        if index == len(names) - 1:
            shell.assign(name, _last_field(units[position:], separators, white))
            return
        field: list[str] = []
        while position < len(units) and (len(units[position]) > 1 or units[position] not in separators):
            field.append(units[position][-1])
            position += 1
        position = _skip_separator(units, position, separators, white)
        shell.assign(name, "".join(field))


def _units(line: str) -> list[str]:
    """Characters; an escaped one keeps its mark and so counts as no separator."""
    units: list[str] = []
    index = 0
    while index < len(line):
        width = 2 if line[index] == "\0" else 1
        units.append(line[index : index + width])
        index += width
    return units


def _skip_separator(units: list[str], position: int, separators: str, white: str) -> int:
    def is_white(index: int) -> bool:
        return index < len(units) and len(units[index]) == 1 and units[index] in white

    while is_white(position):
        position += 1
    if position < len(units) and len(units[position]) == 1 and units[position] in separators and not is_white(position):
        position += 1
        while is_white(position):
            position += 1
    return position


def _last_field(units: list[str], separators: str, white: str) -> str:
    """The last variable gets the rest of the line, without white space at its end."""
    end = len(units)
    while end > 0 and len(units[end - 1]) == 1 and units[end - 1] in white:
        end -= 1
    rest = units[:end]
    hard = [i for i, unit in enumerate(rest) if len(unit) == 1 and unit in separators and unit not in white]
    if len(hard) == 1 and hard[0] == len(rest) - 1:
        # One field followed by its terminator: the terminator is no part of it.
        rest = rest[:-1]
        while rest and len(rest[-1]) == 1 and rest[-1] in white:
            rest = rest[:-1]
    return "".join(unit[-1] for unit in rest)


@builtin("getopts")
async def getopts(shell: Shell, args: list[str]) -> int:
    if len(args) < 2:
        await shell.complain("getopts: usage: getopts optstring var [arg]")
        return 2
    spec, name, *operands = args
    words = operands or shell.arguments
    index = int(shell.variables.get("OPTIND") or "1")
    offset = (
        int(shell.variables.get("_OPTOFFSET") or "1") if index == int(shell.variables.get("_OPTLAST") or "0") else 1
    )
    quiet = spec.startswith(":")
    word = words[index - 1] if index <= len(words) else ""
    if not word.startswith("-") or word == "-" or word == "--":
        shell.assign("OPTIND", str(index + (word == "--")))
        shell.assign(name, "?")
        return 1
    letter = word[offset]
    offset += 1
    finished = offset >= len(word)
    shell.variables.unset("OPTARG")
    result = letter
    position = spec.find(letter)
    if letter == ":" or position < 0:
        result = "?"
        if quiet:
            shell.assign("OPTARG", letter)
        else:
            await shell.process.error(
                f"{shell.name}: Illegal option -{letter}\n"
                if shell.dialect.name != "bash"
                else f"{shell.name}: illegal option -- {letter}\n"
            )
    elif spec[position + 1 : position + 2] == ":":
        if not finished:
            shell.assign("OPTARG", word[offset:])
        elif index < len(words):
            index += 1
            shell.assign("OPTARG", words[index - 1])
        else:
            result = ":" if quiet else "?"
            if quiet:
                shell.assign("OPTARG", letter)
            else:
                await shell.process.error(
                    f"{shell.name}: No arg for -{letter} option\n"
                    if shell.dialect.name != "bash"
                    else f"{shell.name}: option requires an argument -- {letter}\n"
                )
        finished = True
    index += finished
    shell.assign("OPTIND", str(index))
    shell.assign("_OPTLAST", str(index))
    shell.assign("_OPTOFFSET", str(1 if finished else offset))
    shell.assign(name, result)
    return 0
