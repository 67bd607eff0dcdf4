"""The embedded cluster says what a real Kubernetes said, command by command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.parity import scenarios
from tests.parity.comparison import allowed, compare, embedded_terminal
from tests.parity.scenarios import Scenario
from tests.parity.transcripts import Terminal

RECORDED = [scenario for scenario in scenarios.load() if scenario.recording.exists()]

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with embedded_terminal() as opened:
        yield opened


@pytest.mark.parametrize("scenario", RECORDED, ids=lambda scenario: f"{scenario.topic}/{scenario.name}")
def test_a_scenario_shows_what_the_real_cluster_showed(scenario: Scenario, terminal: Terminal) -> None:
    known = allowed()
    if (scenario.name, "*") in known:
        pytest.xfail(known[scenario.name, "*"])
    compared = compare(terminal, scenario)
    unexpected = [
        f"$ kubectl {one.real.command}\n{one.difference}"
        for one in compared
        if not one.equal and (scenario.name, one.real.command) not in known
    ]
    assert not unexpected, "\n\n".join(unexpected)


def test_every_allowed_difference_is_about_a_recorded_view_and_says_why() -> None:
    by_name = {scenario.name: scenario for scenario in RECORDED}
    for (name, command), why in allowed().items():
        assert name in by_name, f"{name} has no recording"
        views = [f"events {s.command}".strip() if s.kind == "events" else s.command for s in by_name[name].steps]
        assert command in (*views, "*"), f"{name} shows no {command!r}"
        assert len(why) > 10
