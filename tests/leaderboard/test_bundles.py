"""Bundles for other machines: everything a run needs, no ground truth, and each sent once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from itbench_leaderboard.config import load
from itbench_leaderboard.executors import bundles
from itbench_leaderboard.executors.bundles import pack, pack_prompt, unpack
from itbench_leaderboard.executors.local import Local
from itbench_leaderboard.incidents import find
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome
from itbench_leaderboard.runner import Attempt
from tests.leaderboard.incidents import make_snapshot, make_snapshots, write_configuration


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))


def test_a_recording_travels_without_its_answer_key_and_links(tmp_path: Path) -> None:
    recording = make_snapshot(tmp_path, 3, "cart")
    (tmp_path / "secret.txt").write_text("not for agents")
    (recording / "out.txt").symlink_to(tmp_path / "secret.txt")
    (recording / "again.tsv").symlink_to(recording / "k8s_events_raw.tsv")
    bundle = pack(recording)
    shutil.rmtree(recording)
    place = unpack(bundle)
    assert place.name == "Scenario-3"
    names = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert {name for name in names if "alerts" not in name} == {"k8s_events_raw.tsv", "again.tsv"}
    assert (place / "again.tsv").read_text() == (place / "k8s_events_raw.tsv").read_text()


def test_the_same_content_is_sent_and_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "CHUNK", 100)
    first, second = (make_snapshot(tmp_path / name, 1, "cart") for name in ("a", "b"))
    (first / "k8s_events_raw.tsv").touch()
    one, other = pack(first), pack(second)
    assert one == other and len(one.chunks) > 1
    (second / "k8s_events_raw.tsv").write_text("another")
    assert pack(second).digest != one.digest
    fetched = []

    def fetch(piece: bytes) -> bytes:
        fetched.append(piece)
        return piece

    draft = tmp_path / "cache" / "shipped" / f"{one.digest}.draft" / "Scenario-1"
    draft.mkdir(parents=True)  # of a process that was killed while it unpacked
    (draft / "rest.tsv").touch()
    assert unpack(one, fetch) == unpack(other, fetch)
    assert len(fetched) == len(one.chunks)
    assert not (unpack(one, fetch) / "rest.tsv").exists()


def test_a_prompt_travels_with_its_includes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "method.md").write_text("Look at $SNAPSHOT_DIRS.")
    prompt = tmp_path / "mine.md"
    prompt.write_text("---\nmcp_servers: []\noutput: json\n---\nBegin. {{include: parts/method.md}} Cost: 5 $$.\n")
    bundle = pack_prompt(prompt)
    shutil.rmtree(tmp_path / "parts")
    text = unpack(bundle).read_text()
    assert text.startswith("---\n") and "output: json" in text
    assert text.endswith("Begin. Look at $SNAPSHOT_DIRS. Cost: 5 $$.\n")


def test_a_run_needs_nothing_of_the_machine_it_was_sent_from(tmp_path: Path) -> None:
    make_snapshots(tmp_path / "snapshots", 1)
    config = load(write_configuration(tmp_path, agents=("good",), runs=1))
    (incident,) = find(config)
    table = config.agents[0].model_dump(mode="json")
    document = Job("good", table, incident, 1, "", 60.0).as_document()
    packed = [(path, (pack_prompt if prompt else pack)(Path(path))) for path, prompt in bundles.local_paths(document)]
    shutil.rmtree(tmp_path / "snapshots")
    (tmp_path / "prompt.md").unlink()
    attempt = Attempt(1, tmp_path / "elsewhere")
    attempt.workspace.mkdir(parents=True)
    job = Job.from_document(bundles.unpacked(document, packed, bytes))
    report = Local().execute(replace(job, workspace=str(attempt.workspace)), attempt)
    assert report.outcome is Outcome.ANSWERED, report
    assert "shop/Deployment/cart" in (attempt.workspace / "agent_output.json").read_text()
