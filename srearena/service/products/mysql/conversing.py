"""How a MySQL server talks on a connection: with the simulated client in full, with a real one up to the greeting."""

from __future__ import annotations

from typing import Any

from srearena.cluster.program_models import Connection
from srearena.cluster.program_models.datastores import Dialogue, Login
from srearena.service.products.mysql.errors import MysqlError
from srearena.service.products.mysql.execution import Execution
from srearena.service.products.mysql.server import MysqlServer, Session

_GREETING = b"12345678\0" + bytes(40)


async def converse(server: MysqlServer, connection: Connection) -> None:
    """Serve one connection to its end. The server speaks first, as the protocol wants it."""
    body = b"\x0a" + server.version.encode() + b"\0" + bytes((8, 0, 0, 0)) + _GREETING
    await connection.write(len(body).to_bytes(3, "little") + b"\0" + body)
    first = await connection.read()
    dialogue = Dialogue.opened(connection, first)
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
    here = connection.local[0].startswith("127.")
    host = "localhost" if here else connection.peer[0]
    refused = server.admits(login, host)
    if refused is not None:
        if refused.number == 1045:
            server.note(f"[MY-010926] [Server] {refused.message}", number=server.connected + 8)
        await dialogue.say(_failure(refused))
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
        # Nothing is said to who was killed, before the statement or during it.
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
