"""Checking whether a program can log in to its MySQL database."""

from __future__ import annotations

from srearena.cluster.program_models import Outcome, Process
from srearena.cluster.program_models.datastores import Dialogue


async def login_error(process: Process, host: str, port: int, user: str, password: str, database: str) -> str:
    """Connect, log in and disconnect; returns the driver's error, or "" on success."""
    result = await process.container.network.connect(host, port, timeout=10.0)
    if result.outcome is not Outcome.CONNECTED or result.connection is None:
        return "Communications link failure"
    try:
        if not await result.connection.read():
            return "Communications link failure"
        dialogue = await Dialogue.open(result.connection, "mysql")
        reply = await dialogue.ask({"hello": {"user": user, "password": password, "database": database}})
    except OSError:
        reply = None
    finally:
        result.connection.close()
    if reply is None:
        return "Communications link failure"
    return str(reply.get("error", ""))
