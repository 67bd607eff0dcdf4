"""A retry storm outlasts its trigger, and the system does not recover without help."""

from __future__ import annotations

import pytest

from srearena.conductor.episode.spec import Timeline
from srearena.conductor.oracles.checks import Traffic
from srearena.conductor.validity.player import PreparedEpisode

AFTER = 600.0
"""Seconds after the disturbance: the longest that a storm was seen to take to die down with less load."""


@pytest.mark.parametrize("name", ["load_spike_rpc_retry_storm", "capacity_decrease_rpc_retry_storm"])
def test_a_storm_lasts(name: str) -> None:
    with PreparedEpisode(name, 1, Timeline(before=120.0, after=AFTER, deployment=120.0)) as prepared:
        assert Traffic(timeout=0.0).complaints(prepared.problem)
