"""The interface of a wire format. A stream is valid only if its last event has arrived."""

from __future__ import annotations

from typing import Any, Protocol

from srearena.llm.messages import ModelRequest, Reply, Usage


class StreamReader(Protocol):
    """Collects the events of a streamed response."""

    usage: Usage
    """Usage reported so far; for a stream that breaks off, what it has cost."""

    def feed(self, event: str, data: Any) -> str:
        """Process one event; returns the text to show, if any."""

    def reply(self) -> Reply:
        """The complete reply; raises `InvalidResponse` if the last event is missing."""


class Wire(Protocol):
    """A wire format."""

    name: str
    path: str
    """Path below the base URL; `{model}` stands for the model's name."""
    models_path: str
    """Path of the list of models, which costs nothing to request."""

    def headers(self, key: str) -> dict[str, str]: ...

    def body(self, request: ModelRequest) -> dict[str, Any]: ...

    def whole(self, document: Any) -> Reply:
        """The reply in a response that was not streamed; raises `InvalidResponse` if it has none."""

    def reader(self) -> StreamReader: ...


def count(table: Any, *path: str) -> int:
    """An integer at a path in a document; 0 if there is none."""
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, int) and not isinstance(table, bool) else 0


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}
