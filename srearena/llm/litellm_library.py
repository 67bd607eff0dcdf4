"""Every other model, through the LiteLLM library (extra `llm`). It is imported on first use, which takes seconds.

It is called in the format of chat completions. Retries are those of `ModelClient`, so that they are counted and limited
in one way.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from srearena.llm.client import CallStats, ModelClient, OnText, RetryPolicy, Sleep, ignore_text
from srearena.llm.errors import ContextTooLong, ModelError, ModelRefused, ToolsUnsupported, TransientError
from srearena.llm.messages import ModelRequest, Reply
from srearena.llm.wires import ChatWire

_NOT_INSTALLED = "this model is reached through LiteLLM: pip install 'srearena[llm]'"
_TRANSIENT = (
    "RateLimitError APIConnectionError Timeout InternalServerError ServiceUnavailableError BadGatewayError APIError"
).split()


class LiteLlmLibrary(ModelClient):
    """`variables` are the environment and `.env` merged; LiteLLM itself reads keys from the process's environment."""

    def __init__(
        self,
        key: str = "",
        base_url: str = "",
        *,
        variables: Mapping[str, str] | None = None,
        policy: RetryPolicy | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        super().__init__(policy, sleep)
        self.wire = ChatWire()
        self._key = key
        self._base_url = base_url
        self._variables = variables or {}

    async def preflight(self) -> None:
        """Check that the library is installed, without its import, which takes seconds."""
        if find_spec("litellm") is None:
            raise ModelRefused(_NOT_INSTALLED)

    async def aclose(self) -> None:
        """Nothing to close: LiteLLM manages its connections itself."""

    async def attempt(self, request: ModelRequest, stats: CallStats, on_text: OnText = ignore_text) -> Reply:
        litellm = _import_library(self._variables)
        body = self.wire.body(request)
        body.pop("stream", None)
        body.pop("stream_options", None)
        if self._key:
            body["api_key"] = self._key
        if self._base_url:
            body["api_base"] = self._base_url
        try:
            answer = await litellm.acompletion(**body, timeout=self._policy.whole, num_retries=0, drop_params=True)
            reply = self.wire.whole(answer.model_dump())
        except ModelError:
            raise
        except Exception as problem:
            raise _error(problem, request) from problem
        if reply.text:
            on_text(reply.text)
        if reply.usage.cost is None:
            reply.usage.cost = _cost(litellm, answer)
        return reply


def _error(problem: Exception, request: ModelRequest) -> ModelError:
    name, text = type(problem).__name__, " ".join(str(problem).split())[:300]
    if name == "ContextWindowExceededError":
        return ContextTooLong(text)
    if name == "UnsupportedParamsError" and "tool" in text:
        return ToolsUnsupported(text)
    if name in _TRANSIENT or isinstance(problem, TimeoutError):
        return TransientError(f"{name}: {text}")
    return ModelRefused(f"LiteLLM cannot call {request.model}: {name}: {text}")


def _import_library(variables: Mapping[str, str]) -> Any:
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    # Without this it downloads prices on import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm  # type: ignore[import-not-found, unused-ignore]
    except ImportError as problem:
        raise ModelRefused(_NOT_INSTALLED) from problem
    litellm.suppress_debug_info = True  # it would print advice to standard output, where results are
    return litellm


def _cost(litellm: Any, answer: Any) -> float | None:
    try:
        return float(litellm.completion_cost(completion_response=answer))
    except Exception:  # it raises various errors for a model without a price
        return None
