"""Every other model, through the LiteLLM library (extra `llm`): imported when first asked, since that takes seconds.

It speaks chat completions; retries are ours, so that they are counted and bounded in one way.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from time import monotonic
from typing import Any

from clients.llm.endpoint import Account, Patience, Show, Sleep
from clients.llm.errors import ContextTooLong, ModelRefused, ModelUnavailable, ToolsUnsupported
from clients.llm.messages import Ask, Reply
from clients.llm.wires import BrokenStream, ChatWire
from itbench_evaluations.judge.pacing import backoff

_AGAIN = (
    "RateLimitError APIConnectionError Timeout InternalServerError ServiceUnavailableError BadGatewayError APIError"
).split()


class LiteLlm:
    """`variables` are the environment and `.env` together; LiteLLM looks for keys in the process's environment only."""

    def __init__(
        self,
        key: str = "",
        base_url: str = "",
        *,
        variables: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.wire = ChatWire()
        self._key = key
        self._base_url = base_url
        self._variables = variables or {}
        self._patience = patience or Patience()
        self._sleep = sleep

    async def aclose(self) -> None:
        """LiteLLM keeps its connections itself."""

    async def ask(self, ask: Ask, account: Account, show: Show = lambda text: None) -> Reply:
        litellm = _library(self._variables)
        body = self.wire.body(ask)
        body.pop("stream", None)
        body.pop("stream_options", None)
        if self._key:
            body["api_key"] = self._key
        if self._base_url:
            body["api_base"] = self._base_url
        began = monotonic()
        try:
            while True:
                account.tries += 1
                try:
                    answer = await litellm.acompletion(
                        **body, timeout=self._patience.whole, num_retries=0, drop_params=True
                    )
                    reply = self.wire.whole(answer.model_dump())
                except Exception as problem:
                    account.failures.append(f"{type(problem).__name__}: {problem}")
                    self._give_up_or_not(problem, ask, account)
                    await self._sleep(backoff(self._patience.first_wait, len(account.failures) - 1, str(id(account))))
                    continue
                if reply.text:
                    show(reply.text)
                if reply.usage.cost is None:
                    reply.usage.cost = _cost(litellm, answer)
                return reply
        finally:
            account.seconds += monotonic() - began

    def _give_up_or_not(self, problem: Exception, ask: Ask, account: Account) -> None:
        name, said = type(problem).__name__, " ".join(str(problem).split())[:300]
        if name == "ContextWindowExceededError":
            raise ContextTooLong(said) from problem
        if name == "UnsupportedParamsError" and "tool" in said:
            raise ToolsUnsupported(said) from problem
        if name not in _AGAIN and not isinstance(problem, BrokenStream | TimeoutError):
            raise ModelRefused(f"LiteLLM cannot ask {ask.model}: {name}: {said}") from problem
        if len(account.failures) >= self._patience.tries:
            raise ModelUnavailable(
                f"the model did not answer in {len(account.failures)} tries; last: {said}"
            ) from problem


def _library(variables: Mapping[str, str]) -> Any:
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    # It would fetch prices over the network on import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm  # type: ignore[import-not-found, unused-ignore]
    except ImportError as problem:
        raise ModelRefused("this model is reached through LiteLLM: pip install 'srearena[llm]'") from problem
    litellm.suppress_debug_info = True  # or it prints advice on standard output, where results are
    return litellm


def _cost(litellm: Any, answer: Any) -> float | None:
    try:
        return float(litellm.completion_cost(completion_response=answer))
    except Exception:  # it raises whatever it likes for a model it has no price of
        return None
