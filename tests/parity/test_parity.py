"""The embedded cluster says what a real Kubernetes said, command by command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.parity import scenarios
from tests.parity.comparison import allowed, compare, embedded_terminal
from tests.parity.scenarios import Scenario
from tests.parity.transcripts import Terminal, find_helm, read

SCENARIOS = scenarios.load()

pytestmark = pytest.mark.kubectl


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    with embedded_terminal() as opened:
        yield opened


@pytest.mark.daily_cases(140)  # half of them; `make parity` and `scripts/test --all-problems` play all
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"{scenario.topic}/{scenario.name}")
def test_a_scenario_shows_what_the_real_cluster_showed(scenario: Scenario, terminal: Terminal) -> None:
    if scenario.needs_helm and find_helm() is None:
        pytest.skip("helm is not installed")
    known = allowed()
    compared = compare(terminal, scenario)
    unexpected = [
        f"$ kubectl {one.real.command}\n{one.difference}"
        for one in compared
        # What an operator would act on is never allowed to differ.
        if not one.equal and not (one.same_substance and (scenario.name, one.real.command) in known)
    ]
    assert not unexpected, "\n\n".join(unexpected)


def test_every_scenario_is_recorded_as_it_is_written() -> None:
    for scenario in SCENARIOS:
        shown = [step.title for step in scenario.steps if step.shows]
        assert [view.command for view in read(scenario.recording)] == shown, f"record {scenario.name} anew"
    recorded = {path.stem for path in scenarios.RECORDED.rglob("*.yaml")}
    assert recorded == {scenario.name for scenario in SCENARIOS}


def test_every_allowed_difference_is_about_a_view_and_says_why() -> None:
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    for (name, command), why in allowed().items():
        assert name in by_name, f"there is no scenario {name}"
        views = [step.title for step in by_name[name].steps if step.shows]
        assert command in views, f"{name} shows no {command!r}"
        assert len(why) > 10
