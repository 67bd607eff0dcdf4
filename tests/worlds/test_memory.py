"""A process that plays one episode after the other in itself does not grow with them."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from srearena.cluster.embedded.clock import Clock
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.config import Config


def _clocks() -> set[int]:
    """Each world has one; other tests of this process may have worlds, too."""
    gc.collect()
    return {id(one) for one in gc.get_objects() if isinstance(one, Clock)}


@pytest.mark.parametrize("problem", sorted(ProblemRegistry().match(["noop_*"])))
def test_nothing_keeps_the_world_of_a_closed_episode(problem: str, tmp_path: Path) -> None:
    before = _clocks()
    conductor = Conductor(EpisodeSpec(seed=1, in_process=True, config=Config()), results=tmp_path)
    conductor.init_problem(problem)
    own = _clocks() - before
    assert len(own) == 1
    conductor.close()
    del conductor
    assert not own & _clocks()
