"""A journal is enough to make a world again, at any step."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from srearena.commands.replay import command
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.errors import ArenaError, BadSubmission
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.trial import Trial, perform
from srearena.conductor.worlds import EpisodeProcess, Journal, fork_is_safe, load, prepare
from srearena.config import Config
from tests.worlds.views import differences, views

pytestmark = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")

PROBLEM = "wrong_service_selector_hotel_reservation"
SPEC = EpisodeSpec(5, timeline=Timeline(before=60, after=60, deployment=120), config=Config())


@pytest.fixture(scope="module")
def template() -> Iterator[EpisodeProcess]:
    with prepare(PROBLEM, SPEC) as prepared:
        yield prepared


def test_a_world_is_made_again_from_its_journal_to_the_byte(template: EpisodeProcess, tmp_path: Path) -> None:
    with template.fork()[0] as first:
        first.act("wait(30)")
        with pytest.raises(BadSubmission):
            first.submit({"not": "an answer"})
        first.submit("Yes")
        (branch,) = first.fork(seeds=[8])
        with branch:
            branch.act("wait(60)")
            branch.journal.write(tmp_path / "journal.json")
            assert [request["do"] for request in first.journal.requests] == ["act", "submit", "submit"]
            with load(Journal.read(tmp_path)) as again:
                assert again.status() == branch.status()
                assert again.journal == branch.journal
                assert differences(views(again), views(branch)) == []


def test_a_finished_trial_is_replayed_at_a_step_with_the_access_of_its_agent(
    template: EpisodeProcess, tmp_path: Path
) -> None:
    with template.fork()[0] as episode:
        episode.act("wait(10)")
        episode.act('get_metrics("up")')
        episode.submit("No")
        episode.submit([])
        assert episode.submit(None).finished
        episode.grade(results=tmp_path)
    folder, seen = tmp_path / "trials" / PROBLEM / "0", tmp_path / "seen"
    script = (
        "import os, sys; from pathlib import Path; from srearena.service.kubernetes import Kubernetes\n"
        "with Kubernetes(Path(os.environ['KUBECONFIG'])) as api:\n"
        "    names = [pod['metadata']['name'] for pod in api.list('pods', 'hotel-reservation')]\n"
        "Path(sys.argv[1]).write_text('\\n'.join(names)); sys.exit(3)"
    )
    outcome = CliRunner().invoke(command, [str(folder), "--step", "1", "--", sys.executable, "-c", script, str(seen)])
    assert outcome.exit_code == 3, outcome.output
    assert "step 1 of 2" in outcome.output and "get_metrics" not in outcome.output
    assert any(name.startswith("search-") for name in seen.read_text().split())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "only graded trials on an embedded cluster"),
        ("[", "is not a journal"),
        ("{}", "is not a journal"),
        (json.dumps({"format": 0}), "this version reads 1 and 2"),
    ],
)
def test_what_is_no_journal_is_refused_in_one_sentence(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "journal.json").write_text(content)
    with pytest.raises(ArenaError, match=message):
        Journal.read(tmp_path)


def test_a_step_that_was_not_made_is_refused() -> None:
    journal = Journal(PROBLEM, SPEC).then("act", action="wait(1)").then("submit", solution="Yes", stage=None)
    assert [len(journal.up_to(step).requests) for step in (0, 1, None)] == [0, 1, 2]
    with pytest.raises(ArenaError, match="no step 2: the journal has 1 actions"):
        journal.up_to(2)


def without_ages(answer: str) -> str:
    """An answer without what depends on a millisecond: the ages of objects."""
    return re.sub(r"\s+", " ", re.sub(r"\b(\d+[dhms])+\b", "", answer))


class Scripted:
    """Does these acts, one after the other."""

    def __init__(self) -> None:
        self._acts = iter(ACTS)

    async def get_action(self, state: str) -> str:
        return next(self._acts)


ACTS = (
    'kubectl("-n hotel-reservation get pods")',
    'kubectl("-n hotel-reservation scale deployment geo --replicas 2")',
    'kubectl("-n hotel-reservation rollout status deployment geo --timeout 60s")',
    'kubectl("-n hotel-reservation get pods")',
    'get_metrics("sum(kube_deployment_status_replicas)")',
    'submit("Yes")',
    'kubectl("-n hotel-reservation delete pod -l io.kompose.service=geo --wait=false")',
    "wait(20)",
    'kubectl("-n hotel-reservation get pods")',
)


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_trial_in_real_time_has_a_journal_that_makes_nearly_the_same_world(taken_over: bool, tmp_path: Path) -> None:
    spec = replace(SPEC, stages=("detection", "mitigation"), in_process=True, limits=Limits(steps=len(ACTS)))
    healthy = None
    if taken_over:
        problem = ProblemRegistry().get_problem(PROBLEM, spec.variant)
        healthy = Episode(problem, open_cluster(problem, spec), spec)
        healthy.prepare_healthy(shared=True)
    trial = Trial(PROBLEM, "scripted", str(tmp_path / "run"), isolation="none", spec=spec)
    assert perform(trial, create_agent=Scripted, healthy=healthy)["outcome"] == "budget"
    journal = Journal.read(trial.folder)
    assert journal.began is not None and (journal.late > 0) is taken_over
    entries = map(json.loads, (trial.folder / "session.jsonl").read_text().splitlines())
    recorded = [entry["text"] for entry in entries if entry["what"] == "state"]
    answers: list[str] = []
    journal = replace(journal, spec=replace(journal.spec, limits=Limits(steps=None)))
    with load(journal, watch=lambda performed, answer: answers.append(answer)) as world:
        assert list(map(without_ages, answers[1:])) == list(map(without_ages, recorded))
        assert world.wait(30) >= journal.requests[-1]["until"] + 30
        with pytest.raises(ArenaError, match="in real time"):
            _ = world.journal


def test_an_episode_in_real_time_has_no_journal(template: EpisodeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_journal", None)
    with pytest.raises(ArenaError, match="in real time"):
        _ = template.journal
