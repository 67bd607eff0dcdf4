"""The fault of a running episode: shown to the operator who asked for it when it was started, and to nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from selenium.webdriver import Chrome

from srearena.conductor.agent_process.isolation import agent_variables
from srearena.conductor.episode.disclosure import REVEAL_TO, OperatorKey, check_operator, sealed_truth
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from tests.view.pages import Pages

PROBLEM = "wrong_service_selector_hotel_reservation"
SREARENA = [sys.executable, "-m", "srearena"]


def sealed(problem: str, operator: OperatorKey) -> str:
    return sealed_truth(ProblemRegistry().get_problem(problem), {REVEAL_TO: operator.public})["sealed"]


def test_only_the_key_that_was_named_opens_the_truth() -> None:
    operator = OperatorKey()
    text = sealed(PROBLEM, operator)
    opened = operator.open(text)
    assert opened is not None and opened["problem"] == PROBLEM and opened["roots"]
    assert OperatorKey().open(text) is None
    assert PROBLEM not in text and sealed_truth(ProblemRegistry().get_problem(PROBLEM), {}) == {}


def test_sealed_truths_cannot_be_told_apart() -> None:
    operator = OperatorKey()
    texts = [sealed(name, operator) for name in (PROBLEM, PROBLEM, "noop_hotel_reservation", "container_kill")]
    assert len(set(texts)) == 4 and len({len(text) for text in texts}) == 1


@pytest.mark.parametrize("text", ["", "x", "Zg==", "\u2603", "A" * 200, "[" * 100_000])
def test_what_is_no_sealed_truth_opens_to_nothing(text: str) -> None:
    assert OperatorKey().open(text) is None


def test_an_operator_who_is_no_key_is_refused_before_anything_is_staged() -> None:
    with pytest.raises(ArenaError, match="--reveal-faults"):
        check_operator({REVEAL_TO: "me"})


def test_agents_do_not_get_the_variable() -> None:
    assert agent_variables({REVEAL_TO: OperatorKey().public, "PATH": "/bin"}) == {"PATH": "/bin"}


@contextmanager
def running(*command: str, **environment: str) -> Iterator[dict[str, Any]]:
    """Run a command until the block ends; what it prints first."""
    with subprocess.Popen(
        [*SREARENA, *command, "--json"], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def test_the_fault_of_a_running_episode_is_shown_to_its_operator_who_asks(chrome: Chrome, tmp_path: Path) -> None:
    results = {"SREARENA_RESULTS": str(tmp_path)}
    (tmp_path / "run" / "trials").mkdir(parents=True)
    with running("view", "--reveal-faults", **results) as view, running("view", **results) as other:
        assert "reveal_to" not in other
        named = {**results, REVEAL_TO: view["reveal_to"]}
        with running("serve", PROBLEM, "--mcp", "none", **named) as episode:
            (published,) = (tmp_path / ".live").glob("*.json")
            text = published.read_text()
            assert PROBLEM not in text and "selector" not in text and json.loads(text)["sealed"]
            page = f"#/incident/{quote(f'episode:{published.stem}', safe='')}"
            pages = Pages(chrome, view["link"])
            pages.open(page, "#show-truth")
            assert PROBLEM not in pages.text() and "the fault" not in pages.text()
            pages.find("#show-truth").click()
            pages.wait(lambda: pages.all("#truth"))
            assert PROBLEM in pages.text("#truth") and "hotel-reservation/" in pages.text("#truth")

            request = f"/api/incident/truth?id={quote(f'episode:{published.stem}', safe='')}"
            assert httpx.get(view["url"] + request).status_code == 401
            for token in (episode["token"], other["token"]):
                header = {"authorization": f"Bearer {token}"}
                assert httpx.get(view["url"] + request, headers=header).status_code == 401
            header = {"authorization": f"Bearer {other['token']}"}
            answer = httpx.get(other["url"] + request, headers=header)
            assert answer.status_code == 422 and PROBLEM not in answer.text
            pages = Pages(chrome, other["link"])
            pages.open(page, ".node")
            assert not pages.all("#show-truth")
