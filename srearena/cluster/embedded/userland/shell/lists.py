"""What stands between commands: lists (`;`, `&&`, `||`, `&`) and pipelines (`|`, `!`, `time`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.files.streams import NullFile, OpenFile, Pipe
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.shell import quoting
from srearena.cluster.embedded.userland.shell.children import Job, cannot_fork, wait_for
from srearena.cluster.embedded.userland.shell.redirection import copied, dropped
from srearena.cluster.embedded.userland.shell.syntax import AndOr, Background, Pipeline, Sequence

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


async def run_sequence(shell: Shell, node: Sequence, tail: bool) -> int:
    last = len(node.items) - 1
    status = 0
    for index, item in enumerate(node.items):
        status = shell.status = await shell.run(item, tail and index == last)
    return status


async def run_and_or(shell: Shell, node: AndOr, tail: bool) -> int:
    shell.unchecked += 1
    try:
        status = shell.status = await shell.run(node.left)
    finally:
        shell.unchecked -= 1
    if (status == 0) == (node.operator == "&&"):
        return await shell.run(node.right, tail)
    return status


async def run_background(shell: Shell, node: Background, tail: bool) -> int:
    table = copied(shell.process.fds)
    if not shell.interactive and 0 in table:
        table.pop(0).release()
        table[0] = NullFile()
    try:
        child = shell.fork(node.body, table, group=0 if shell.interactive else None)
    except OSError as error:
        return await cannot_fork(shell, error)
    finally:
        dropped(table)
    shell.last_background = child.pid
    number = max((job.number for job in shell.jobs), default=0) + 1
    shell.jobs.append(Job(number, child, quoting.command_text(node.body)))
    if shell.interactive:
        await shell.process.error(f"[{number}] {child.pid}\n")
    return 0


async def run_pipeline(shell: Shell, node: Pipeline, tail: bool) -> int:
    started = shell.process.clock.now
    if node.negated:
        shell.unchecked += 1
    try:
        if len(node.commands) == 1:
            status = await shell.run(node.commands[0])
        else:
            status = await _run_stages(shell, node)
    finally:
        if node.negated:
            shell.unchecked -= 1
    if node.timed:
        await _report_time(shell, shell.process.clock.now - started)
    if node.negated:
        return int(status == 0)
    return status if len(node.commands) == 1 else shell.checked(status)


async def _report_time(shell: Shell, seconds: float) -> None:
    minutes, rest = divmod(seconds, 60)
    rows = (("real", minutes, rest), ("user", 0, 0.0), ("sys", 0, 0.0))
    digits = 3 if shell.dialect.name == "bash" else 2
    await shell.process.error("\n" if shell.dialect.name == "bash" else "")
    await shell.process.error("".join(f"{name}\t{int(m)}m{s:.{digits}f}s\n" for name, m, s in rows))


async def _run_stages(shell: Shell, node: Pipeline) -> int:
    children: list[Process] = []
    upstream: OpenFile | None = None
    group = 0 if shell.interactive else None
    for index, command in enumerate(node.commands):
        table = copied(shell.process.fds)
        if upstream is not None:
            if 0 in table:
                table.pop(0).release()
            table[0] = upstream
            upstream = None
        if index < len(node.commands) - 1:
            reader, writer = Pipe(shell.process.clock).ends()
            if 1 in table:
                table.pop(1).release()
            table[1] = writer
            upstream = reader
        try:
            child = shell.fork(command, table, group=group)
        except OSError as error:
            if upstream is not None:
                upstream.release()
            return await cannot_fork(shell, error)
        finally:
            dropped(table)
        if shell.interactive and not children:
            group = child.pid
        children.append(child)
    return await wait_for(shell, children)
