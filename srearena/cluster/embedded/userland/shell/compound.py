"""Compound commands: conditions, loops, case, groups, functions, and redirections around them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.userland import glob_patterns
from srearena.cluster.embedded.userland.shell.children import cannot_fork, wait_for
from srearena.cluster.embedded.userland.shell.conditions import ConditionError, evaluate_conditional
from srearena.cluster.embedded.userland.shell.control import BreakLoop, ContinueLoop
from srearena.cluster.embedded.userland.shell.redirection import RedirectionError, copied, dropped, redirected
from srearena.cluster.embedded.userland.shell.substitution import give_back
from srearena.cluster.embedded.userland.shell.syntax import (
    ArithmeticCommand,
    Case,
    Conditional,
    For,
    ForArithmetic,
    Function,
    Group,
    If,
    Loop,
    Node,
    Redirected,
    Subshell,
)
from srearena.cluster.embedded.userland.shell.variables import ReadOnlyVariable

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


async def _condition(shell: Shell, node: Node) -> bool:
    shell.unchecked += 1
    try:
        shell.status = await shell.run(node)
    finally:
        shell.unchecked -= 1
    return shell.status == 0


async def run_if(shell: Shell, node: If, tail: bool) -> int:
    for condition, body in node.branches:
        if await _condition(shell, condition):
            return await shell.run(body, tail)
    return 0 if node.otherwise is None else await shell.run(node.otherwise, tail)


def _leaves_loop(leaving: BreakLoop) -> bool:
    """Whether this loop ends; outer ones get what is left of the break or continue."""
    if leaving.levels > 1:
        leaving.levels -= 1
        raise leaving
    return not isinstance(leaving, ContinueLoop)


async def run_loop(shell: Shell, node: Loop, tail: bool) -> int:
    status = 0
    shell.loop_depth += 1
    try:
        while True:
            try:
                if await _condition(shell, node.condition) is node.until:
                    return status
                status = shell.status = await shell.run(node.body)
            except BreakLoop as leaving:
                status = 0
                if _leaves_loop(leaving):
                    return status
    finally:
        shell.loop_depth -= 1


async def _assign(shell: Shell, name: str, value: str) -> None:
    try:
        shell.assign(name, value)
    except ReadOnlyVariable as error:
        await shell.refuse(error)


async def run_for(shell: Shell, node: For, tail: bool) -> int:
    shell.line = node.line
    items = shell.arguments if node.words is None else await shell.expanded(shell.expander.fields(node.words))
    status = 0
    shell.loop_depth += 1
    try:
        for item in list(items):
            await shell.step()
            await _assign(shell, node.name, item)
            try:
                status = shell.status = await shell.run(node.body)
            except BreakLoop as leaving:
                status = 0
                if _leaves_loop(leaving):
                    break
        return status
    finally:
        shell.loop_depth -= 1


async def run_for_arithmetic(shell: Shell, node: ForArithmetic, tail: bool) -> int:
    status = 0
    empty = not "".join(getattr(part, "text", "x") for part in node.condition.parts).strip()
    await shell.expanded(shell.expander.arithmetic(node.start))
    shell.loop_depth += 1
    try:
        while empty or await shell.expanded(shell.expander.arithmetic(node.condition)):
            await shell.step()
            try:
                status = shell.status = await shell.run(node.body)
            except BreakLoop as leaving:
                status = 0
                if _leaves_loop(leaving):
                    break
            await shell.expanded(shell.expander.arithmetic(node.step))
        return status
    finally:
        shell.loop_depth -= 1


async def run_case(shell: Shell, node: Case, tail: bool) -> int:
    await shell.step()
    subject = await shell.expanded(shell.expander.text(node.subject))
    falling = False
    status = 0
    for item in node.items:
        if not falling:
            for pattern in item.patterns:
                text = await shell.expanded(shell.expander.pattern(pattern))
                if glob_patterns.compiled(text).matches(subject):
                    break
            else:
                continue
        status = 0 if item.body is None else await shell.run(item.body, tail and not item.falls_through)
        falling = item.falls_through
        if not falling:
            return status
    return status


async def run_subshell(shell: Shell, node: Subshell, tail: bool) -> int:
    table = copied(shell.process.fds)
    try:
        child = shell.fork(node.body, table, group=0 if shell.interactive else None)
    except OSError as error:
        return await cannot_fork(shell, error)
    finally:
        dropped(table)
    return shell.checked(await wait_for(shell, [child]))


def run_group(shell: Shell, node: Group, tail: bool) -> Awaitable[int]:
    return shell.run(node.body, tail)


async def run_function(shell: Shell, node: Function, tail: bool) -> int:
    shell.functions[node.name] = node.body
    return 0


async def run_conditional(shell: Shell, node: Conditional, tail: bool) -> int:
    shell.line = node.line
    await shell.step()
    try:
        return shell.checked(int(not await shell.expanded(evaluate_conditional(shell, node.words))))
    except ConditionError as error:
        await shell.complain(error.message)
        return shell.checked(2)


async def run_arithmetic(shell: Shell, node: ArithmeticCommand, tail: bool) -> int:
    await shell.step()
    return shell.checked(int(await shell.expanded(shell.expander.arithmetic(node.expression)) == 0))


async def run_redirected(shell: Shell, node: Redirected, tail: bool) -> int:
    try:
        table = await shell.expanded(redirected(shell, node.redirects))
    except RedirectionError as error:
        await shell.complain(error.message)
        return shell.checked(2 if shell.dialect.name == "dash" else 1)
    give_back(shell)
    saved, shell.process.fds = shell.process.fds, table
    try:
        return await shell.run(node.body)
    finally:
        shell.process.fds = saved
        dropped(table)
