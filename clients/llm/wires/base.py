"""What every wire offers. A stream counts only when its last event has come; anything less is a `BrokenStream`."""

from __future__ import annotations

from typing import Any, Protocol

from clients.llm.messages import Ask, Reply, Usage


class BrokenStream(Exception):
    """The answer ended before its end, or is not what the endpoint promised to send; asking again may help."""


class StreamReader(Protocol):
    usage: Usage
    """As far as it is known; what a broken stream has cost."""

    def feed(self, event: str, data: Any) -> str:
        """Take one event; the piece of text to show, if there is one."""

    def reply(self) -> Reply:
        """The whole answer; BrokenStream where its end has not come."""


class Wire(Protocol):
    name: str
    path: str

    def headers(self, key: str) -> dict[str, str]: ...

    def body(self, ask: Ask) -> dict[str, Any]: ...

    def whole(self, document: Any) -> Reply:
        """An answer that was not streamed; BrokenStream where it is none."""

    def reader(self) -> StreamReader: ...


def count(table: Any, *path: str) -> int:
    """A number deep in a document; 0 where there is none."""
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, int) and not isinstance(table, bool) else 0


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}
