"""The demonstration that comes with the site is made by one command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import Browser

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_the_demonstration_has_recorded_incidents_and_live_problems(browser: Browser, tmp_path: Path) -> None:
    problems = ("--problem", "scale_pod_zero_social_net", "--problem", "noop_social_network")
    command = [str(ROOT / "scripts" / "website-demo"), *problems, "--parallel", "2", "--output", str(tmp_path / "site")]
    interpreter = os.path.relpath(Path(sys.executable).parent.parent, ROOT)
    done = subprocess.run(command, env={**os.environ, "SREARENA_VENV": interpreter}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    base = (tmp_path / "site").as_uri() + "/"
    browser.open(base, "#/?kind=live")
    caption = browser.text("#ranking caption")
    assert "2 live problems, 6 agents" in caption
    scores = [text for text in browser.all("#ranking tbody td:nth-child(4)") if text != "–"]
    assert len(scores) == 6, "every agent has runs on live problems"
    browser.open(base, "#/?kind=snapshot")
    assert "6 recorded incidents, 6 agents" in browser.text("#ranking caption")
    assert browser.all("#ranking td.name a")[0] == "rules"
    assert len([text for text in browser.all("#ranking tbody td:nth-child(4)") if text != "–"]) == 2
    assert browser.complaints() == []


def test_the_command_says_what_it_takes() -> None:
    for words in (("--nonsense",), ("--suite",)):
        done = subprocess.run([ROOT / "scripts" / "website-demo", *words], capture_output=True, text=True)
        assert done.returncode == 2 and "--suite" in done.stderr
