"""The driver of the conformance tests; of the tests themselves a few, where they have been built."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.conformance import __main__ as driver
from tests.conformance import others


def test_the_names_are_those_of_conformance_tests() -> None:
    names = driver.NAMES.read_text().splitlines()
    assert len(names) == len(set(names)) == 424
    assert all(name.startswith("[sig-") and "[Conformance]" in name for name in names)


def test_the_table_counts_by_sig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, results = tmp_path / "fidelity.md", tmp_path / "results.jsonl"
    shutil.copy(driver.PAGE, page)
    monkeypatch.setattr(driver, "PAGE", page)
    names = driver.NAMES.read_text().splitlines()
    apps = [name for name in names if name.startswith("[sig-apps]")]
    lines = [{"name": name, "state": "failed" if name == apps[0] else "passed"} for name in names]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert driver.main(["table", str(results)]) == 0
    text = page.read_text()
    assert f"| apps | {len(apps) - 1} | {len(apps)} |" in text
    assert "| **all** | **423** | **424** |" in text


def test_part_of_a_run_is_no_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text(json.dumps({"name": "[sig-apps] one", "state": "passed"}) + "\n")
    assert driver.main(["table", str(results)]) == 2
    assert "is not of a run of all conformance tests" in capsys.readouterr().err


def a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, str]
) -> tuple[driver.Run, list[list[str]]]:
    """A run of tests with these outcomes; a process ends at the first test without one."""
    processes: list[list[str]] = []

    def run_some(_number: int, names: list[str], *_: object) -> list[driver.Result]:
        processes.append(names)
        known = list(itertools.takewhile(lambda name: name in outcomes, names))
        return [{"name": name, "state": outcomes[name], "seconds": 0.1, "message": ""} for name in known]

    monkeypatch.setattr(driver, "run_some", run_some)
    monkeypatch.setattr(driver, "PER_PROCESS", 3)
    return driver.Run(["a", "b", "c", "d"], tmp_path), processes


def test_tests_that_a_process_did_not_come_to_get_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, processes = a_run(tmp_path, monkeypatch, {"a": "passed", "c": "passed", "d": "failed"})
    run.serve(driver.Cluster("none", tmp_path), (tmp_path, tmp_path))
    assert processes == [["a", "b", "c"], ["d"], ["b"], ["c"]]
    assert run.finish() == 2
    assert [result["state"] for result in driver.kept_results(tmp_path)] == ["passed", "not run", "passed", "failed"]


def test_a_run_continues_where_another_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [{"name": "a", "state": "passed"}, {"name": "b", "state": "failed"}]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    run, processes = a_run(tmp_path, monkeypatch, dict.fromkeys("abcd", "passed"))
    run.serve(driver.Cluster("none", tmp_path), (tmp_path, tmp_path))
    assert processes == [["b", "c", "d"]]
    assert run.finish() == 4


def test_a_few_of_the_tests_pass(tmp_path: Path) -> None:
    cache = Path(os.environ.get("SREARENA_CONFORMANCE_CACHE", "/nonexistent"))
    if not (cache / f"e2e.test-{driver.VERSION}").exists() or not (cache / f"kubectl-{driver.VERSION}").exists():
        pytest.skip("SREARENA_CONFORMANCE_CACHE names no folder with built conformance tests")
    focus = "ValidatingAdmissionPolicy|should reject .* webhook configurations with invalid match conditions"
    assert driver.run(focus, 1, cache, tmp_path / "out") == 0


def test_tests_outside_conformance_are_run_unless_a_reason_says_otherwise() -> None:
    rules = others.exclusions()
    assert all(rule.reason for rule in rules)
    names = others.NAMES.read_text().splitlines()
    assert len(names) == len(set(names)) > 300
    assert not [name for name in names if others.why_not(name, rules) or others.CONFORMANCE in name]
    assert others.why_not("[sig-windows] [Feature:Windows] Density should run pods", rules) == "Windows nodes"


def test_a_focus_without_tests_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert driver.main(["run", "--focus", "no such test", "--cache", str(tmp_path)]) == 2
    assert "no conformance test matches 'no such test'" in capsys.readouterr().err
