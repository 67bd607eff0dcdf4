"""Waiting lines, many at once: processors, threads and connection pools are the same thing to whoever stands in line.

Each line has `servers` that serve `rate` requests a second each. In the long run a line at utilisation r holds
`servers*r + r**sqrt(2*(servers+1)) / (1-r)` requests (Sakasegawa's formula, exact for one server). Between states of
rest we follow the fluid of that formula: what comes in, less what a line that holds so many lets out. One implicit
step per interval is stable whatever the interval, falls onto the state of rest within a step when there is room, and
lets a backlog grow and drain at the true speed when there is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.traffic.durations import Array

_STEPS = 7
_FULL = 1 - 1e-9


@dataclass(slots=True)
class Lines:
    """The state of all lines after an interval."""

    held: Array
    """Requests in line or being served."""
    served: Array
    """Requests a second that got through."""
    waits: Array
    """Mean time in line, in seconds."""
    utilisation: Array
    refused: Array
    """Share of what arrived that found the line full."""


def step(arrivals: Array, servers: Array, rates: Array, held: Array, room: Array, seconds: float) -> Lines:
    """Let an interval pass. `rates` are per server; `room` is how many may be held (infinity for any number)."""
    capacity = servers * rates
    inflow = held + arrivals * seconds
    powers = np.sqrt(2 * (servers + 1))
    used = _utilisation(inflow, servers, capacity * seconds, powers)
    served = capacity * used
    # Nobody stands in line less than nobody, however the last digit was rounded.
    after = np.maximum(inflow - served * seconds, 0.0)
    refused = np.zeros_like(after)
    over = after > room
    if over.any():
        excess = np.where(over, after - room, 0.0)
        total = np.maximum(arrivals * seconds, 1e-12)
        refused = np.minimum(excess / total, 1.0)
        after = np.minimum(after, room)
    waiting = np.maximum(after - servers * used, 0.0)
    waits = waiting / np.maximum(served, 1e-9)
    # A line nobody stands in has no waiting time, however small the numbers are that were divided.
    waits = np.where(served > 1e-9, waits, np.where(waiting > 1e-9, seconds, 0.0))
    return Lines(after, served, waits, used, refused)


def _utilisation(inflow: Array, servers: Array, through: Array, powers: Array) -> Array:
    """The r in [0, 1) with servers*r + r**power/(1-r) + through*r = inflow, by Newton's method from above."""
    linear = servers + through
    bound = np.minimum(inflow / np.maximum(linear, 1e-12), _FULL)
    # Far into a backlog 1-r is about 1/waiting, which is where Newton's steps are safe to start.
    waiting = np.maximum(inflow - linear, 0.0)
    used = np.minimum(bound, 1 - 1 / (2 + waiting + np.sqrt(linear)))
    for _ in range(_STEPS):
        rest = 1 - used
        tail = used**powers / rest
        value = linear * used + tail - inflow
        slope = linear + tail * (powers / np.maximum(used, 1e-12) + 1 / rest)
        used = np.minimum(np.maximum(used - value / slope, 0.0), bound)
    result: Array = used
    return result
