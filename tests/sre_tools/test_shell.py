"""`sre-tools` from the shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "sre_tools.shell", *words], capture_output=True, text=True, timeout=60)


def test_list_names_every_tool() -> None:
    listed = _run("--list")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) == 14
    old_name = [sys.executable, "-m", "sre_tools.offline_incident_analysis.tools", "--list"]
    assert subprocess.run(old_name, capture_output=True, text=True, timeout=60).stdout == listed.stdout


def test_a_call_prints_the_reply_as_json(directory: Path, tmp_path: Path) -> None:
    place = ["--snapshot", str(directory), "--cache", str(tmp_path / "cache")]
    filters = '{"event_kind": "Warning"}'
    answer = _run("event_analysis", *place, "--filters", filters, "--group_by", "reason", "--limit=1")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["total_count"] == 2
    flagged = _run("get_k8_spec", *place, "--k8-object-name", "Deployment/payment", "--return_all_observations")
    assert json.loads(flagged.stdout)["total_count"] == 4


def test_help_describes_the_arguments() -> None:
    assert "--severity_filter" in _run("log_analysis", "--help").stdout


def test_mistakes_are_one_line(directory: Path) -> None:
    for words in (
        ["no_such_tool"],
        ["alert_summary", "--snapshot", "/nowhere"],
        ["alert_summary", "--snapshot", str(directory), "--limit", "x"],
        ["alert_summary", "--limit"],
        ["alert_summary", "stray"],
    ):
        answer = _run(*words)
        assert answer.returncode == 1
        assert answer.stderr.startswith("Error: ") and answer.stderr.count("\n") == 1
