"""New orders reach every consumer of the broker in time.

Why it cannot be gamed: the harness places the orders itself, so stopping the load does not keep the queue empty; nor
does skipping or deleting the backlog, because the check measures how fast new messages are consumed. The broker is
asked over the network with tools of the harness (`broker`), and consumers that the agent left behind are gone
(`leftovers`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.broker import run_tool
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe
from srearena.service.errors import TimedOut
from srearena.service.frontend import SampleRequest
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_TOOL = "kafka-consumer-groups.sh"
_ACCEPTABLE_LAG = 20
"""Messages; below the orders of the check, so that a stopped consumer is always found."""


class Consumption(Check):
    """The consumers keep up with `orders` new orders."""

    name = "consumption"

    def __init__(self, order: SampleRequest, *, orders: int = 30, within: float = 120.0) -> None:
        self._order = order
        self._orders = orders
        self._within = within

    def complaints(self, problem: Problem) -> list[str]:
        try:
            run_probe(problem, self._script(problem))
        except ProbeFailed as failed:
            return [str(failed)]
        problem.cluster.wait(10)
        lag: dict[str, int] = {}

        def caught_up() -> bool:
            lag.clear()
            lag.update(_lag(problem))
            return bool(lag) and max(lag.values()) <= _ACCEPTABLE_LAG

        try:
            wait_until(caught_up, problem.cluster.wait, self._within, what="consumers", step=5.0)
        except ProbeFailed as failed:
            return [str(failed)]
        except TimedOut:
            if not lag:
                return ["the broker reports no consumer groups"]
            worst = max(lag, key=lambda group: lag[group])
            return [f"{self._within:g} s after {self._orders} orders, {worst} is {lag[worst]} messages behind"]
        return []

    def _script(self, problem: Problem) -> str:
        frontend = problem.app.frontend
        assert frontend is not None
        url = f"http://{frontend.service}:{frontend.port}{self._order.path}"
        words = ["wget", "-q", "-T", "10", "-O", "/dev/null", "--header", "content-type: application/json"]
        words += ["--post-data", self._order.body, url]
        return f"for i in $(seq {self._orders}); do {shlex.join(words)}; done; true"


def _lag(problem: Problem) -> dict[str, int]:
    """The lag of each consumer group by the broker's own tool; empty where it does not answer."""
    lags: dict[str, int] = {}
    for row in map(str.split, run_tool(problem, _TOOL, "--describe", "--all-groups").splitlines()):
        if len(row) > 5 and row[5].isdecimal():
            lags[row[0]] = lags.get(row[0], 0) + int(row[5])
    return lags
