"""Closed loops: clients that have a limited number of requests in flight, such as connections or simulated users.

A client's requests in flight grow by what it sends, and a share of them ends that follows from the response time: in
steady state they are the product of both, by Little's law. The response time of an interval depends on the requests of
that interval, so a rate that respects a limit is found by repeating the interval at lower rates. Below the limit
nothing is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import Node

_MAX_REPEATS = 12
_CLOSE_ENOUGH = 0.95
"""Chosen: within a twentieth below the limit the search ends."""
_AIM = 0.97
"""What the search tries to reach from above: the limit itself would be approached for ever."""


@dataclass(slots=True, eq=False)
class ClientLimit:
    """A client with a limit."""

    places: list[int]
    """Its tasks' positions among the roots."""
    nodes: list[Node]
    in_flight: list[float]
    """Requests of each task in flight before the interval; afterwards, those after it."""
    most: float
    low: float = 0.0
    high: float = 1.0
    factor: float = 1.0
    """Of its rates: what is tried, the largest known to respect the limit, the smallest known to exceed it."""

    def in_flight_after(self, fluid: FluidModel, rates: np.ndarray, seconds: float) -> list[float]:
        return [
            (before + float(rates[place]) * seconds) / (1 + seconds / max(float(fluid.response[node.index]), 1e-6))
            for place, node, before in zip(self.places, self.nodes, self.in_flight, strict=True)
        ]

    def adjust(self, fluid: FluidModel, rates: np.ndarray, seconds: float, last: bool) -> bool:
        """Choose the next factor; return whether the present one will do."""
        in_flight = sum(self.in_flight_after(fluid, rates, seconds))
        if in_flight <= self.most:
            self.low = self.factor
            if self.factor == 1.0 or in_flight >= _CLOSE_ENOUGH * self.most:
                return True
        else:
            self.high = self.factor
        if last:
            self.factor = self.low
        elif self.low:
            self.factor = (self.low * self.high) ** 0.5
        else:
            # In flight grows at least in proportion to the rate.
            self.factor = self.high * max((_AIM * self.most / in_flight) ** 0.5, 0.1)
        return self.factor == self.low


def step_with_limits(fluid: FluidModel, seconds: float, rates: np.ndarray, limits: list[ClientLimit]) -> np.ndarray:
    """Advance by an interval in which no client exceeds its limit; return the rates that it had."""
    if not limits:
        fluid.step(seconds, rates)
        return rates
    before = fluid.feedback_state()
    fluid.step(seconds, rates)
    offered = rates
    for repeat in range(_MAX_REPEATS):
        last = repeat == _MAX_REPEATS - 1
        settled = [limit.adjust(fluid, offered, seconds, last) for limit in limits]
        if all(settled) and not last:
            break
        offered = rates.copy()
        for limit in limits:
            offered[limit.places] *= limit.factor
        fluid.restore(before)
        fluid.step(seconds, offered)
    for limit in limits:
        limit.in_flight[:] = limit.in_flight_after(fluid, offered, seconds)
    return offered
