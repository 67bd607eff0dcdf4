"""Whole episodes through `Conductor`: what the agent gets, what is recorded, and how they end."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clients.nothing import NothingAgent
from clients.scripted import ScriptedAgent, actions_in
from srearena.commands.regrade import command as regrade_command
from srearena.conductor import Conductor, EpisodeSpec
from srearena.conductor.episode.limits import Limits
from srearena.conductor.errors import ArenaError
from srearena.conductor.results.store import GRADER
from srearena.session import read_session
from tests.arena.episodes import PORT, QUIET, TIMELINE, ZERO

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
REPAIR = """kubectl -n corner-shop patch service api --type=json \
-p '[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8080}]'"""


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


def run(agent: Any, problem: str = PORT, **options: Any) -> dict[str, Any]:
    conductor = Conductor(EpisodeSpec(timeline=TIMELINE, in_process=True, **options))
    conductor.register_agent(agent)
    conductor.init_problem(problem)
    return asyncio.run(conductor.start_problem())


@pytest.mark.kubectl
@needs_kubectl
def test_an_agent_that_detects_localizes_and_repairs_passes(results: Path) -> None:
    agent = ScriptedAgent(
        actions=[
            "kubectl get pods -n corner-shop",
            "get_alerts()",
            'submit("Yes")',
            'submit(["api"])',
            REPAIR,
            "submit()",
        ]
    )
    result = run(agent)
    assert result["outcome"] == "pass", (result["reason"], agent.states[-2:])
    assert [stage["stage"] for stage in result["stages"]] == ["detection", "localization", "mitigation"]
    assert result["collateral"] == []
    assert result["usage"]["steps"] == 6
    shown = "\n".join(agent.states)
    assert "Running" in shown and "service/api patched" in shown
    assert "passed" not in shown.lower() and PORT not in shown

    folder = results / result["run"] / "trials" / PORT / "0"
    assert json.loads((folder / "result.json").read_text())["schema"] == "srearena.trial/1"
    kinds = [entry["what"] for entry in read_session(folder / "session.jsonl")]
    assert kinds.count("action") == 6 and kinds[-1] == "ending"
    with (results / result["run"] / "summary.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["outcome"] == "pass" and float(row["TTD"]) <= float(row["wall_seconds"])


def test_doing_nothing_fails_everywhere_but_on_a_healthy_system() -> None:
    broken = run(NothingAgent())
    assert broken["outcome"] == "fail"
    assert not any(stage["verdict"]["passed"] for stage in broken["stages"])
    healthy = run(NothingAgent(), QUIET)
    assert healthy["outcome"] == "pass"
    assert healthy["asked"] == broken["asked"]


class Recording(NothingAgent):
    """An agent that records every text it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[str] = []

    def init_context(self, description: str, instructions: str, actions: dict[str, str]) -> None:
        self.received += [description, instructions, *actions.values()]

    async def get_action(self, state: str) -> str:
        self.received.append(state)
        return await super().get_action(state)


@pytest.mark.parametrize("stages", [None, ("noop", "detection", "localization", "analysis", "diagnosis", "mitigation")])
def test_a_healthy_system_is_asked_the_same_in_the_same_words(stages: tuple[str, ...] | None) -> None:
    broken, healthy = Recording(), Recording()
    run(broken, PORT, stages=stages)
    result = run(healthy, QUIET, stages=stages)
    assert healthy.received == broken.received
    assert result["outcome"] == "pass", result["reason"]


@pytest.mark.kubectl
@needs_kubectl
def test_a_healthy_system_must_be_left_alone() -> None:
    actions = ['submit("No")', "submit([])", "kubectl -n corner-shop delete configmap web-site", "submit()"]
    result = run(ScriptedAgent(actions=actions), QUIET)
    assert result["outcome"] == "fail"
    assert "configmaps/web-site in corner-shop removed" in result["reason"]


def test_an_old_task_suffix_asks_that_stage_alone() -> None:
    result = run(ScriptedAgent(actions=['submit("Yes")']), f"{PORT}-detection-1")
    assert result["outcome"] == "pass" and result["asked"] == ["detection"]


def test_the_no_op_stage_comes_before_the_fault_and_looks_like_detection() -> None:
    agent = ScriptedAgent(actions=['submit("No")', 'submit("Yes")'])
    result = run(agent, ZERO, stages=("noop", "detection"))
    assert result["outcome"] == "pass"
    first, second = (state.split(". ", 1)[1] for state in agent.states)
    assert first == second


class Failing:
    async def get_action(self, state: str) -> str:
        raise RuntimeError("out of tokens")


