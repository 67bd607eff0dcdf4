"""The whole chain: recordings, agents, runs, verdicts, ranking, site, browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from browsing import Browser

from tests.leaderboard.incidents import make_snapshots, write_configuration


def test_two_incidents_two_agents_three_runs_to_a_ranking_in_the_browser(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))
    make_snapshots(tmp_path / "snapshots", 2)
    config = write_configuration(tmp_path, agents=("fair", "good"), runs=3)
    for command in (
        ["-m", "itbench_leaderboard", "--config", str(config)],
        ["-m", "srearena.cli", "site", "build", str(tmp_path / "leaderboard_results")],
    ):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
    base = (tmp_path / "leaderboard_results" / "site").as_uri() + "/"
    browser.open(base)
    assert browser.all("#ranking td.name a") == ["good", "fair"]
    assert browser.all("#ranking tbody td:nth-child(4)") == ["1.000", "0.500"]
    browser.open(base, "#/incident/Scenario-1")
    assert "ErrImagePull" in browser.text()
    assert len(browser.all("#said tbody tr")) == 6
    browser.picture("leaderboard-incident")
    browser.open(base, "#/run/fair/Scenario-2/3")
    assert "Missed: payment. Wrongly blamed: shop/Deployment/frontend." in browser.text("#justification")
    assert any("<script>alert(1)</script> looking at payment" in step for step in browser.all(".steps ol button"))
    browser.picture("leaderboard-run")
    assert browser.complaints() == []
