"""Simple commands: assignments, then a function, a builtin or a program, with redirections around it."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from srearena.cluster.embedded.machine.processes.cpu_cost import COMMAND_COST
from srearena.cluster.embedded.machine.processes.execution import ExecError, Replaced
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.shell import quoting
from srearena.cluster.embedded.userland.shell.builtins.registry import SPECIAL, builtin_named
from srearena.cluster.embedded.userland.shell.children import cannot_fork, wait_for
from srearena.cluster.embedded.userland.shell.control import ExitShell, ReturnFunction
from srearena.cluster.embedded.userland.shell.redirection import RedirectionError, Table, copied, dropped, redirected
from srearena.cluster.embedded.userland.shell.substitution import give_back
from srearena.cluster.embedded.userland.shell.syntax import Node, Simple
from srearena.cluster.embedded.userland.shell.variables import ReadOnlyVariable

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell

MAX_FUNCTION_DEPTH = 64


async def run_simple(shell: Shell, node: Simple, tail: bool) -> int:
    shell.line = node.line
    await shell.step()
    shell.substitution_status = None
    words: list[str] = await shell.expanded(shell.expander.fields(node.words))
    assigned: list[tuple[str, str]] = []
    for assignment in node.assignments:
        value = await shell.expanded(shell.expander.text(assignment.value, assignment=True))
        if assignment.append:
            value = (shell.variables.get(assignment.name) or "") + value
        if not words:
            await shell.expanded(_assign(shell, assignment.name, value))
        assigned.append((assignment.name, value))
    if "x" in shell.options:
        await _trace(shell, words, assigned)
    function = shell.functions.get(words[0]) if words else None
    builtin = builtin_named(words[0], shell.dialect) if words and function is None else None
    try:
        table = None if not node.redirects else await shell.expanded(redirected(shell, node.redirects))
    except RedirectionError as error:
        await shell.complain(error.message)
        status = 2 if shell.dialect.name == "dash" else 1
        if (
            words
            and words[0] in SPECIAL
            and builtin is not None
            and not shell.interactive
            and shell.dialect.name != "bash"
        ):
            raise ExitShell(status) from None
        return shell.checked(status)
    try:
        if not words:
            status = shell.substitution_status or 0
        elif function is not None:
            status = await shell.in_table(
                table, _with_assignments(shell, assigned, lambda: _call(shell, words, function))
            )
        elif builtin is not None:
            if words[0] == "exec":
                return await replace(shell, words[1:], assigned, table)
            if words[0] in SPECIAL and shell.dialect.name != "bash":
                # POSIX: assignments before a special builtin stay.
                for name, value in assigned:
                    await shell.expanded(_assign(shell, name, value))
                assigned = []
            status = await shell.in_table(table, _with_assignments(shell, assigned, lambda: builtin(shell, words[1:])))
        else:
            status = await external(shell, words, assigned, table, tail)
    except ReadOnlyVariable as error:
        await shell.refuse(error)
    finally:
        if table is not None:
            dropped(table)
        if shell.borrowed:
            give_back(shell)
    if shell.process.pending:
        shell.status = status
        await shell.run_pending_traps()
    return shell.checked(status)


async def _assign(shell: Shell, name: str, value: str) -> None:
    shell.assign(name, value)


async def _trace(shell: Shell, words: list[str], assigned: list[tuple[str, str]]) -> None:
    quoted = str if shell.dialect.name == "dash" else quoting.quoted
    shown = [f"{name}={quoted(value) if value else ''}" for name, value in assigned]
    shown += [quoted(word) for word in words]
    prefix = shell.variables.get("PS4")
    await shell.process.error(f"{'+ ' if prefix is None else prefix}{' '.join(shown)}\n")


async def _with_assignments(shell: Shell, assigned: list[tuple[str, str]], work: Callable[[], Awaitable[int]]) -> int:
    """Run something with variables set for its time only."""
    if not assigned:
        return await work()
    saved = [(name, shell.variables.get(name), name in shell.variables.exported) for name, _ in assigned]
    for name, value in assigned:
        await shell.expanded(_assign(shell, name, value))
        shell.variables.export(name)
    try:
        return await work()
    finally:
        for name, value_before, exported in saved:
            if value_before is None:
                shell.variables.unset(name)
            else:
                shell.variables.set(name, value_before)
                shell.variables.export(name, on=exported)


async def _call(shell: Shell, words: list[str], body: Node) -> int:
    if shell.function_depth >= MAX_FUNCTION_DEPTH:
        await shell.complain(f"{words[0]}: maximum function nesting level exceeded ({MAX_FUNCTION_DEPTH})")
        raise ExitShell(2)
    saved, shell.arguments = shell.arguments, words[1:]
    depth, shell.loop_depth = shell.loop_depth, 0
    shell.function_depth += 1
    shell.variables.enter_function()
    try:
        return await shell.run(body)
    except ReturnFunction as leaving:
        return leaving.status
    finally:
        shell.variables.leave_function()
        shell.function_depth -= 1
        shell.arguments = saved
        shell.loop_depth = depth


async def replace(shell: Shell, words: list[str], assigned: list[tuple[str, str]], table: Table | None) -> int:
    """`exec`: become another program, or keep the redirections."""
    if table is not None:
        old, shell.process.fds = shell.process.fds, copied(table)
        dropped(old)
    if not words:
        return 0
    try:
        shell.process.execute(words, {**shell.variables.environment, **dict(assigned)})
    except ExecError as error:
        if error.number == errno.ENOEXEC:
            raise Replaced(_script_entry(shell, words, error.name)) from None
        await shell.complain(_exec_message(shell, error, builtin="exec: "))
        raise ExitShell(error.status) from None
    return 0


def _exec_message(shell: Shell, error: ExecError, builtin: str = "") -> str:
    if error.number == errno.ENOENT and (error.searched or shell.dialect.name != "bash"):
        return builtin + shell.dialect.not_found.format(error.name)
    number = errno.EACCES if error.number == errno.EISDIR and shell.dialect.name != "bash" else error.number
    return f"{builtin}{error.name}: {os.strerror(number)}"


async def external(
    shell: Shell, words: list[str], assigned: list[tuple[str, str]], table: Table | None, tail: bool
) -> int:
    environment: Mapping[str, str] = shell.variables.environment
    if assigned:
        environment = {**environment, **dict(assigned)}
    try:
        if tail and not shell.traps and not shell.interactive:
            if table is not None:
                old, shell.process.fds = shell.process.fds, copied(table)
                dropped(old)
            shell.process.execute(words, environment)
        child = shell.process.spawn(words, env=environment, fds=table)
    except ExecError as error:
        if error.number == errno.ENOEXEC:
            child = shell.process.fork(_script_entry(shell, words, error.name), env=environment, fds=table)
        else:
            await shell.in_table(table, shell.complain(_exec_message(shell, error)))  # type: ignore[arg-type]
            await shell.process.spend(COMMAND_COST)
            return error.status
    except OSError as error:
        return await cannot_fork(shell, error)
    if shell.interactive:
        child.group = child.pid
    # A child's violent end is reported where its errors went; bash alone says it on its own standard error.
    return await shell.in_table(table if shell.dialect.name != "bash" else None, wait_for(shell, [child]))


def _script_entry(shell: Shell, words: list[str], path: str) -> Callable[[Process], Any]:
    """A file without `#!` is taken for a script of this shell."""

    async def entry(process: Process) -> int:
        other = shell.fresh(process, path, words[1:])
        found = process.files.search(path, process.env.get("PATH", "")) or path
        text = process.files.read_text(found)
        return await other.run_to_end(lambda: other.run_text(text))

    return entry
