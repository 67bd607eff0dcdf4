"""Each provider of the table: its address and key come from `.env`, and conversations with tools work."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

from clients.llm import LlmAgent
from clients.llm.settings import Settings, make_client
from srearena.dotenv import environment
from srearena.llm import providers
from srearena.llm.client import CallStats
from srearena.llm.endpoint import Endpoint
from srearena.llm.errors import ModelRefused
from srearena.llm.messages import Message, ModelRequest, Reply, Tool, ToolCall, Usage
from srearena.llm.prices import price_of
from tests.llm.model_server import TOKENS_IN, Turn, call, results_in, serving

TOOL = Tool("kubectl", "runs kubectl", {"type": "object", "properties": {"arguments": {"type": "string"}}})
KEY = "key-4711"
BEARER = ("authorization", f"Bearer {KEY}")
ROUTES: dict[str, tuple[str, str, str, tuple[str, str], str]] = {
    # model: the variables with its address and its key, the path asked, the header with the key, its name there
    "gpt-4.1": ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1/chat/completions", BEARER, "gpt-4.1"),
    "openai/gpt-5-mini": ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1/responses", BEARER, "gpt-5-mini"),
    "claude-sonnet-4-5": (
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_API_KEY",
        "/v1/v1/messages",
        ("x-api-key", KEY),
        "claude-sonnet-4-5",
    ),
    "gemini/gemini-2.5-pro": (
        "GEMINI_BASE_URL",
        "GEMINI_API_KEY",
        "/v1/chat/completions",
        BEARER,
        "gemini-2.5-pro",
    ),
    "azure/mine": ("AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY", "/v1/chat/completions", ("api-key", KEY), "mine"),
    "openrouter/maker/model": (
        "OPENROUTER_BASE_URL",
        "OPENROUTER_API_KEY",
        "/v1/chat/completions",
        BEARER,
        "maker/model",
    ),
    "qwen/qwen-plus": ("QWEN_BASE_URL", "DASHSCOPE_API_KEY", "/v1/chat/completions", BEARER, "qwen-plus"),
    "deepseek-chat": ("DEEPSEEK_BASE_URL", "DEEPSEEK_API_KEY", "/v1/chat/completions", BEARER, "deepseek-chat"),
    "local/llama": ("LOCAL_BASE_URL", "LOCAL_API_KEY", "/v1/chat/completions", BEARER, "llama"),
    "litellm_proxy/any": ("LITELLM_BASE_URL", "LITELLM_API_KEY", "/v1/chat/completions", BEARER, "any"),
}


def test_no_provider_is_left_out() -> None:
    there = tomllib.loads((Path(providers.__file__).parent / "providers.toml").read_text())
    tried = {next(name for name in there if names[0] in there[name]["addresses"]) for names in ROUTES.values()}
    assert tried == set(there)


@pytest.mark.parametrize("model", ROUTES)
def test_a_conversation_goes_where_dotenv_says_with_its_key(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, key, path, (header, value), name = ROUTES[model]
    monkeypatch.delenv(address, raising=False)
    monkeypatch.delenv(key, raising=False)

    def script(body: dict[str, Any], number: int) -> Turn:
        return Turn("seen") if results_in(body) else call("kubectl", arguments="get pods")

    async def talk() -> Reply:
        settings = Settings.from_options({"model": model}, environment(tmp_path))
        client = make_client(settings)
        try:
            hello = Message("user", "hello")
            first = await client.complete(ModelRequest(settings.route.model, "be good", (hello,), (TOOL,)), CallStats())
            answer = Message("tool", "three pods", call_id=first.calls[0].id)
            messages = (hello, first.as_message(), answer)
            return await client.complete(ModelRequest(settings.route.model, "be good", messages, (TOOL,)), CallStats())
        finally:
            await client.aclose()

    with serving(script) as server:
        (tmp_path / ".env").write_text(f"{address}={server.url}/v1\n{key}={KEY}\n")
        reply = asyncio.run(talk())
    assert reply.text == "seen" and reply.usage.tokens_in == TOKENS_IN
    assert server.paths == [path, path] and {headers[header] for headers in server.headers} == {value}
    assert {body["model"] for body in server.requests} == {name}


@pytest.mark.parametrize("model", [name for name in ROUTES if not name.startswith(("local", "litellm"))])
def test_a_missing_key_is_named_and_another_providers_is_not_sent(model: str) -> None:
    address, key, *_ = ROUTES[model]
    others = {other: "x" for _, other, *_ in ROUTES.values() if other != key}
    with pytest.raises(ModelRefused, match=f"set {key}"):
        Settings.from_options({"model": model}, {address: "http://127.0.0.1:9", **others})


@pytest.mark.parametrize(
    ("configured", "base_url"),
    [
        ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1"),
        ("https://r.openai.azure.com/", "https://r.openai.azure.com/openai/v1"),
        ("https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1"),
        ("https://gate.example/azure", "https://gate.example/azure"),
    ],
)
def test_azure_takes_the_resource_alone(configured: str, base_url: str) -> None:
    options = {"AZURE_API_BASE": configured, "AZURE_API_KEY": KEY}
    settings = Settings.from_options({"model": "azure/mine"}, options)
    assert settings.route.base_url == base_url and isinstance(make_client(settings), Endpoint)
    assert KEY not in repr(settings)


def test_prices_are_defaults_that_the_user_overrides() -> None:
    assert price_of("local/nobody-knows") is None
    options = {"model": "gpt-4.1", "price_in": "7", "price_cached": "3", "price_out": "9"}
    price = Settings.from_options(options, {"OPENAI_API_KEY": KEY}).price
    assert price is not None and (price.input, price.cached, price.output) == (7, 3, 9)


@pytest.mark.parametrize(
    ("model", "options", "reported_cost", "expected"),
    [
        ("gpt-4.1", {}, None, 2.0),
        ("gpt-4.1", {}, 0.5, 0.5),
        ("gpt-4.1", {"price_in": "7"}, None, 7.0),
        ("gpt-4.1", {"price_in": "7"}, 0.5, 7.0),
        ("nobody-knows", {}, None, 0.0),
        ("nobody-knows", {}, 0.5, 0.5),
        ("nobody-knows", {"price_in": "7"}, 0.5, 7.0),
    ],
)
def test_the_user_is_believed_before_the_endpoint_and_both_before_a_table(
    model: str, options: dict[str, str], reported_cost: float | None, expected: float
) -> None:
    class Answers:
        async def complete(self, request: ModelRequest, stats: CallStats, on_text: Any = None) -> Reply:
            return Reply("", (ToolCall("1", "submit", "{}"),), "calls", Usage(tokens_in=1_000_000, cost=reported_cost))

        async def aclose(self) -> None: ...

    settings = Settings.from_options({"model": model, "base_url": "http://127.0.0.1:9", **options}, {})
    agent = LlmAgent(settings, model_client=Answers())
    asyncio.run(agent.get_action("Stage 1"))
    assert agent.usage()["cost"] == pytest.approx(expected)


def test_dotenv_is_the_projects_also_from_below_and_never_another_ones(tmp_path: Path) -> None:
    project, below = tmp_path / "project", tmp_path / "project" / "clients" / "deep"
    below.mkdir(parents=True)
    (tmp_path / ".env").write_text("COLOUR_4711=another's\n")
    (project / "pyproject.toml").touch()
    assert "COLOUR_4711" not in environment(below)
    (project / ".env").write_text("COLOUR_4711=red\n")
    assert environment(below)["COLOUR_4711"] == environment(project)["COLOUR_4711"] == "red"
    (below / ".env").write_text("COLOUR_4711=blue\n")
    assert environment(below)["COLOUR_4711"] == "blue"
