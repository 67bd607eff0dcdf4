"""Models that LiteLLM reaches, with the real library where it is installed (extra `llm`).

Azure, Bedrock, Gemini, Qwen, DeepSeek, OpenRouter, a server of one's own: each in the tongue that LiteLLM speaks to it,
played by the scripted model.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from clients.llm.settings import Settings, make_client
from srearena.conductor.stages import USUAL
from srearena.llm.client import CallStats, RetryPolicy
from srearena.llm.errors import ModelError, ModelRefused, ModelUnavailable
from srearena.llm.litellm_library import LiteLlmLibrary
from srearena.llm.messages import Message, ModelRequest, Reply, Tool
from srearena.llm.prices import Price, price_of
from tests.llm.model_server import TOKENS_IN, TOKENS_OUT, Script, Turn, call, results_in, serving
from tests.llm.test_agent import episode, solver

# Not `importorskip`, which would import it: that takes seconds.
needs_litellm = pytest.mark.skipif(find_spec("litellm") is None, reason="LiteLLM is not installed (extra `llm`)")
noisy = pytest.mark.filterwarnings("ignore")  # the library's own warnings are none of ours
TOOL = Tool("kubectl", "runs kubectl", {"type": "object", "properties": {"arguments": {"type": "string"}}})
KEY = "key-4711"

ROUTES: dict[str, tuple[dict[str, str], str, str, str]] = {
    # model: what .env says, the path that is asked, the header with the key, and what it holds
    "hosted_vllm/mine": (
        {"HOSTED_VLLM_API_BASE": "URL/v1", "HOSTED_VLLM_API_KEY": KEY},
        "/v1/chat/completions",
        "authorization",
        f"Bearer {KEY}",
    ),
    "dashscope/qwen-plus": (
        {"DASHSCOPE_API_BASE": "URL/v1", "DASHSCOPE_API_KEY": KEY},
        "/v1/chat/completions",
        "authorization",
        f"Bearer {KEY}",
    ),
    "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0": (
        {
            "AWS_BEDROCK_RUNTIME_ENDPOINT": "URL",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION_NAME": "eu-west-1",
        },
        "/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse",
        "authorization",
        f"AWS4-HMAC-SHA256 Credential={KEY}/",
    ),
    # What our own clients reach too, when LiteLLM is asked for with `wire=litellm`.
    "azure/mine": (
        {"AZURE_API_BASE": "URL", "AZURE_API_KEY": KEY, "AZURE_API_VERSION": "2024-10-21"},
        "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        "api-key",
        KEY,
    ),
    "gemini/gemini-2.5-flash": (
        {"GEMINI_API_BASE": "URL", "GEMINI_API_KEY": KEY},
        "/models/gemini-2.5-flash:generateContent",
        "x-goog-api-key",
        KEY,
    ),
    "openrouter/maker/model": (
        {"OPENROUTER_API_BASE": "URL/v1", "OPENROUTER_API_KEY": KEY},
        "/v1/chat/completions",
        "authorization",
        f"Bearer {KEY}",
    ),
    "deepseek/deepseek-chat": (
        {"DEEPSEEK_API_BASE": "URL/v1", "DEEPSEEK_API_KEY": KEY},
        "/v1/chat/completions",
        "authorization",
        f"Bearer {KEY}",
    ),
}


@pytest.fixture(autouse=True)
def environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys from `.env` are put into the process's environment for LiteLLM."""
    for names, *_ in ROUTES.values():
        for name in names:
            monkeypatch.setenv(name, "")
            monkeypatch.delenv(name)


def at(url: str, variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value.replace("URL", url) for name, value in variables.items()}


def complete(script: Script) -> tuple[Reply | ModelError, CallStats, list[float]]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    stats = CallStats()
    with serving(script) as model:
        client = LiteLlmLibrary("k", f"{model.url}/v1", policy=RetryPolicy(tries=3), sleep=sleep)
        request = ModelRequest("hosted_vllm/mine", "be good", (Message("user", "hello"),), (TOOL,))
        try:
            return asyncio.run(client.complete(request, stats)), stats, waits
        except ModelError as problem:
            return problem, stats, waits


def test_a_model_nobody_else_serves_goes_to_litellm() -> None:
    for model in ("bedrock/anthropic.claude", "dashscope/qwen-plus", "vertex_ai/gemini-2.5-pro", "mistral/large"):
        assert isinstance(make_client(Settings.from_options({"model": model}, {})), LiteLlmLibrary)
    chosen = Settings.from_options({"model": "azure/mine", "wire": "litellm"}, {})
    assert isinstance(make_client(chosen), LiteLlmLibrary) and chosen.route.model == "azure/mine"


