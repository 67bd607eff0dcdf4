"""The driver of the conformance tests, without the tests themselves, which take too long."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conformance import __main__ as driver


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


def test_a_focus_without_tests_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert driver.main(["run", "--focus", "no such test", "--cache", str(tmp_path)]) == 2
    assert "no conformance test matches 'no such test'" in capsys.readouterr().err
