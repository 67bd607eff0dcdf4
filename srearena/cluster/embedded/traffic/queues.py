"""Queues, many at once as arrays: processors, threads and connection pools.

Each queue has `servers` that serve `rate` requests a second each. In steady state a queue at utilisation r holds
`servers*r + r**sqrt(2*(servers+1)) / (1-r)` requests (Sakasegawa's approximation, exact for one server). Between steady
states the fluid approximation of that formula holds: inflow less the outflow of a queue of that length. One implicit
step per interval is stable for any interval, reaches the steady state within a step below capacity, and lets a backlog
grow and drain at the true speed above it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.traffic.durations import Array

_NEWTON_STEPS = 7
"""Newton's method from this start converges quadratically: seven steps reach machine precision."""
_MAX_UTILISATION = 1 - 1e-9


@dataclass(slots=True)
class QueueState:
    """The state of all queues after an interval."""

    backlog: Array
    """Requests waiting or in service."""
    served: Array
    """Requests served per second."""
    waits: Array
    """Mean waiting time, in seconds."""
    utilisation: Array
    refused: Array
    """Share of arrivals that found the queue full."""


def step(
    arrivals: Array, servers: Array, rates: Array, backlog: Array, max_backlog: Array, seconds: float
) -> QueueState:
    """Advance by an interval. `rates` are per server; `max_backlog` is infinite for a queue without limit."""
    capacity = servers * rates
    inflow = backlog + arrivals * seconds
    powers = np.sqrt(2 * (servers + 1))
    used = _utilisation(inflow, servers, capacity * seconds, powers)
    served = capacity * used
    # Rounding must not make a backlog negative.
    after = np.maximum(inflow - served * seconds, 0.0)
    refused = np.zeros_like(after)
    over = after > max_backlog
    if over.any():
        excess = np.where(over, after - max_backlog, 0.0)
        total = np.maximum(arrivals * seconds, 1e-12)
        refused = np.minimum(excess / total, 1.0)
        after = np.minimum(after, max_backlog)
    waiting = np.maximum(after - servers * used, 0.0)
    waits = waiting / np.maximum(served, 1e-9)
    # An empty queue has no waiting time, whatever the quotient of two tiny numbers is.
    waits = np.where(served > 1e-9, waits, np.where(waiting > 1e-9, seconds, 0.0))
    return QueueState(after, served, waits, used, refused)


def _utilisation(inflow: Array, servers: Array, through: Array, powers: Array) -> Array:
    """Return the r in [0, 1) with servers*r + r**power/(1-r) + through*r = inflow, by Newton's method from above."""
    linear = servers + through
    bound = np.minimum(inflow / np.maximum(linear, 1e-12), _MAX_UTILISATION)
    # Far into a backlog 1-r is about 1/waiting, which is where Newton's steps are safe to start.
    waiting = np.maximum(inflow - linear, 0.0)
    used = np.minimum(bound, 1 - 1 / (2 + waiting + np.sqrt(linear)))
    for _ in range(_NEWTON_STEPS):
        idle = 1 - used
        tail = used**powers / idle
        value = linear * used + tail - inflow
        slope = linear + tail * (powers / np.maximum(used, 1e-12) + 1 / idle)
        used = np.minimum(np.maximum(used - value / slope, 0.0), bound)
    result: Array = used
    return result
