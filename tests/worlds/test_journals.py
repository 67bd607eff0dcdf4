"""A journal is enough to make a world again, at any step."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from srearena.commands.replay import command
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.errors import ArenaError, BadSubmission
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
        (None, "only trials of prepared episodes"),
        ("[", "is not a journal"),
        ("{}", "is not a journal"),
        (json.dumps({"format": 0}), "this version reads 1"),
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


def test_an_episode_in_real_time_has_no_journal(template: EpisodeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_journal", None)
    with pytest.raises(ArenaError, match="in real time"):
        _ = template.journal
