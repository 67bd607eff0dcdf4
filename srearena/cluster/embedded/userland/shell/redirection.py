"""Redirections: a copy of the descriptor table with some of it pointing elsewhere.

Every table holds its own references, so undoing a redirection is dropping the copy.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.files.streams import BytesFile, OpenFile, os_error
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import ConnectionFile
from srearena.cluster.embedded.userland.shell.syntax import Redirect
from srearena.cluster.embedded.userland.tools.urls import REASONS

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell

Table = dict[int, OpenFile]
_SOCKET = re.compile(r"/dev/(tcp|udp)/([^/]+)/(\d{1,5})\Z")


class RedirectionError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def copied(table: Table) -> Table:
    return {number: file.retain() for number, file in table.items()}


def dropped(table: Table) -> None:
    for file in table.values():
        file.release()
    table.clear()


async def redirected(shell: Shell, redirects: tuple[Redirect, ...]) -> Table:
    """The shell's descriptors as these redirections change them."""
    table = copied(shell.process.fds)
    try:
        for redirect in redirects:
            await _apply(shell, redirect, table)
    except BaseException:
        dropped(table)
        raise
    return table


def _point(table: Table, number: int, file: OpenFile) -> None:
    old = table.get(number)
    table[number] = file
    if old is not None:
        old.release()


async def _apply(shell: Shell, redirect: Redirect, table: Table) -> None:
    operator = redirect.operator
    default = 0 if operator.startswith("<") else 1
    number = default if redirect.descriptor is None else redirect.descriptor
    if redirect.document is not None:
        _point(
            table, number, BytesFile((await shell.expander.text(redirect.document)).encode(errors="surrogateescape"))
        )
        return
    target = await shell.expander.text(redirect.target)
    if operator == "<<<":
        _point(table, number, BytesFile(f"{target}\n".encode(errors="surrogateescape")))
    elif operator in ("<&", ">&") and (target == "-" or target.isdigit()):
        _duplicate(shell, table, number, target)
    elif operator in ("&>", "&>>") or (operator == ">&" and shell.dialect.extended):
        file = _open(shell, target, "a" if operator == "&>>" else "w")
        _point(table, 1, file)
        _point(table, 2, file.retain())
    elif operator in ("<&", ">&"):
        raise RedirectionError(shell.message_bad_descriptor(target))
    else:
        mode = {"<": "r", "<>": "r+", ">>": "a"}.get(operator, "w")
        if operator == ">" and "C" in shell.options and shell.process.files.is_file(target):
            raise RedirectionError(shell.message_cannot_open(target, os_error(errno.EEXIST), writing=True))
        if shell.dialect.name == "bash" and (place := _SOCKET.match(target)) is not None:
            _point(table, number, await _connect(shell, target, *place.groups()))
        else:
            _point(table, number, _open(shell, target, mode))


async def _connect(shell: Shell, path: str, protocol: str, host: str, port: str) -> OpenFile:
    """bash's own devices: a redirection to /dev/tcp/host/port is a connection."""
    result = await shell.process.container.network.connect(host, int(port), protocol.upper())
    if result.connection is not None:
        return ConnectionFile(result.connection)
    if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
        await shell.complain(f"{host}: {REASONS[result.outcome]}")
        raise RedirectionError(f"{path}: Invalid argument")
    reason = "Connection timed out" if result.outcome is Outcome.TIMEOUT else REASONS[result.outcome]
    await shell.process.error(f"{shell.name}: connect: {reason}\n")
    raise RedirectionError(f"{path}: {reason}")


def _duplicate(shell: Shell, table: Table, number: int, target: str) -> None:
    if target == "-":
        file = table.pop(number, None)
        if file is not None:
            file.release()
        return
    source = table.get(int(target))
    if source is None:
        raise RedirectionError(shell.message_bad_descriptor(target))
    if int(target) != number:
        _point(table, number, source.retain())


def _open(shell: Shell, path: str, mode: str) -> OpenFile:
    try:
        if mode == "r+" and not shell.process.files.exists(path):
            shell.process.open(path, "w").release()
        return shell.process.open(path, mode)
    except OSError as error:
        raise RedirectionError(shell.message_cannot_open(path, error, writing=mode != "r")) from None
