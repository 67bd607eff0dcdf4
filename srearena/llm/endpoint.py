"""An HTTP endpoint of a model.

429, 5xx, timeouts, dropped connections and streams that break off are transient errors. An optional parameter that the
endpoint rejects is left out from then on, per model. A refusal (key, credit, model) is not retried.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import httpx
import orjson

from srearena.llm.client import CallStats, ModelClient, OnText, RetryPolicy, Sleep, ignore_text
from srearena.llm.errors import (
    ContextTooLong,
    InvalidResponse,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    ParameterRejected,
    ToolsUnsupported,
    TransientError,
)
from srearena.llm.messages import ModelRequest, Reply
from srearena.llm.pacing import retry_after
from srearena.llm.server_sent_events import parse_events
from srearena.llm.wires import Wire

_PREFLIGHT_SECONDS = 15.0  # chosen: longer than a cold start behind a gateway takes to answer such a request
_RETRIED = frozenset({408, 409, 425, 429})
_OPTIONAL = ("stream_options", "max_tokens", "temperature", "seed", "reasoning_effort", "reasoning", "prompt_cache_key")
_STRUCTURED_OUTPUT = re.compile("response_format|json_schema|json_object")
_TOO_LONG = ("context_length", "context length", "context window", "prompt is too long", "too many tokens")


class Endpoint(ModelClient):
    """One address that serves models in one wire format."""

    def __init__(
        self,
        wire: Wire,
        base_url: str,
        key: str = "",
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
        policy: RetryPolicy | None = None,
        sleep: Sleep = asyncio.sleep,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(policy, sleep)
        self.wire = wire
        self._base_url = base_url.rstrip("/").removesuffix(wire.path)
        self._headers = {"content-type": "application/json", **wire.headers(key), **(headers or {})}
        self._query = query or {}
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._unsupported: dict[str, frozenset[str]] = {}
        """Optional parameters that were rejected, by model."""

    def url(self, model: str) -> str:
        """The address of requests for a model."""
        return self._base_url + self.wire.path.format(model=model)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def preflight(self) -> None:
        """Request the list of models. Only an endpoint that does not answer, or refuses the key, is an error.

        Gateways without such a list, and keys that may not read it (403), serve models all the same.
        """
        url = self._base_url + self.wire.models_path
        try:
            async with asyncio.timeout(_PREFLIGHT_SECONDS):
                response = await self._connected().get(url)
        except (httpx.TimeoutException, TimeoutError):
            raise ModelUnavailable(f"{self._base_url} does not answer within {_PREFLIGHT_SECONDS:g} seconds") from None
        except httpx.TransportError as problem:
            detail = str(problem) or type(problem).__name__
            raise ModelUnavailable(f"{self._base_url} cannot be reached: {detail}", detail=detail) from None
        except httpx.InvalidURL as problem:
            raise ModelRefused(f"{self._base_url!r} is no address of a model: {problem}") from problem
        if response.status_code == 401:
            detail = excerpt(response.text)
            raise ModelRefused(f"{self._base_url} refuses the key: HTTP 401 {detail}", status=401, detail=detail)

    async def attempt(self, request: ModelRequest, stats: CallStats, on_text: OnText = ignore_text) -> Reply:
        request = replace(request, unsupported=self._unsupported.get(request.model, frozenset()))
        url = self.url(request.model)
        try:
            async with asyncio.timeout(self._policy.whole):
                exchange = self._connected().stream("POST", url, content=encode(self.wire.body(request)))
                async with exchange as response:
                    if response.status_code != 200:
                        raise self._error(request, response, (await response.aread()).decode("utf-8", "replace"))
                    return await self._read(response, stats, on_text)
        except (httpx.TimeoutException, TimeoutError):
            raise TransientError("no answer in time") from None
        except httpx.TransportError as problem:
            detail = str(problem) or type(problem).__name__
            raise TransientError(f"the connection failed: {detail}", detail=detail) from None
        except httpx.InvalidURL as problem:
            raise ModelRefused(f"{url!r} is no address of a model: {problem}") from problem

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            timeout = httpx.Timeout(self._policy.silence, connect=min(30.0, self._policy.silence))
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)  # callers limit concurrency
            self._client = httpx.AsyncClient(
                timeout=timeout, limits=limits, headers=self._headers, params=self._query, transport=self._transport
            )
        return self._client

    async def _read(self, response: httpx.Response, stats: CallStats, on_text: OnText) -> Reply:
        if "text/event-stream" not in response.headers.get("content-type", ""):
            body = await response.aread()
            try:
                return self.wire.whole(json.loads(body))
            except ValueError as problem:
                text = excerpt(body.decode("utf-8", "replace"))
                raise InvalidResponse(f"the answer is not JSON: {text}", status=200) from problem
            except (LookupError, TypeError, AttributeError) as problem:
                raise InvalidResponse(f"the answer is not in the format {self.wire.name}", status=200) from problem
        reader = self.wire.reader()
        try:
            async for name, data in parse_events(response.aiter_bytes()):
                text = reader.feed(name, data)
                if text:
                    on_text(text)
            return reader.reply()
        except (InvalidResponse, httpx.HTTPError, TimeoutError, asyncio.CancelledError):
            stats.lost.add(reader.usage)
            raise
        except (LookupError, TypeError, AttributeError) as problem:
            stats.lost.add(reader.usage)
            raise InvalidResponse(f"the stream cannot be parsed ({type(problem).__name__}: {problem})") from problem

    def _error(self, request: ModelRequest, response: httpx.Response, text: str) -> ModelError:
        status, detail = response.status_code, excerpt(text)
        summary = f"HTTP {status} {detail}"
        if status in _RETRIED or status >= 500:
            wait = retry_after(response.headers.get("retry-after"))
            return TransientError(summary, status=status, detail=detail, wait=wait)
        lowered = text.lower()
        if status in (400, 413, 422) and any(words in lowered for words in _TOO_LONG):
            return ContextTooLong(f"the conversation is too long for {request.model}: {detail}", status=status)
        if status in (400, 404, 422) and request.tools and "tool" in lowered and "support" in lowered:
            return ToolsUnsupported(f"{request.model} does not take tools: {detail}", status=status)
        if status in (400, 422) and self._drop_parameter(request, lowered):
            return ParameterRejected(summary, status=status, detail=detail, wait=0.0)
        return ModelRefused(f"the model's endpoint refuses: {summary}", status=status, detail=detail)

    def _drop_parameter(self, request: ModelRequest, complaint: str) -> bool:
        """Leave out the parameter that the endpoint rejects; False if there is none to leave out."""
        dropped = self._unsupported.get(request.model, frozenset())
        if request.unsupported != dropped:
            return True  # Another request has meanwhile learned what to leave out.
        rejected: str | None = None
        if request.schema is not None and _STRUCTURED_OUTPUT.search(complaint):
            # Without a schema a JSON object can still be requested; without that, plain text.
            rejected = next((name for name in ("json_schema", "response_format") if name not in dropped), None)
        if rejected is None:
            words = complaint.replace("max_completion_tokens", "max_tokens")
            body = self.wire.body(request)
            rejected = next((name for name in _OPTIONAL if name in words and name in body), None)
        if rejected is None or rejected in dropped:
            return False
        self._unsupported[request.model] = dropped | {rejected}
        return True


def encode(body: Any) -> bytes:
    """The body as JSON. Models write halves of surrogate pairs, which only escaped text can contain."""
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
