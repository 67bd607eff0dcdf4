"""The judge's requests: cached, paced, retried until a reply can be used.

A question is paid for once: replies come from the cache if they are there, and two trials with the same question at the
same time share one request. Timeouts, dropped connections, 429 and 5xx are retried with back-off; a reply that cannot
be read is retried with the reason; a cut-off one with a higher token limit. A refusal (key, credit, model) stops all
further requests at once. At most `max_concurrent` requests are in flight at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from itbench_evaluations.errors import InputError, JudgeError, JudgeRefused
from itbench_evaluations.judge.rubric import BadReply, FailedControl, Question
from itbench_evaluations.judge.settings import JudgeSettings
from srearena.llm.client import CallStats, RetryPolicy
from srearena.llm.errors import ModelError, ParameterRejected, TransientError
from srearena.llm.messages import Message, ModelRequest, Reply, Usage
from srearena.llm.pacing import Pace, backoff
from srearena.llm.prices import Price
from srearena.llm.wires import WIRES
from srearena.llm.wires.base import count
from srearena.utils.cache import ReplyCache, content_key

if TYPE_CHECKING:
    import httpx

    from srearena.llm.endpoint import Endpoint

T = TypeVar("T")

_REFUSED = frozenset({401, 402, 403, 404})


@dataclass(slots=True)
class Ledger:
    """Counts of requests and tokens of a whole evaluation."""

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


@dataclass(slots=True)
class _Progress:
    """What changes from one try of a question to the next."""

    max_tokens: int
    complaint: str = ""
    failed_controls: int = 0
    failures: list[str] = field(default_factory=list)


class JudgeClient:
    """Sends questions to the judge's endpoint; use as an async context manager."""

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
        self._endpoint: Endpoint | None = None
        self._slots = asyncio.Semaphore(settings.max_concurrent)
        self._locks: dict[str, asyncio.Lock] = {}
        self._refusal: str | None = None
        self._price: Price | None = None
        if settings.price_input is not None:
            self._price = Price(settings.price_input, settings.price_input, settings.price_output or 0.0)

    async def __aenter__(self) -> JudgeClient:
        if not self._replay:
            try:
                from srearena.llm.endpoint import Endpoint  # it imports httpx, which a replay does not need
            except ImportError as problem:
                raise InputError(
                    "the LLM judge needs httpx: pip install 'srearena[judge]' (or use --judge none)"
                ) from problem
            timeout = self.settings.timeout
            self._endpoint = Endpoint(
                WIRES["chat"],
                self.settings.base_url,
                self.settings.api_key,
                policy=RetryPolicy(silence=timeout, whole=timeout),
                transport=self._transport,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._endpoint is not None:
            await self._endpoint.aclose()

    async def ask(self, question: Question, read: Callable[[Question, str], T], model: str, sample: int = 0) -> T:
        """One reply to one question, parsed by `read`; raises `JudgeError` if there is none."""
        key = content_key({"model": model, "messages": question.messages, "schema": question.schema, "sample": sample})
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            cached = self._from_cache(key, question, read)
            if cached is not None:
                return cached[0]
            if self._replay:
                raise JudgeError(f"replay: no recorded reply of {model} for this question in the cache")
            return await self._obtain(key, question, read, model, sample)

    def _from_cache(self, key: str, question: Question, read: Callable[[Question, str], T]) -> tuple[T] | None:
        record = self._cache.get(key)
        if record is None:
            return None
        try:
            value = read(question, str(record.get("content")))
        except BadReply:
            self._cache.drop(key)
            return None
        usage = record.get("usage")
        self.ledger.from_cache += 1
        self.ledger.cached_prompt_tokens += count(usage, "prompt_tokens")
        self.ledger.cached_completion_tokens += count(usage, "completion_tokens")
        return (value,)

    async def _obtain(
        self, key: str, question: Question, read: Callable[[Question, str], T], model: str, sample: int
    ) -> T:
        progress = _Progress(self.settings.max_tokens)
        for number in range(self.settings.max_retries + 1):
            try:
                reply = await self._send(question, model, sample, progress)
                value = read(question, reply.text)
            except FailedControl as problem:
                self.ledger.failed_controls += 1
                progress.failed_controls += 1
                progress.failures.append(str(problem))
                if progress.failed_controls >= 2:
                    raise JudgeError(f"{model} cannot be trusted with this question: {problem}") from problem
            except BadReply as problem:
                self.ledger.bad_replies += 1
                progress.complaint = str(problem)
                progress.failures.append(str(problem))
            except TransientError as problem:
                progress.failures.append(str(problem))
                if problem.wait is not None:
                    self._pace.pause(problem.wait)
                elif number < self.settings.max_retries:
                    await self._pace.sleep(backoff(self.settings.backoff, number, key))
            else:
                record = {"model": model, "sample": sample, "content": reply.text, "usage": dict(reply.usage.reported)}
                self._cache.put(key, record)
                return value
            if number < self.settings.max_retries:
                self.ledger.retries += 1
        raise JudgeError(f"no verdict from {model} after {len(progress.failures)} tries; last: {progress.failures[-1]}")

    def _request(self, question: Question, model: str, sample: int, progress: _Progress) -> ModelRequest:
        messages = [Message("user", question.user)]
        if progress.complaint:
            text = f"Your last reply could not be used: {progress.complaint}. Reply again with the JSON object only."
            messages.append(Message("user", text))
        return ModelRequest(
            model,
            question.system,
            messages,
            max_tokens=progress.max_tokens,
            # The first vote is the model's most likely answer; further votes carry information only if they can differ.
            temperature=0 if sample == 0 else 0.7,
            seed=sample,
            schema=question.schema,
            stream=False,
        )

    async def _send(self, question: Question, model: str, sample: int, progress: _Progress) -> Reply:
        """Send a question once, or again at once without a parameter that the endpoint rejects."""
        assert self._endpoint is not None, "use the client as a context manager"
        request = self._request(question, model, sample, progress)
        while True:
            async with self._slots:
                await self._pace.turn()
                if self._refusal:
                    raise JudgeRefused(self._refusal)
                self.ledger.requests += 1
                try:
                    reply = await self._endpoint.attempt(request, CallStats())
                except ParameterRejected:
                    continue
                except TransientError as problem:
                    if problem.status == 429:
                        self.ledger.rate_limited += 1
                    raise
                except ModelError as problem:
                    raise self._refused(problem) from problem
            return self._checked(reply, progress)

    def _refused(self, problem: ModelError) -> JudgeError:
        if problem.status not in _REFUSED:
            reason = f"HTTP {problem.status} {problem.detail}" if problem.status else problem.detail
            return JudgeError(f"the judge's endpoint rejects the request: {reason}")
        self._refusal = f"the judge's endpoint refuses us: HTTP {problem.status} {problem.detail}"
        return JudgeRefused(self._refusal)

    def _checked(self, reply: Reply, progress: _Progress) -> Reply:
        self.ledger.replies += 1
        self._count(reply.usage)
        if reply.stop == "length":
            progress.max_tokens *= 2
            raise BadReply("the reply was cut off; be brief")
        if not reply.text.strip():
            raise BadReply("the reply was empty")
        return reply

    def _count(self, usage: Usage) -> None:
        self.ledger.prompt_tokens += usage.tokens_in
        self.ledger.completion_tokens += usage.tokens_out
        cost = usage.cost
        if cost is None and self._price is not None:
            cost = self._price.cost(usage)
        if cost is not None:
            self.ledger.cost_usd = (self.ledger.cost_usd or 0.0) + cost
