"""An OpenAI-compatible chat endpoint as a judge: asked politely, until it answers or clearly will not.

A question is paid for once: replies come from the cache if they are there, and two trials that ask the same thing at
the same time share one request. Timeouts, dropped connections, 429 and 5xx are retried with back-off; a reply that
cannot be read is retried with a word on what was wrong; a cut-off one with more room. A refusal (key, credit, model)
stops all further requests at once. At most `max_concurrent` requests are under way at any time.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from itbench_evaluations.errors import InputError, JudgeError, JudgeRefused
from itbench_evaluations.judge.cache import ReplyCache, content_key
from itbench_evaluations.judge.pacing import Pace, backoff, retry_after
from itbench_evaluations.judge.rubric import BadReply, FailedControl, Question
from itbench_evaluations.judge.settings import JudgeSettings

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_REFUSED = frozenset({401, 402, 403, 404})


@dataclass(slots=True)
class _Dialect:
    """What a model's endpoint turned out to accept; learnt from its complaints, once per model."""

    formats: list[str] = field(default_factory=lambda: ["json_schema", "json_object", "none"])
    tokens: str = "max_tokens"
    temperature: bool = True
    seed: bool = True

    def concede(self, complaint: str) -> bool:
        """Give up what the endpoint complains about; False if there is nothing to give up."""
        if re.search(r"response_format|json_schema|json_object", complaint) and len(self.formats) > 1:
            self.formats.pop(0)
        elif "max_completion_tokens" in complaint and self.tokens == "max_tokens":
            self.tokens = "max_completion_tokens"
        elif "temperature" in complaint and self.temperature:
            self.temperature = False
        elif "seed" in complaint and self.seed:
            self.seed = False
        else:
            return False
        return True


