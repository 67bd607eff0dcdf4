"""Actions that never end or never stop printing: each is stopped, memory stays bounded, and the trial goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from clients.scripted import ScriptedAgent
from srearena.conductor.actions import command_line, kubectl_process
from srearena.conductor.actions.filters import FILTERS
from srearena.conductor.actions.time_limit import TimeLimit
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import BadAction
from srearena.conductor.problems.target_port import TargetPort
from srearena.conductor.trials import suite
from srearena.conductor.trials.suite import Suite
from srearena.conductor.trials.trial import Trial, perform
from srearena.config import Config
from tests.arena.episodes import PORT, TIMELINE, call, prepared_episode, shop_problem

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
IN_POD = "kubectl -n corner-shop exec deploy/api -- "
PROMPT = 150.0
"""Seconds: far above what a stopped action takes on a busy machine, far below what it would take."""

# Filters and the command line


@pytest.mark.parametrize("expression", ["(a|aa)+$", "(a*)*b", "(a+)+$", "((a|a)*)*c"])
def test_an_expression_takes_time_linear_in_the_text(expression: str) -> None:
    began = monotonic()
    FILTERS["grep"](["-E", expression], ["a" * 20_000 + "!"] * 20)
    assert monotonic() - began < PROMPT


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["grep", "-A", "999999999999", "x"], ["x"] * 20_000),
        (["grep", "-C", "20000", "x"], ["x"] * 20_000),
        (["cut", "-c", ",".join(["1-100000"] * 5_000)], ["x" * 1_000] * 1_000),
        (["cut", "-f", "1-999999999999"], ["x"] * 1_000),
    ],
)
def test_filters_select_every_line_and_position_once(words: list[str], lines: list[str]) -> None:
    began = monotonic()
    assert FILTERS[words[0]](words[1:], lines) == lines
    assert monotonic() - began < PROMPT


def test_a_here_document_without_an_end_is_read_in_linear_time() -> None:
    began = monotonic()
    with pytest.raises(BadAction):
        command_line.run("kubectl apply -f - <<a\n" + "\n \t" * 60_000 + "b", lambda w, i: (0, ""), lambda s: None)
    assert monotonic() - began < PROMPT


def test_a_long_list_of_commands_is_stopped_at_the_time_limit() -> None:
    calls: list[list[str]] = []

    def kubectl(words: list[str], stdin: str) -> tuple[int, str]:
        calls.append(words)
        if len(calls) == 3:
            limit.stop()
        return 0, "ok"

    limit = TimeLimit()
    with pytest.raises(BadAction, match="at most 120 s"):
        command_line.run(";".join(["kubectl get pods"] * 1_000), kubectl, lambda s: None, limit)
    assert len(calls) == 3


# Commands in pods


@pytest.fixture(scope="module")
def episode() -> Iterator[Episode]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubectl_process.KubectlProcess.__init__, "__defaults__", (4.0,))
        with prepared_episode(shop_problem(TargetPort)) as prepared:
            yield prepared


@pytest.mark.kubectl
@needs_kubectl
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "action",
    [
        IN_POD + "sh -c 'while :; do :; done'",
        IN_POD + "yes",
        IN_POD + "sh -c 'yes | sort'",
        IN_POD + "seq 1000000000000",
        IN_POD + "awk 'BEGIN{while(1);}'",
        IN_POD + "awk 'BEGIN{s=\"a\"; while(1) s = s s;}'",
        IN_POD + "awk 'BEGIN{while(1) a[i++] = 1;}'",
        IN_POD + "dd if=/dev/zero bs=1G count=100",
        IN_POD + "printf '%1000000000s' x",
        IN_POD + "sh -c 'f() { f | f & }; f; sleep 5'",
        IN_POD + "sh -c 'f() { f; }; f'",
        IN_POD + "sh -c 'cat /dev/zero | wc -c'",
        IN_POD + "sh -c 'echo a | sed \":a;s/./&&/g;ba\"'",
        IN_POD + "sh -c 'a=x; while :; do a=$a$a; done'",
        "kubectl get po -Ao go-template='{{range .items}}{{range $.items}}{{range $.items}}{{.}}{{end}}{{end}}{{end}}'",
        "kubectl get pods -A -w",
        "kubectl logs -n corner-shop deploy/api -f",
        'get_metrics("count_over_time(up[10y:1ms])")',
    ],
)
@pytest.mark.daily_cases(6)
def test_an_endless_action_is_stopped_and_the_cluster_still_answers(episode: Episode, action: str) -> None:
    began = monotonic()
    episode.act(call(action))
    assert "NAME" in episode.act(call("kubectl get nodes")), "the cluster does not answer any more"
    assert monotonic() - began < 2 * PROMPT
    assert episode.ending is None


# The limit of the trial


@pytest.mark.kubectl
@needs_kubectl
@pytest.mark.parametrize("action", [IN_POD + "sh -c 'while :; do :; done'", "wait(600)"])
def test_the_time_limit_ends_a_trial_in_the_middle_of_an_action(action: str, tmp_path: Path) -> None:
    spec = EpisodeSpec(1, ("detection",), Limits(wall_seconds=2), TIMELINE, config=Config())
    create: Callable[[], ScriptedAgent] = lambda: ScriptedAgent(actions=[action] * 50)  # noqa: E731
    result = perform(Trial(PORT, "scripted", str(tmp_path), spec=spec), create_agent=create)
    assert result["outcome"] in ("timeout", "budget")
    assert result["usage"]["wall_seconds"] < PROMPT


@pytest.mark.timeout(300)
def test_a_process_that_does_not_react_is_killed_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "_OVERTIME", 2.0)
    spec = EpisodeSpec(1, ("detection",), Limits(wall_seconds=2), config=Config())
    agent, options = "tests.arena.prying_agents:Hanging", {"marker": "0.01"}
    trial = Trial("scale_pod_zero_social_net", agent, str(tmp_path), 0, options, "none", spec)
    (result,) = Suite([trial], tmp_path).perform()
    assert (result["outcome"], "did not react" in result["reason"]) == ("timeout", True), result["reason"]