class Silent:
    async def get_action(self, state: str) -> str:
        return None  # type: ignore[return-value]


class Slow:
    async def get_action(self, state: str) -> str:
        await asyncio.sleep(60)
        return "submit()"


class Spender:
    def usage(self) -> dict[str, Any]:
        return {"tokens_in": 900, "tokens_out": 200, "cost": 0.5}

    async def get_action(self, state: str) -> str:
        return "get_alerts()"


@pytest.mark.parametrize(
    ("agent", "limits", "outcome"),
    [
        (Failing, Limits(), "agent error"),
        (Silent, Limits(), "agent error"),
        (Slow, Limits(wall_seconds=0.3), "timeout"),
        (Spender, Limits(tokens=1000), "budget"),
        (Spender, Limits(cost=0.4), "budget"),
        (Spender, Limits(steps=2), "budget"),
        (lambda: ScriptedAgent(actions=["submit(1)"] * 3), Limits(), "invalid submission"),
        (lambda: ScriptedAgent(actions=["wait(600)"] * 3), Limits(virtual_seconds=1000), "timeout"),
    ],
)
def test_every_trial_ends_in_one_way(agent: Callable[[], Any], limits: Limits, outcome: str) -> None:
    result = run(agent(), limits=limits)
    assert result["outcome"] == outcome
    assert result["reason"]


def test_tokens_and_cost_are_recorded() -> None:
    usage = run(Spender(), limits=Limits(steps=2))["usage"]
    assert (usage["tokens_in"], usage["tokens_out"], usage["cost"]) == (900, 200, 0.5)


@pytest.mark.kubectl
@needs_kubectl
def test_what_the_agent_breaks_beside_the_point_is_told() -> None:
    agent = ScriptedAgent(actions=["kubectl -n corner-shop delete configmap web-site", "submit()"])
    result = run(agent, f"{PORT}-mitigation-1")
    (change,) = result["collateral"]
    assert change["class"] == "destructive"
    assert change["change"].startswith("configmaps/web-site in corner-shop removed")
    assert "configmaps/web-site" in result["reason"]


def test_mistakes_in_the_order_of_calls_are_explained() -> None:
    conductor = Conductor()
    with pytest.raises(ArenaError, match="init_problem"):
        asyncio.run(conductor.start_problem())
    with pytest.raises(ArenaError, match="get_action"):
        conductor.register_agent(object())  # type: ignore[arg-type]


def test_a_script_is_read_in_paragraphs() -> None:
    assert actions_in('# look\nkubectl get pods\n\n\nsubmit("Yes")\n') == ["kubectl get pods", 'submit("Yes")']


def test_stored_answers_can_be_graded_anew(results: Path) -> None:
    result = run(
        ScriptedAgent(actions=['submit("Yes")', 'submit(["api"])']), PORT, stages=("detection", "localization")
    )
    folder = results / result["run"]
    stored = folder / "trials" / PORT / "0" / "result.json"
    stored.write_text(stored.read_text().replace('"passed": true', '"passed": false').replace('"pass"', '"fail"'))
    done = CliRunner().invoke(regrade_command, [result["run"]])
    assert "fail -> pass" in done.output, done.output
    assert json.loads(stored.read_text())["stages"][1]["verdict"]["passed"]
    assert (stored.parent / f"result.grader-{GRADER}.json").is_file()


def test_grading_anew_keeps_what_was_said_of_a_repair_and_says_so(results: Path) -> None:
    result = run(ScriptedAgent(actions=['submit("Yes")', "submit()"]), PORT, stages=("detection", "mitigation"))
    stored = results / result["run"] / "trials" / PORT / "0" / "result.json"
    before = result["stages"][1]["verdict"]
    assert not before["passed"]
    done = CliRunner().invoke(regrade_command, [result["run"]])
    assert "mitigation verdicts kept: 1" in done.output, done.output
    fresh = json.loads(stored.read_text())
    assert fresh["kept"] == ["mitigation"]
    assert fresh["stages"][1]["verdict"] == json.loads(json.dumps(before))
    regraded = json.loads(CliRunner().invoke(regrade_command, [result["run"], "--json"]).output)
    assert regraded["kept"] == ["mitigation"]


def test_noise_is_harmless_seeded_and_recorded() -> None:
    acts = [run(NothingAgent(), QUIET, noise=True, seed=3)["noise"] for _ in range(2)]
    assert acts[0] == acts[1] and len(acts[0]) >= 3
    result = run(NothingAgent(), QUIET, noise=True, seed=4)
    assert result["outcome"] == "pass" and result["noise"] != acts[0]
