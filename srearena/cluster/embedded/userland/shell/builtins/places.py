"""Builtins that print or move: echo, printf, test, pwd, cd."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from srearena.cluster.embedded.userland.shell.builtins.registry import builtin
from srearena.cluster.embedded.userland.shell.conditions import ConditionError, evaluate_test
from srearena.cluster.embedded.userland.tools.printing import echoed, format_text

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


@builtin("echo")
async def echo(shell: Shell, args: list[str]) -> int:
    text = echoed(args, shell.dialect.echo_flags, always_escape=shell.dialect.echo_always_escapes)
    return await shell.print("echo", text)


@builtin("printf")
async def printf(shell: Shell, args: list[str]) -> int:
    if shell.dialect.name == "bash" and len(args) > 2 and args[0] == "-v":
        text, _ = format_text(args[2:])
        shell.assign(args[1], text.decode(errors="surrogateescape"))
        return 0
    if args and args[0] == "--":
        args = args[1:]
    if not args:
        await shell.complain("printf: usage: printf format [arg ...]")
        return 2
    text, errors = format_text(args, plain=not shell.dialect.extended)
    status = await shell.print("printf", text)
    for error in errors:
        await shell.complain(f"printf: {error}")
    return status or int(bool(errors))


@builtin("test")
async def test(shell: Shell, args: list[str]) -> int:
    return await _test(shell, "test", args)


@builtin("[")
async def bracket(shell: Shell, args: list[str]) -> int:
    if not args or args[-1] != "]":
        await shell.complain("[: missing ]" if shell.dialect.name != "bash" else "[: missing `]'")
        return 2
    return await _test(shell, "[", args[:-1])


async def _test(shell: Shell, name: str, args: list[str]) -> int:
    try:
        return int(not evaluate_test(shell.process, args, extended=shell.dialect.extended))
    except ConditionError as error:
        await shell.complain(f"{name}: {error.message}")
        return 2


@builtin("pwd")
async def pwd(shell: Shell, args: list[str]) -> int:
    if "-P" in args:
        return await shell.print("pwd", f"{shell.process.files.canonical('.')}\n".encode())
    return await shell.print("pwd", f"{shell.directory}\n".encode(errors="surrogateescape"))


@builtin("cd", "chdir")
async def cd(shell: Shell, args: list[str]) -> int:
    words = [arg for arg in args if arg not in ("-L", "-P", "--")]
    target = words[0] if words else shell.variables.get("HOME") or ""
    shown = False
    if not target and not words:
        if shell.dialect.name == "bash":
            await shell.complain("cd: HOME not set")
            return 1
        return 0
    if target == "-":
        target = shell.variables.get("OLDPWD") or ""
        shown = True
        if not target:
            await shell.complain("cd: OLDPWD not set")
            return 1 if shell.dialect.name == "bash" else 2
    logical = posixpath.normpath(posixpath.join(shell.directory, target))
    logical = "/" + logical.lstrip("/")
    files = shell.process.files
    try:
        found = files.stat(target if target.startswith("/") else logical)
        if not found.is_dir:
            raise NotADirectoryError(20, "Not a directory")
        if not shell.process.credentials.may(found.node.mode, found.node.uid, found.node.gid, 1):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        texts = {"dash": f"cd: can't cd to {target}", "busybox": f"cd: can't cd to {target}: {error.strerror}"}
        await shell.complain(texts.get(shell.dialect.name, f"cd: {target}: {error.strerror}"))
        return 2 if shell.dialect.name == "dash" else 1
    shell.assign("OLDPWD", shell.directory)
    shell.process.cwd = found.path
    shell.directory = found.path if "-P" in args else logical
    shell.assign("PWD", shell.directory)
    if shown:
        await shell.process.write(f"{shell.directory}\n")
    return 0
