"""MULTI and EXEC, and messages to subscribers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, Status, Value

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer, Session

OK = Status("OK")
QUEUED = Status("QUEUED")
NOT_QUEUED = frozenset(("MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "QUIT", "RESET"))


def multi(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    if session.queue is not None:
        return RespError("ERR MULTI calls can not be nested")
    session.queue = []
    return OK


def execute(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    queue, session.queue = session.queue, None
    if queue is None:
        return RespError("ERR EXEC without MULTI")
    return [server.answer(session, name, words) for name, words in queue]


def discard(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    if session.queue is None:
        return RespError("ERR DISCARD without MULTI")
    session.queue = None
    return OK


def publish(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    return sum(1 for tell in server.subscribers.get(args[0], ()) if tell(args[0], args[1]) is None)
