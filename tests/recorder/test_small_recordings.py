"""What holds for every recording, tried on an application that is up in a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from srearena.cli import cli
from srearena.conductor.episode.spec import Timeline
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.errors import SreArenaError
from srearena.observer.recorder import Recorder
from srearena.observer.recording.data_set import DataSet
from srearena.snapshots import open_snapshot
from tests.arena.episodes import PORT, QUIET, ZERO
from tests.recorder.conftest import relative

ROOT = Path(__file__).parents[2]
SHORT = Timeline(before=60, after=120)


def record_short(name: str, place: Path, seed: int = 1, answers: Path | None = None) -> None:
    problem = ProblemRegistry().get_problem(name)
    Recorder(seed=seed, timeline=SHORT).record(problem, place, answers or place.with_name(f"{place.name}-answers"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("small") / "Scenario-1"
    record_short(PORT, place)
    return place


def test_the_same_seed_gives_the_same_files_on_any_machine(small: Path, tmp_path: Path) -> None:
    """By another user with another home, language, time zone, order of hashes and folder of temporary files."""
    elsewhere = tmp_path / "höme of another"
    elsewhere.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LC_", "SREARENA_"))},
        "HOME": str(elsewhere),
        "TMPDIR": str(elsewhere),
        "USER": "another",
        "LOGNAME": "another",
        "LANG": "de_DE.UTF-8",
        "TZ": "Pacific/Chatham",
        "PYTHONHASHSEED": "7",
        "COLUMNS": "40",
        "http_proxy": "http://127.0.0.1:9",
        "KUBECONFIG": str(elsewhere / "none"),
        "PYTHONPATH": str(ROOT),
    }
    record = f"from {__name__} import *; record_short(PORT, Path({str(tmp_path / 'Scenario-1')!r}))"
    words = [sys.executable, "-c", record]
    done = subprocess.run(words, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert relative(tmp_path / "Scenario-1") == relative(small)
    assert relative(tmp_path / "Scenario-1-answers") == relative(small.with_name("Scenario-1-answers"))


def test_another_seed_gives_another_cluster(small: Path, tmp_path: Path) -> None:
    record_short(PORT, tmp_path / "Scenario-1", seed=2)
    assert relative(tmp_path / "Scenario-1").keys() != relative(small).keys()  # pods have other names


def test_objects_are_seen_at_every_look(small: Path) -> None:
    with open_snapshot(small) as snapshot:
        looks = snapshot.rows("SELECT count(DISTINCT observed_at) AS n FROM objects")[0]["n"]
        versions = [v for v in snapshot.objects() if v.kind == "Service" and v.name == "api"]
    assert looks == 4  # at once, and after each minute
    assert [version.body["spec"]["ports"][0]["targetPort"] for version in versions][-1] == 9999
    assert len(versions) == 2


def test_the_key_says_from_what_to_what(small: Path) -> None:
    key = yaml.safe_load((small.with_name("Scenario-1-answers") / "ground_truth.yaml").read_text())
    changed = key["fault"][0]["entity"]["changed"]
    assert changed["element"].endswith("targetPort")
    assert changed["to"] == "9999"


def test_secrets_of_others_are_not_recorded(small: Path) -> None:
    with open_snapshot(small) as snapshot:
        seen = {(v.namespace, v.name) for v in snapshot.objects() if v.kind == "Secret"}
    assert not {place for place, _ in seen if place in ("kube-system", "platform")}


def test_nothing_wrong_has_an_empty_key(tmp_path: Path) -> None:
    record_short(QUIET, tmp_path / "Scenario-1")
    key = yaml.safe_load((tmp_path / "Scenario-1-answers" / "ground_truth.yaml").read_text())
    assert key["groups"] == key["fault"] == key["propagations"] == key["alerts"] == []


def test_what_is_there_is_not_written_over(small: Path) -> None:
    before = relative(small)
    with pytest.raises(SreArenaError, match="not empty"):
        record_short(PORT, small)
    assert relative(small) == before


def test_a_failed_recording_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srearena.observer.recorder.write_logs", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        record_short(ZERO, tmp_path / "Scenario-1")
    assert list(tmp_path.iterdir()) == []


def _run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["record", *words])
    return result.exit_code, result.output


def test_a_data_set_is_numbered_summed_and_resumed(tmp_path: Path) -> None:
    out, answers = tmp_path / "set", tmp_path / "keys"
    words = ("--all", PORT, QUIET, "--out", str(out), "--answers", str(answers), "--before", "60", "--after", "60")
    status, said = _run(*words)
    assert status == 0, said
    manifest = json.loads((out / "manifest.json").read_text())
    assert sorted(manifest["scenarios"]) == ["Scenario-1", "Scenario-2"]
    assert PORT not in (out / "manifest.json").read_text()
    assert set(json.loads((answers / "manifest.json").read_text())["problems"]) == {PORT, QUIET}
    assert sorted(path.name for path in answers.iterdir() if path.is_dir()) == ["Scenario-1", "Scenario-2"]
    assert _run("--check", "--out", str(out))[0] == 0

    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*.tsv")}
    status, said = _run(*words)
    assert status == 0
    assert "2 of 2 scenarios are recorded already" in said
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.tsv")} == stamps

    victim = next(out.rglob("k8s_events_raw.tsv"))
    victim.write_text(victim.read_text() + "more\n")
    status, said = _run("--check", "--out", str(out))
    assert status == 1
    assert "changed since it was recorded" in said


def test_numbers_stay_when_problems_are_added(tmp_path: Path) -> None:
    data_set = DataSet(tmp_path / "set", tmp_path / "keys", seed=5)
    first = {scenario.problem: scenario.number for scenario in data_set.plan(["b", "c", "d"])}
    more = {scenario.problem: scenario.number for scenario in data_set.plan(["a", "b", "c", "d", "e"])}
    assert first.items() <= more.items()
    assert sorted(more.values()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--out", "x"), "which problem"),
        (("no_such_problem", "--out", "x"), "there is no problem"),
        ((PORT, "--out", "x", "--after", "5"), "at least 60 seconds"),
        (("--all", "--with-answer", "--out", "x"), "keeps its answers in another directory"),
        (("--all", PORT, "--out", "x", "--answers", "x"), "directory of their own"),
        (("--check", "--out", "x"), "not a data set"),
    ],
)
def test_mistakes_are_told_in_a_line(
    words: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SreArenaError, match=complaint):
        CliRunner().invoke(cli, ["record", *words], catch_exceptions=False)
