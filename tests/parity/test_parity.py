"""The embedded cluster says what a real Kubernetes said, command by command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.parity import scenarios
from tests.parity.comparison import allowed, compare, embedded_terminal
from tests.parity.scenarios import Scenario
from tests.parity.transcripts import Terminal, Unsettled

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
    try:
        found = unexpected(terminal, scenario)
    except Unsettled as waited:
        found = [str(waited)]
    if found:
        # Replays run at many times the real speed: on a busy machine kubectl may come too late to see a passing state.
        # A difference is one that a second look, on a cluster of its own, shows again.
        with embedded_terminal() as again:
            found = unexpected(again, scenario)
    assert not found, "\n\n".join(found)


def unexpected(terminal: Terminal, scenario: Scenario) -> list[str]:
    """Differences that nobody has allowed, as they are shown."""
    known = allowed()
    return [
        f"$ kubectl {one.real.command}\n{one.difference}"
        for one in compare(terminal, scenario)
        if not one.equal and (scenario.name, one.real.command) not in known
    ]


def test_every_allowed_difference_is_about_a_recorded_view_and_says_why() -> None:
    by_name = {scenario.name: scenario for scenario in RECORDED}
    for (name, command), why in allowed().items():
        assert name in by_name, f"{name} has no recording"
        views = [f"events {s.command}".strip() if s.kind == "events" else s.command for s in by_name[name].steps]
        assert command in (*views, "*"), f"{name} shows no {command!r}"
        assert len(why) > 10
