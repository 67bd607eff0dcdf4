"""Pages do not ask while the clock of their cluster is being advanced."""

from __future__ import annotations

from collections.abc import Iterator

from srearena.view.incidents.fast_forward import FastForward


class Clocks:
    """A cluster's clock at some speed; each reading takes 10 ms of real time."""

    def __init__(self) -> None:
        self.real, self.cluster, self.speed, self.readings = 0.0, 1000.0, 1.0, 0

    def wait(self, seconds: float) -> None:
        self.real += seconds
        self.cluster += seconds * self.speed

    def now(self) -> float:
        self.readings += 1
        self.wait(0.01)
        return self.cluster


def polled(clocks: Clocks) -> Iterator[bool]:
    watched = FastForward(clocks.now, 60.0, lambda: clocks.real)
    while True:
        yield watched.runs()
        clocks.wait(5.0)


def test_a_clock_that_is_advanced_runs_faster_than_it_can_be_set() -> None:
    clocks = Clocks()
    found = polled(clocks)
    assert [next(found), next(found)] == [False, False]
    clocks.speed = 60.0
    assert [next(found), next(found)] == [False, False], "as fast as a person may set it"
    clocks.speed = 600.0
    assert [next(found), next(found)] == [True, True]
    clocks.speed = 1.0
    next(found)
    assert next(found) is False


def test_time_that_was_advanced_between_two_polls_is_over() -> None:
    clocks = Clocks()
    found = polled(clocks)
    next(found)
    clocks.cluster += 1800.0
    assert next(found) is False, "what was missed is read at once"


def test_several_panels_read_the_clock_once() -> None:
    clocks = Clocks()
    watched = FastForward(clocks.now, 60.0, lambda: clocks.real)
    watched.runs()
    readings = clocks.readings
    assert not watched.runs() and clocks.readings == readings
