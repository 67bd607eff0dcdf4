"""The table of the README: agents that play one prepared episode one after the other, and the table's intervals."""

from __future__ import annotations

import pytest

from benchmarks.line_to_beat import AGENTS, interval, table
from benchmarks.trivial_agents import play


def test_agents_in_one_prepared_episode_do_not_disturb_each_other() -> None:
    first, again = play("wrong_service_selector_hotel_reservation", 31, ("rules", "rules"))
    assert first == again
    assert first["won"] and not first["error"]
    lines = table([first, {**again, "agent": "nothing", "won": False}], "lite@1").splitlines()
    assert [line.split("|")[1].strip() for line in lines[-2:]] == ["`nothing`", "`rules`"]
    assert "0% (0% to 79%)" in lines[-2] and "100% (21% to 100%)" in lines[-1]


@pytest.mark.parametrize("successes", [0, 1, 10, 20])
def test_an_interval_holds_its_share(successes: int) -> None:
    low, high = interval(successes, 20)
    assert 0 <= low <= successes / 20 <= high <= 1 and high - low > 0.1


def test_every_agent_is_there() -> None:
    assert len(set(AGENTS)) == len(AGENTS) == 6
