"""Work in processes: all of it is done, whatever there is of it, and a death is told."""

from __future__ import annotations

import os
from functools import partial

import pytest

from srearena.conductor.errors import ArenaError
from srearena.conductor.processes import in_processes


def _power(exponent: int, base: int) -> int:
    return int(base**exponent)


def _die(item: int) -> int:
    os._exit(item)


@pytest.mark.parametrize("parallel", [1, 2])
def test_every_item_is_worked_on_once(parallel: int) -> None:
    done = in_processes(partial(_power, 2), list(range(40)), parallel)
    assert sorted(done) == [number * number for number in range(40)]


def test_a_process_that_dies_is_an_error_with_advice() -> None:
    with pytest.raises(ArenaError, match="--parallel 1"):
        list(in_processes(_die, [3, 4], 2))
