"""Whether a program can log in to its MySQL database, and what its driver says if not."""

from __future__ import annotations

from srearena.cluster.program_models import Outcome, Process
from srearena.cluster.program_models.datastores import Dialogue


async def login_trouble(process: Process, host: str, port: int, user: str, password: str, database: str) -> str:
    """Connect, log in, leave; "" where that worked."""
    result = await process.container.network.connect(host, port, timeout=10.0)
    if result.outcome is not Outcome.CONNECTED or result.connection is None:
        return "Communications link failure"
    try:
        if not await result.connection.read():
            return "Communications link failure"
        dialogue = await Dialogue.open(result.connection)
        reply = await dialogue.ask({"hello": {"user": user, "password": password, "database": database}})
    except OSError:
        reply = None
    finally:
        result.connection.close()
    if reply is None:
        return "Communications link failure"
    return str(reply.get("error", ""))