@dataclass(slots=True)
class Ledger:
    """What judging took."""

    requests: int = 0
    replies: int = 0
    from_cache: int = 0
    retries: int = 0
    rate_limited: int = 0
    bad_replies: int = 0
    failed_controls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0
    cost_usd: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class _Retry(Exception):
    """Worth another try: why, and how long the server wants us to wait."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(slots=True)
class _Attempt:
    """What changes from one try to the next."""

    complaint: str = ""
    max_tokens: int = 0
    controls_failed: int = 0
    failures: list[str] = field(default_factory=list)


def _import_httpx() -> Any:
    try:
        import httpx
    except ImportError as problem:
        raise InputError("the LLM judge needs httpx: pip install 'srearena[judge]' (or use --judge none)") from problem
    return httpx


class JudgeClient:
    """Asks questions; use as an async context manager."""

    def __init__(
        self,
        settings: JudgeSettings,
        cache: ReplyCache,
        *,
        pace: Pace | None = None,
        replay: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.settings = settings
        self.ledger = Ledger()
        self._cache = cache
        self._pace = pace or Pace(settings.requests_per_minute)
        self._replay = replay
        self._transport = transport
        self._http: httpx.AsyncClient | None = None
        self._places = asyncio.Semaphore(settings.max_concurrent)
        self._under_way: dict[str, asyncio.Lock] = {}
        self._dialects: dict[str, _Dialect] = {}
        self._refused: str | None = None

    async def __aenter__(self) -> JudgeClient:
        if not self._replay:
            httpx = _import_httpx()
            limits = httpx.Limits(max_connections=self.settings.max_concurrent)
            headers = {"Authorization": f"Bearer {self.settings.api_key}"} if self.settings.api_key else {}
            self._http = httpx.AsyncClient(
                timeout=self.settings.timeout, limits=limits, headers=headers, transport=self._transport
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def ask(self, question: Question, read: Callable[[Question, str], T], model: str, sample: int = 0) -> T:
        """One reply to one question, read by `read`; raises `JudgeError` when none could be had."""
        key = content_key({"model": model, "messages": question.messages, "schema": question.schema, "sample": sample})
        lock = self._under_way.setdefault(key, asyncio.Lock())
        async with lock:
            remembered = self._remembered(key, question, read)
            if remembered is not None:
                return remembered[0]
            if self._replay:
                raise JudgeError(f"replay: no recorded reply of {model} for this question in the cache")
            return await self._obtain(key, question, read, model, sample)

    def _remembered(self, key: str, question: Question, read: Callable[[Question, str], T]) -> tuple[T] | None:
        record = self._cache.get(key)
        if record is None:
            return None
        try:
            value = read(question, str(record.get("content")))
        except BadReply:
            self._cache.drop(key)
            return None
        usage = record.get("usage") if isinstance(record.get("usage"), Mapping) else {}
        self.ledger.from_cache += 1
        self.ledger.cached_prompt_tokens += _count(usage, "prompt_tokens")
        self.ledger.cached_completion_tokens += _count(usage, "completion_tokens")
        return (value,)

    async def _obtain(
        self, key: str, question: Question, read: Callable[[Question, str], T], model: str, sample: int
    ) -> T:
        attempt = _Attempt(max_tokens=self.settings.max_tokens)
        for number in range(self.settings.max_retries + 1):
            try:
                content, usage = await self._send(question, model, sample, attempt)
                value = read(question, content)
            except FailedControl as problem:
                self.ledger.failed_controls += 1
                attempt.controls_failed += 1
                attempt.failures.append(str(problem))
                if attempt.controls_failed >= 2:
                    raise JudgeError(f"{model} cannot be trusted with this question: {problem}") from problem
            except BadReply as problem:
                self.ledger.bad_replies += 1
                attempt.complaint = str(problem)
                attempt.failures.append(str(problem))
            except _Retry as problem:
                attempt.failures.append(str(problem))
                if problem.wait is not None:
                    self._pace.quiet_for(problem.wait)
                elif number < self.settings.max_retries:
                    await self._pace.rest(backoff(self.settings.backoff, number, key))
            else:
                self._cache.put(key, {"model": model, "sample": sample, "content": content, "usage": usage})
                return value
            if number < self.settings.max_retries:
                self.ledger.retries += 1
        raise JudgeError(f"no verdict from {model} after {len(attempt.failures)} tries; last: {attempt.failures[-1]}")

    # --- one request ----------------------------------------------------------------------------------------------

    def _body(self, question: Question, model: str, sample: int, attempt: _Attempt) -> dict[str, Any]:
        messages = list(question.messages)
        if attempt.complaint:
            text = f"Your last reply could not be used: {attempt.complaint}. Reply again with the JSON object only."
            messages.append({"role": "user", "content": text})
        dialect = self._dialects.setdefault(model, _Dialect())
        body: dict[str, Any] = {"model": model, "messages": messages, dialect.tokens: attempt.max_tokens}
        if dialect.temperature:
            # The first vote is the model's best guess; further ones must be free to differ to mean anything.
            body["temperature"] = 0 if sample == 0 else 0.7
        if dialect.seed:
            body["seed"] = sample
        if dialect.formats[0] == "json_schema":
            schema = {"name": "reply", "strict": True, "schema": question.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif dialect.formats[0] == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    async def _send(self, question: Question, model: str, sample: int, attempt: _Attempt) -> tuple[str, dict[str, Any]]:
        httpx = _import_httpx()
        assert self._http is not None, "use the client as a context manager"
        url = self.settings.base_url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        while True:
            async with self._places:
                await self._pace.turn()
                if self._refused:
                    raise JudgeRefused(self._refused)
                self.ledger.requests += 1
                body = self._body(question, model, sample, attempt)
                sending = self._http.post(url, json=body)
                try:
                    # A server that drips one byte at a time never trips a read timeout; the whole exchange has one too.
                    response = await asyncio.wait_for(sending, self.settings.timeout)
                except (TimeoutError, httpx.TimeoutException):
                    raise _Retry(f"no answer within {self.settings.timeout:g} s") from None
                except httpx.TransportError as problem:
                    raise _Retry(f"connection failed: {problem or type(problem).__name__}") from None
            if response.status_code in (400, 422):
                # A request sent before the endpoint's dialect was learnt is simply sent again in it.
                learnt = body != self._body(question, model, sample, attempt)
                if learnt or self._dialects[model].concede(response.text):
                    continue
            return self._read_response(response, model, attempt)

    def _read_response(self, response: httpx.Response, model: str, attempt: _Attempt) -> tuple[str, dict[str, Any]]:
        status = response.status_code
        if status in _REFUSED:
            self._refused = f"the judge's endpoint refuses us: HTTP {status} {_excerpt(response.text)}"
            raise JudgeRefused(self._refused)
        if status in _RETRIED or status >= 500:
            if status == 429:
                self.ledger.rate_limited += 1
            raise _Retry(f"HTTP {status} {_excerpt(response.text)}", retry_after(response.headers.get("retry-after")))
        if status != 200:
            raise JudgeError(f"the judge's endpoint rejects the request: HTTP {status} {_excerpt(response.text)}")
        try:
            document = response.json()
            choice = document["choices"][0]
            content = choice["message"]["content"]
        except (ValueError, LookupError, TypeError):
            raise _Retry(f"not a chat completion: {_excerpt(response.text)}") from None
        usage = document.get("usage") if isinstance(document.get("usage"), dict) else {}
        self._account(usage)
        self.ledger.replies += 1
        if choice.get("finish_reason") == "length":
            attempt.max_tokens *= 2
            raise BadReply("the reply was cut off; be brief")
        if not isinstance(content, str) or not content.strip():
            raise BadReply("the reply was empty")
        return content, usage

    def _account(self, usage: Mapping[str, Any]) -> None:
        spent_in, spent_out = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        self.ledger.prompt_tokens += spent_in
        self.ledger.completion_tokens += spent_out
        cost = usage.get("cost")
        if not isinstance(cost, int | float) and self.settings.price_input is not None:
            cost = (spent_in * self.settings.price_input + spent_out * (self.settings.price_output or 0.0)) / 1e6
        if isinstance(cost, int | float):
            self.ledger.cost_usd = (self.ledger.cost_usd or 0.0) + float(cost)


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _excerpt(text: str) -> str:
    """The start of an error body, on one line."""
    try:
        document = json.loads(text)
        message = document["error"]["message"] if isinstance(document["error"], dict) else document["error"]
        text = str(message)
    except (ValueError, LookupError, TypeError):
        pass
    return " ".join(text.split())[:200]
