"""Connections of a MySQL server: a simulated client is served in full, a real one up to the greeting."""

from __future__ import annotations

from typing import Any

from srearena.cluster.program_models import Connection
from srearena.cluster.program_models.datastores import Dialogue, Login
from srearena.service.products.mysql.errors import MysqlError
from srearena.service.products.mysql.execution import Execution
from srearena.service.products.mysql.server import MysqlServer, Session

_GREETING = b"12345678\0" + bytes(40)


async def serve_connection(server: MysqlServer, connection: Connection) -> None:
    """Serve one connection until it closes. As in the real protocol, the server sends the first message."""
    body = b"\x0a" + server.version.encode() + b"\0" + bytes((8, 0, 0, 0)) + _GREETING
    await connection.write(len(body).to_bytes(3, "little") + b"\0" + body)
    first = await connection.read()
    dialogue = Dialogue.opened(connection, first, "mysql")
    if dialogue is None:
        if first:
            refusal = b"\xff\x15\x04#28000Access denied for user"
            await connection.write(len(refusal).to_bytes(3, "little") + b"\x02" + refusal)
        return
    message = await dialogue.hear()
    if message is None:
        return
    hello = message["hello"]
    login = Login(str(hello["user"]), str(hello["password"]), str(hello["database"]))
    is_local = connection.local[0].startswith("127.")
    host = "localhost" if is_local else connection.peer[0]
    error = server.admits(login, host)
    if error is not None:
        if error.number == 1045:
            server.note(f"[MY-010926] [Server] {error.message}", number=server.connected + 8)
        await dialogue.say(_failure(error))
        return
    session = server.open(login, host)
    try:
        await dialogue.say({"ok": True, "version": server.version, "number": session.number})
        await _serve(server, session, dialogue)
    finally:
        server.close(session)


async def _serve(server: MysqlServer, session: Session, dialogue: Dialogue) -> None:
    execution = Execution(server, session)
    while (message := await dialogue.hear()) is not None:
        reply = None if session.killed else await _reply(execution, str(message["sql"]))
        # A killed session gets no reply, whether it was killed before the statement or during it.
        if session.killed or reply is None:
            return
        await dialogue.say(reply)


async def _reply(execution: Execution, statement: str) -> dict[str, Any]:
    try:
        answer = await execution.run(statement)
    except MysqlError as error:
        return _failure(error)
    return {name: getattr(answer, name) for name in answer.__slots__}


def _failure(error: MysqlError) -> dict[str, Any]:
    return {"error": error.message, "number": error.number, "state": error.state}
