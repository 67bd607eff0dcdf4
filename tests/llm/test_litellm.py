"""Models that only LiteLLM reaches, with the real library where it is installed (extra `llm`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clients.llm.endpoint import Account, Patience
from clients.llm.errors import ModelError, ModelRefused, ModelUnavailable
from clients.llm.messages import Ask, Message, Reply, Tool
from clients.llm.settings import Settings, make_model
from clients.llm.through_litellm import LiteLlm
from tests.llm.model_server import TOKENS_IN, Script, Turn, call, serving

TOOL = Tool("kubectl", "runs kubectl", {"type": "object", "properties": {"arguments": {"type": "string"}}})


def asked(script: Script, monkeypatch: pytest.MonkeyPatch) -> tuple[Reply | ModelError, Account, list[float]]:
    pytest.importorskip("litellm")
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    account = Account()
    with serving(script) as model:
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", f"{model.url}/v1")
        client = LiteLlm("k", patience=Patience(tries=3), sleep=sleep)
        ask = Ask("hosted_vllm/mine", "be good", (Message("user", "hello"),), (TOOL,))
        try:
            return asyncio.run(client.ask(ask, account)), account, waits
        except ModelError as problem:
            return problem, account, waits


def test_a_model_nobody_else_serves_goes_to_litellm() -> None:
    settings = Settings.from_options({"model": "bedrock/anthropic.claude"}, {})
    assert isinstance(make_model(settings), LiteLlm)


@pytest.mark.filterwarnings("ignore")
def test_calls_and_tokens_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    reply, _, _ = asked(lambda body, n: call("kubectl", arguments="get pods"), monkeypatch)
    assert isinstance(reply, Reply) and reply.calls[0].name == "kubectl" and reply.usage.tokens_in == TOKENS_IN


@pytest.mark.filterwarnings("ignore")
def test_errors_are_tried_again_and_refusals_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def flaky(body: dict[str, Any], number: int) -> Turn:
        return Turn(status=500) if number == 1 else Turn("fine")

    reply, account, waits = asked(flaky, monkeypatch)
    assert isinstance(reply, Reply) and reply.text == "fine" and account.tries == 2 and len(waits) == 1
    assert isinstance(asked(lambda body, n: Turn(status=429), monkeypatch)[0], ModelUnavailable)
    refused, account, _ = asked(lambda body, n: Turn(status=401, error="no such key"), monkeypatch)
    assert isinstance(refused, ModelRefused) and account.tries == 1
