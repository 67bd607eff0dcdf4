"""The LLM agent on a real problem with a scripted model: solved end to end, ended correctly when the model fails."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clients.llm import LlmAgent, Settings
from srearena.conductor import Conductor, EpisodeSpec
from srearena.conductor.agents import make_agent
from srearena.conductor.episode.limits import Limits
from srearena.conductor.errors import ArenaError
from srearena.conductor.session import read_session
from srearena.conductor.stages import USUAL
from srearena.llm.wires import WIRES
from tests.arena.episodes import TIMELINE, ZERO
from tests.llm.model_server import TOKENS_IN, TOKENS_OUT, ModelServer, Script, Turn, call, results_in, serving

QUICK = Limits(steps=12, wall_seconds=60)


def options(model: ModelServer, wire: str, **more: Any) -> dict[str, Any]:
    settings = {"model": "gpt-4.1", "base_url": model.base(wire), "wire": wire, "first_wait": "0.01", "tries": "3"}
    return {**settings, **more}


def played(
    script: Script,
    folder: Path,
    wire: str = "chat",
    limits: Limits = QUICK,
    stages: tuple[str, ...] | None = None,
    **more: Any,
) -> tuple[dict[str, Any], ModelServer]:
    """An episode of a small shop whose store is scaled to zero."""
    with serving(script) as model:
        return episode(options(model, wire, **more), folder, limits, stages), model


def episode(
    settings: dict[str, Any], folder: Path, limits: Limits = QUICK, stages: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """The same with an agent that is told whom to ask."""
    spec = EpisodeSpec(1, stages, limits, TIMELINE, in_process=True)
    conductor = Conductor(spec, results=folder / "run")
    conductor.register_agent(make_agent("llm", settings), "llm")
    conductor.init_problem(ZERO)
    return asyncio.run(conductor.start_problem())


def entries(folder: Path, what: str) -> list[dict[str, Any]]:
    (path,) = (folder / "run").rglob("session.jsonl")
    return [entry for entry in read_session(path) if entry["what"] == what]


def solver(body: dict[str, Any], number: int) -> Turn:
    """Looks around, answers by what it sees, and repairs."""
    results = results_in(body)
    text = json.dumps(body)
    if number == 1:
        return Turn(
            "Two things at once.",
            (("kubectl", {"arguments": "get deployments --all-namespaces"}), ("get_alerts", {})),
        )
    if number == 2:
        down = [line.split()[1] for line in results[0].splitlines() if " 0/0 " in line]
        assert down, results[0]
        return call("submit", solution="Yes")
    if number == 3:
        down = [line.split()[1] for line in results[0].splitlines() if " 0/0 " in line]
        return call("submit", solution=down)
    if number == 4:
        assert "Repair" in results[-1]
        line = next(line for line in results[0].splitlines() if " 0/0 " in line).split()
        return call("kubectl", arguments=f"scale deployment {line[1]} -n {line[0]} --replicas=1")
    if number == 5:
        assert "scaled" in results[-1], text[-500:]
        return call("wait", seconds=60)
    return call("submit")


@pytest.mark.kubectl
@pytest.mark.parametrize(("wire", "stream"), [*((wire, "true") for wire in WIRES), ("chat", "false")])
def test_a_model_that_calls_tools_solves_a_problem(wire: str, stream: str, tmp_path: Path) -> None:
    result, model = played(solver, tmp_path, wire, stages=USUAL, stream=stream)
    assert result["outcome"] == "pass", result["reason"]
    assert [stage["verdict"]["passed"] for stage in result["stages"]] == [True, True, True]
    assert result["usage"]["steps"] == 7 and len(model.requests) == 6
    assert result["usage"]["tokens_in"] == 6 * TOKENS_IN and result["usage"]["tokens_out"] == 6 * TOKENS_OUT
    # 200 of 1000 from the cache, at list price
    assert result["usage"]["cost"] == pytest.approx(6 * (800 * 2 + 200 * 0.5 + 50 * 8) / 1e6, abs=1e-4)
    calls = entries(tmp_path, "model call")
    assert len(calls) == 6 and sum(entry["tokens_in"] for entry in calls) == 6 * TOKENS_IN
    assert calls[0]["calls"][0] == {"name": "kubectl", "arguments": calls[0]["calls"][0]["arguments"]}
    assert entries(tmp_path, "prompt")[0]["system"].startswith("You are an experienced")


@pytest.mark.kubectl
def test_a_model_without_tools_is_spoken_to_in_text(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        if body.get("tools"):
            return Turn(status=400, error="scripted-1 does not support tools")
        content = body["messages"][-1]["content"]
        if "Stage 1" in content:
            return Turn('Look.\n```\nkubectl get pods -A\n```\nIt says:\n```\nall is well\n```\n```\nsubmit("No")\n```')
        if "Stage 2" in content:
            return Turn('```python\nsubmit(["store"])\n```')
        assert "NAMESPACE" in content
        return Turn('```\nsubmit("Yes")\n```')

    result, _ = played(script, tmp_path, stages=("detection", "localization"))
    assert result["outcome"] == "pass" and result["usage"]["invalid_actions"] == 0


MISBEHAVIOUR: dict[str, tuple[Script, str, str]] = {
    "arguments that are no JSON": (lambda b, n: Turn("", (("kubectl", '{"argu'),)), "agent error", "no usable call"),
    "unknown tools": (lambda b, n: call("rm_rf", path="/"), "budget", "12 steps"),
    "wrong arguments": (lambda b, n: call("kubectl", verb="get"), "budget", "12 steps"),
    "an endless loop": (lambda b, n: call("get_alerts"), "budget", "12 steps"),
    "a refusal": (lambda b, n: Turn("I cannot help", refusal=True), "agent error", "refusal"),
    "words only": (lambda b, n: Turn("Everything looks fine to me."), "agent error", "no usable call"),
    "answers cut short": (lambda b, n: Turn("", (("kubectl", '{"arg'),), short=True), "agent error", "length"),
    "broken streams": (lambda b, n: Turn("half", cut=1), "agent error", "did not answer in 3 tries"),
    "errors": (lambda b, n: Turn(status=500), "agent error", "did not answer in 3 tries"),
    "too many requests": (
        lambda b, n: Turn(status=429, headers={"retry-after": "0"}),
        "agent error",
        "did not answer in 3 tries; last: HTTP 429",
    ),
    "a wrong key": (lambda b, n: Turn(status=401, error="no such key"), "agent error", "HTTP 401"),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", MISBEHAVIOUR)
@pytest.mark.daily_cases(11)
def test_misbehaviour_ends_in_the_right_class(name: str, wire: str, tmp_path: Path) -> None:
    script, outcome, reason = MISBEHAVIOUR[name]
    result, model = played(script, tmp_path, wire, stages=("detection",))
    assert (result["outcome"], reason in result["reason"]) == (outcome, True), result["reason"]
    unbilled = {"errors", "too many requests", "a wrong key"}
    if wire != "messages":  # only Anthropic's streams begin with what they cost
        unbilled.add("broken streams")
    billed = 0 if name in unbilled else len(model.requests)
    assert result["usage"]["tokens_in"] == billed * TOKENS_IN
    assert (result["usage"]["cost"] > 0) == (billed > 0)
    calls = entries(tmp_path, "model call")
    assert sum(entry["tries"] for entry in calls) == len(model.requests)
    assert sum(entry["tokens_in"] for entry in calls) == result["usage"]["tokens_in"]
    failed = sum(len(entry["failures"]) for entry in calls)
    assert failed == (len(model.requests) if name in unbilled - {"a wrong key"} | {"broken streams"} else 0)
    assert entries(tmp_path, "end of actions")[-1]["outcome"] == outcome


def test_a_model_that_hangs_ends_in_a_timeout(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        return call("get_alerts") if number == 1 else Turn(hang=True)

    result, _ = played(script, tmp_path, limits=replace(QUICK, wall_seconds=4), stages=("detection",))
    assert result["outcome"] == "timeout" and result["usage"]["tokens_in"] == TOKENS_IN
    assert entries(tmp_path, "model call")[-1]["stop"] == "failed"


def test_mistakes_that_stop_are_forgiven(tmp_path: Path) -> None:
    turns = [
        Turn("", (("kubectl", "{"), ("get_alerts", {}))),
        Turn("Hm."),
        Turn(status=429, headers={"retry-after": "0"}),
        Turn("cut", cut=1),
        call("submit", solution="Yes"),
    ]
    result, model = played(lambda body, n: turns[n - 1], tmp_path, stages=("detection",))
    assert result["outcome"] == "pass" and result["usage"]["steps"] == 2
    assert any("not JSON" in text for text in results_in(model.requests[1]))


def test_tokens_are_bounded(tmp_path: Path) -> None:
    result, model = played(
        lambda body, n: call("get_alerts"), tmp_path, limits=replace(QUICK, tokens=2500), stages=("detection",)
    )
    assert result["outcome"] == "budget" and "2500 tokens" in result["reason"] and len(model.requests) == 3


def test_cost_is_bounded(tmp_path: Path) -> None:
    result, _ = played(
        lambda body, n: call("get_alerts"), tmp_path, limits=replace(QUICK, cost=0.005), stages=("detection",)
    )
    assert result["outcome"] == "budget" and "cost" in result["reason"] and 0.005 <= result["usage"]["cost"] < 0.009


def test_long_conversations_are_shortened_when_the_model_says_so(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        if len(json.dumps(body["messages"])) > 30_000:
            return Turn(status=400, error="maximum context length is 8192 tokens")
        if number < 14:
            return call("kubectl", arguments="get pods -A -o json")
        return call("submit", solution="Yes")

    limits = replace(QUICK, steps=30)
    result, model = played(script, tmp_path, stages=("detection",), limits=limits)
    assert result["outcome"] == "pass" and entries(tmp_path, "compaction")
    last = model.requests[-1]["messages"]
    answered = {message["tool_call_id"] for message in last if message["role"] == "tool"}
    assert answered == {one["id"] for message in last for one in message.get("tool_calls", ())}


def test_plan_and_verify_looks_twice(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        if not body.get("tools"):
            return Turn("First the alerts.")
        return call("submit", solution="Yes")

    result, model = played(script, tmp_path, stages=("detection",), variant="plan-and-verify", tools="kubectl")
    assert result["outcome"] == "pass" and result["usage"]["steps"] == 1 and len(model.requests) == 3
    assert "verify" in results_in(model.requests[2])[0]
    offered = {tool["function"]["name"] for tool in model.requests[1]["tools"]}
    assert offered == {"kubectl", "exec_shell", "wait", "submit"}


def test_the_analysis_tools_are_one_more_tool(tmp_path: Path) -> None:
    turns = [
        call("analyse"),
        call("analyse", tool="alert_summary", arguments={"limit": 3}),
        call("analyse", tool="alert_sumary"),
        call("analyse", tool="alert_summary", arguments="all"),
        call("submit", solution="Yes"),
    ]
    result, model = played(lambda body, n: turns[n - 1], tmp_path, stages=("detection",), tools="sre")
    assert result["outcome"] == "pass" and result["usage"]["invalid_actions"] == 2
    listed, summed, unknown, wrong = results_in(model.requests[-1])
    assert "change_impact(" in listed and json.loads(summed)["total_count"] >= 0
    assert "there is no tool" in unknown and "dictionary" in wrong


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": ""}, "which model"),
        ({"model": "claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
        ({"model": "azure/mine"}, "AZURE_OPENAI_BASE_URL"),
        ({"model": "local/x", "colour": "red"}, "no option 'colour'"),
        ({"model": "local/x", "max_tokens": "many"}, "a number"),
        ({"model": "local/x", "protocol": "smoke"}, "protocol"),
        ({"model": "local/x", "wire": "smoke"}, "no wire"),
    ],
)
def test_what_is_missing_is_said_in_one_line(settings: dict[str, str], words: str) -> None:
    with pytest.raises(Exception, match=words) as caught:
        Settings.from_options(settings, {})
    assert "\n" not in str(caught.value)


def test_unknown_variants_are_named() -> None:
    settings = Settings.from_options({"model": "local/x", "variant": "wild"}, {})
    with pytest.raises(ArenaError, match="react, plan-and-verify"):
        LlmAgent(settings)


def test_models_find_their_endpoints() -> None:
    keys = {"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "OPENROUTER_API_KEY": "c", "GEMINI_API_KEY": "d"}
    expected = {
        "gpt-4.1": ("chat", "https://api.openai.com/v1", "gpt-4.1"),
        "openai/gpt-5-mini": ("responses", "https://api.openai.com/v1", "gpt-5-mini"),
        "claude-sonnet-4-5": ("messages", "https://api.anthropic.com", "claude-sonnet-4-5"),
        "openrouter/moon/kimi": ("chat", "https://openrouter.ai/api/v1", "moon/kimi"),
        "gemini-2.5-pro": ("chat", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro"),
        "local/llama": ("chat", "http://localhost:8000/v1", "llama"),
        "bedrock/anthropic.claude": ("litellm", "", "bedrock/anthropic.claude"),
    }
    for model, (wire, base, name) in expected.items():
        where = Settings.from_options({"model": model}, keys).route
        assert (where.wire, where.base_url, where.model) == (wire, base, name)
        assert "key=" not in repr(where)
