"""An application made from nothing, as docs/adding-an-application.md has it, is as good as ours: problems run on it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from srearena.conductor.problems import registry
from srearena.conductor.problems.target_port import TargetPort
from srearena.conductor.validity.verification import verify
from srearena.service.apps import find_application

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-application.md"
PROBLEM = "guestbook_target_port"


@pytest.fixture
def guestbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files that the page writes, with a problem on them."""
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    script = "\n".join(block for block in blocks if not re.search(r"^(python|srearena) ", block, re.MULTILINE))
    subprocess.run(["bash", "-eu", "-c", script], env={**os.environ, "HOME": str(tmp_path)}, check=True)
    monkeypatch.setenv("SREARENA_APPS", str(tmp_path / "apps"))
    registry.ProblemRegistry()
    registry.problem(PROBLEM, app="guestbook", service="mongo")(TargetPort)
    yield tmp_path / "apps" / "guestbook"
    registry._entries.pop(PROBLEM)


@pytest.mark.kubectl
def test_a_problem_on_it_proves_its_validity(guestbook: Path) -> None:
    """Healthy is quiet, broken is seen and judged broken, no cheat helps, and the remedy does."""
    assert find_application("guestbook").folder == guestbook
    proof = verify(PROBLEM)
    assert proof["valid"], proof
