"""Substitution: a command's output as text, or as a file behind which it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.files.streams import Pipe
from srearena.cluster.embedded.userland.shell.children import cannot_fork
from srearena.cluster.embedded.userland.shell.limits import MAX_TEXT
from srearena.cluster.embedded.userland.shell.redirection import copied, dropped
from srearena.cluster.embedded.userland.shell.syntax import Node

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


async def substitute(shell: Shell, node: Node) -> str:
    """What a command prints, without its trailing newlines."""
    reader, writer = Pipe(shell.process.clock).ends()
    table = copied(shell.process.fds)
    if 1 in table:
        table.pop(1).release()
    table[1] = writer
    try:
        child = shell.fork(node, table)
    except OSError as error:
        reader.release()
        await cannot_fork(shell, error)
        return ""
    finally:
        dropped(table)
    chunks: list[bytes] = []
    size = 0
    while size <= MAX_TEXT and (data := await reader.read()):
        chunks.append(data)
        size += len(data)
    reader.release()
    shell.substitution_status = await shell.process.wait(child)
    if shell.dialect.name == "bash":
        shell.status = shell.substitution_status
    text = b"".join(chunks).replace(b"\0", b"").rstrip(b"\n")
    return text.decode(errors="surrogateescape")


def substitute_process(shell: Shell, node: Node, *, reading: bool) -> str:
    """Run a command at the other end of a pipe, and name this end."""
    reader, writer = Pipe(shell.process.clock).ends()
    number = next(n for n in range(63, 0, -1) if n not in shell.process.fds)
    near, far, standard = (reader, writer, 1) if reading else (writer, reader, 0)
    table = copied(shell.process.fds)
    if standard in table:
        table.pop(standard).release()
    table[standard] = far
    try:
        shell.helpers.append(shell.fork(node, table))
    finally:
        dropped(table)
    shell.process.set_fd(number, near)
    shell.borrowed.append(number)
    return f"/dev/fd/{number}"


def give_back(shell: Shell) -> None:
    """Close what process substitutions opened for a command that is over now."""
    for number in shell.borrowed:
        shell.process.close_fd(number)
    shell.borrowed = []