@needs_litellm
@noisy
@pytest.mark.parametrize("model", ROUTES)
def test_a_conversation_reaches_each_provider_with_its_key(model: str) -> None:
    variables, path, header, value = ROUTES[model]

    def script(body: dict[str, Any], number: int) -> Turn:
        return Turn("seen") if results_in(body) else call("kubectl", arguments="get pods")

    async def talk(variables: dict[str, str]) -> tuple[Reply, Reply]:
        settings = Settings.from_options({"model": model, "wire": "litellm"}, variables)
        client = make_client(settings)
        first = await client.complete(
            ModelRequest(settings.route.model, "be good", (Message("user", "hello"),), (TOOL,)), CallStats()
        )
        answer = Message("tool", "three pods", call_id=first.calls[0].id)
        messages = (Message("user", "hello"), first.as_message(), answer)
        return first, await client.complete(
            ModelRequest(settings.route.model, "be good", messages, (TOOL,)), CallStats()
        )

    with serving(script) as server:
        first, second = asyncio.run(talk(at(server.url, variables)))
    assert first.calls[0].name == "kubectl" and "get pods" in first.calls[0].arguments and first.stop == "calls"
    assert second.text == "seen" and "three pods" in results_in(server.requests[1])[0]
    assert (first.usage.tokens_in, first.usage.tokens_out) == (TOKENS_IN, TOKENS_OUT)
    assert all(path in requested for requested in server.paths), server.paths
    assert all(headers.get(header, "").startswith(value) for headers in server.headers), server.headers[0]


@needs_litellm
@noisy
@pytest.mark.kubectl
@pytest.mark.parametrize("model", [name for name in ROUTES if name.startswith(("bedrock", "azure", "gemini"))])
def test_a_problem_is_solved_through_litellm(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = ROUTES[model][0]
    with serving(solver) as server:
        (tmp_path / ".env").write_text(
            "".join(f"{name}={value}\n" for name, value in at(server.url, variables).items())
        )
        monkeypatch.chdir(tmp_path)
        result = episode({"model": model, "wire": "litellm"}, tmp_path, stages=USUAL)
        assert len(server.requests) == 6
    assert result["outcome"] == "pass", result["reason"]
    assert result["usage"]["tokens_in"] == 6 * TOKENS_IN
    assert KEY not in "".join(path.read_text() for path in (tmp_path / "run").rglob("*") if path.is_file())


@needs_litellm
@noisy
def test_errors_are_tried_again_and_refusals_are_not() -> None:
    def flaky(body: dict[str, Any], number: int) -> Turn:
        return Turn(status=500) if number == 1 else Turn("fine")

    reply, stats, waits = complete(flaky)
    assert isinstance(reply, Reply) and reply.text == "fine" and stats.tries == 2 and len(waits) == 1
    assert isinstance(complete(lambda body, n: Turn(status=429))[0], ModelUnavailable)
    refused, stats, _ = complete(lambda body, n: Turn(status=401, error="no such key"))
    assert isinstance(refused, ModelRefused) and stats.tries == 1


@pytest.mark.skipif(find_spec("litellm") is not None, reason="it is installed")
def test_without_the_library_it_is_said_what_to_install() -> None:
    problem, _, _ = complete(lambda body, n: Turn("never asked"))
    assert isinstance(problem, ModelRefused) and "pip install 'srearena[llm]'" in str(problem)
    assert "\n" not in str(problem)


@needs_litellm
def test_its_prices_are_defaults_where_it_is_installed() -> None:
    known = price_of("gpt-4.1")
    assert known is not None and (known.input, known.output) == (pytest.approx(2.0), pytest.approx(8.0))
    assert price_of("openai/gpt-4.1") == price_of("gpt-4.1")
    assert price_of("deepseek/deepseek-chat") is not None  # in no table of ours
    assert price_of("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0") is not None
    assert price_of("local/gpt-oss-20b") is None
    overridden = Settings.from_options({"model": "gpt-4.1", "price_in": "1", "price_out": "2"}, {"OPENAI_API_KEY": KEY})
    assert overridden.price == Price(1.0, 1.0, 2.0)


@needs_litellm
def test_importing_the_agent_does_not_import_the_library() -> None:
    check = "import clients.llm, sys; assert 'litellm' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
