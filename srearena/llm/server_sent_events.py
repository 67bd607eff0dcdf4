"""A parser for server-sent events. Lines end at a line feed only: JSON may contain every other line separator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from srearena.llm.errors import InvalidResponse

_END_SECONDS = 0.5  # chosen: a server that closes its response does so within one round trip
_LONGEST_LINE = 16 * 1024 * 1024  # chosen: far more than any model writes


async def parse_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, Any]]:
    """Yield each event's name and its data as JSON, up to `[DONE]` or the end of the bytes."""
    name = ""
    data: list[str] = []
    lines = _lines(chunks)
    async for line in lines:
        if not line:
            if data:
                text = "\n".join(data)
                if text.strip() == "[DONE]":
                    await _drain(lines)
                    return
                yield name, _json(text)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)


async def _drain(lines: AsyncIterator[str]) -> None:
    """Read to the end of the response if it comes soon: only then can the connection be reused."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in lines:
                pass
    except TimeoutError:
        pass


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    partial = b""
    async for chunk in chunks:
        *complete, partial = (partial + chunk).split(b"\n")
        if len(partial) > _LONGEST_LINE:
            raise InvalidResponse("one event is larger than any reply should be")
        for line in complete:
            yield line.rstrip(b"\r").decode("utf-8", "replace")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise InvalidResponse(f"an event is not JSON: {text[:100]!r}") from problem
