"""Server-sent events from bytes. Lines end at a line feed only: JSON may hold every other separator there is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from clients.llm.wires.base import BrokenStream

_END_SECONDS = 0.5
_LONGEST = 16 * 1024 * 1024


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, Any]]:
    """Each event's name and its data as JSON; ends at `[DONE]` or with the bytes."""
    name = ""
    data: list[str] = []
    lines = _lines(chunks)
    async for line in lines:
        if not line:
            if data:
                text = "\n".join(data)
                if text.strip() == "[DONE]":
                    await _rest(lines)
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


async def _rest(lines: AsyncIterator[str]) -> None:
    """Read on to the end, if it comes soon: only then can the connection carry the next question."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in lines:
                pass
    except TimeoutError:
        pass


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST:
            raise BrokenStream("one event is larger than any answer should be")
        for line in whole:
            yield line.rstrip(b"\r").decode("utf-8", "replace")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise BrokenStream(f"an event is not JSON: {text[:100]!r}") from problem
