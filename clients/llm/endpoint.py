"""One endpoint of a model, asked until it answers or clearly will not.

429, 5xx, timeouts, dropped connections and streams that break off are tried again, later each time; a server that says
when to come back is obeyed. What a broken stream has cost is counted. An optional field that the endpoint complains
about is left out from then on. A refusal (key, credit, model) is not tried again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import httpx
import orjson

from clients.llm.errors import ContextTooLong, ModelRefused, ModelUnavailable, ToolsUnsupported
from clients.llm.events import events
from clients.llm.messages import Ask, Reply, Usage
from clients.llm.wires import BrokenStream, Wire
from itbench_evaluations.judge.pacing import backoff, retry_after

_RETRIED = frozenset({408, 409, 425, 429})
_OPTIONAL = ("stream_options", "max_tokens", "temperature", "reasoning_effort", "reasoning", "prompt_cache_key")
_TOO_LONG = ("context_length", "context length", "context window", "prompt is too long", "too many tokens")

Show = Callable[[str], None]
Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often."""

    tries: int = 6
    first_wait: float = 1.0
    silence: float = 120.0
    """Seconds without a byte after which a connection counts as dead."""
    whole: float = 900.0
    """Seconds for one answer."""


@dataclass(slots=True)
class Account:
    """What one question took beside its answer."""

    tries: int = 0
    failures: list[str] = field(default_factory=list)
    lost: Usage = field(default_factory=Usage)
    """What answers that broke off have cost, as far as they said."""
    seconds: float = 0.0


class _Again(Exception):
    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class Endpoint:
    def __init__(
        self,
        wire: Wire,
        base_url: str,
        key: str = "",
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
        patience: Patience | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.wire = wire
        self._url = base_url.rstrip("/").removesuffix(wire.path) + wire.path
        self._headers = {**wire.headers(key), **(headers or {})}
        self._query = query or {}
        self._patience = patience or Patience()
        self._sleep = sleep
        self._client: httpx.AsyncClient | None = None
        self._left_out: frozenset[str] = frozenset()

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def ask(self, ask: Ask, account: Account, show: Show = lambda text: None) -> Reply:
        """The model's answer; a ModelError says why there is none. `account` is kept up to date either way."""
        began = monotonic()
        try:
            while True:
                account.tries += 1
                try:
                    return await self._once(replace(ask, left_out=self._left_out), account, show)
                except _Again as again:
                    account.failures.append(str(again))
                    if len(account.failures) >= self._patience.tries:
                        last = account.failures[-1]
                        raise ModelUnavailable(
                            f"the model did not answer in {len(account.failures)} tries; last: {last}"
                        ) from again
                    wait = again.wait
                    if wait is None:
                        wait = backoff(self._patience.first_wait, len(account.failures) - 1, str(id(account)))
                    await self._sleep(wait)
        finally:
            account.seconds += monotonic() - began

    async def _once(self, ask: Ask, account: Account, show: Show) -> Reply:
        if self._client is None:
            timeout = httpx.Timeout(self._patience.silence, connect=min(30.0, self._patience.silence))
            headers = {"content-type": "application/json", **self._headers}
            self._client = httpx.AsyncClient(timeout=timeout, headers=headers, params=self._query)
        try:
            async with asyncio.timeout(self._patience.whole):
                request = self._client.stream("POST", self._url, content=written(self.wire.body(ask)))
                async with request as response:
                    if response.status_code != 200:
                        raise self._complaint(ask, response, (await response.aread()).decode("utf-8", "replace"))
                    return await self._read(response, account, show)
        except (httpx.TimeoutException, TimeoutError):
            raise _Again("no answer in time") from None
        except httpx.TransportError as problem:
            raise _Again(f"the connection failed: {problem or type(problem).__name__}") from None
        except BrokenStream as problem:
            raise _Again(str(problem)) from None
        except httpx.InvalidURL as problem:
            raise ModelRefused(f"{self._url!r} is no address of a model: {problem}") from problem

    async def _read(self, response: httpx.Response, account: Account, show: Show) -> Reply:
        if "text/event-stream" not in response.headers.get("content-type", ""):
            try:
                return self.wire.whole(json.loads(await response.aread()))
            except ValueError as problem:
                raise BrokenStream("the answer is not JSON") from problem
        reader = self.wire.reader()
        try:
            async for name, data in events(response.aiter_bytes()):
                piece = reader.feed(name, data)
                if piece:
                    show(piece)
            return reader.reply()
        except (BrokenStream, httpx.HTTPError, TimeoutError, asyncio.CancelledError):
            account.lost.add(reader.usage)
            raise
        except (LookupError, TypeError, AttributeError) as problem:
            account.lost.add(reader.usage)
            raise BrokenStream(f"the stream cannot be understood ({type(problem).__name__}: {problem})") from problem

    def _complaint(self, ask: Ask, response: httpx.Response, text: str) -> Exception:
        status, said = response.status_code, excerpt(text)
        if status in _RETRIED or status >= 500:
            return _Again(f"HTTP {status} {said}", retry_after(response.headers.get("retry-after")))
        lowered = text.lower()
        if status in (400, 413, 422) and any(words in lowered for words in _TOO_LONG):
            return ContextTooLong(f"the conversation is too long for {ask.model}: {said}")
        if status in (400, 404, 422) and ask.tools and "tool" in lowered and "support" in lowered:
            return ToolsUnsupported(f"{ask.model} does not take tools: {said}")
        if status in (400, 422):
            for name in _OPTIONAL:
                if name in lowered and name not in self._left_out:
                    self._left_out |= {name}
                    return _Again(f"HTTP {status} {said}", 0.0)
        return ModelRefused(f"the model's endpoint refuses: HTTP {status} {said}")


def written(body: Any) -> bytes:
    """The body as JSON. Models write halves of surrogate pairs, which only escaped text can hold."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode()


def excerpt(text: str) -> str:
    """The start of an error's body, on one line."""
    try:
        document: Any = json.loads(text)
        error = document.get("error", document)
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        pass
    return " ".join(text.split())[:300]
