"""Work in processes: all items are processed, and the death of a process is an error."""

from __future__ import annotations

import os
from functools import partial

import pytest

from srearena.conductor.errors import ArenaError
from srearena.conductor.trials.processes import in_processes


def _power(exponent: int, base: int) -> int:
    return int(base**exponent)


def _die(item: int) -> int:
    os._exit(item)


@pytest.mark.parametrize("parallel", [1, 2])
def test_every_item_is_worked_on_once(parallel: int) -> None:
    done = in_processes(partial(_power, 2), list(range(20)), parallel)
    assert sorted(done) == [number * number for number in range(20)]


def test_a_process_that_dies_is_an_error_with_advice() -> None:
    with pytest.raises(ArenaError, match="process for 3 died"):
        list(in_processes(_die, [3], 2))


def _refuse(item: int) -> int:
    raise ValueError(f"not {item}")


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="not 7"):
        list(in_processes(_refuse, [7], 1))
