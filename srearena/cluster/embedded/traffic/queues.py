"""Queues, many at once as arrays: processors with their threads, and connection pools.

Each queue has `servers` that serve `rate` requests a second each. In steady state a queue at utilisation r holds
`servers*r + r**sqrt(2*(servers+1)) / (1-r)` requests (Sakasegawa's approximation, exact for one server). Between steady
states the fluid approximation of that formula holds: inflow less the outflow of a queue of that length. One implicit
step per interval is stable for any interval, reaches the steady state within a step below capacity, and lets a backlog
grow and drain at the true speed above it.

A program with a limited number of threads has two limits on one queue: its processors and its threads. The slower one
sets the throughput and holds the backlog; a request is in the queue until it has passed both.

Requests are conserved: in every interval backlog before + arrivals = backlog after + served + refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.traffic.durations import Array

_NEWTON_STEPS = 7
"""Newton's method from this start converges quadratically: at most seven steps reach machine precision."""
_MAX_UTILISATION = 1 - 1e-9
_PRECISION = 1e-13


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
    """Requests per second that found the queue full."""


@dataclass(slots=True)
class SecondLimit:
    """The limits of threads on some of the queues."""

    places: np.ndarray
    servers: Array
    rates: Array


def step(
    arrivals: Array,
    servers: Array,
    rates: Array,
    backlog: Array,
    max_backlog: Array,
    seconds: float,
    second: SecondLimit | None = None,
) -> QueueState:
    """Advance by an interval. `rates` are per server; `max_backlog` is infinite for a queue without limit."""
    capacity = servers * rates
    inflow = backlog + arrivals * seconds
    powers = np.sqrt(2 * (servers + 1))
    used = _utilisation(inflow, servers, capacity * seconds, powers)
    served = capacity * used
    holding = servers * used
    """Requests in service at the slower of the two limits."""
    more_waiting: Array | None = None
    if second is not None:
        places, total = second.places, second.servers * second.rates
        second_powers = np.sqrt(2 * (second.servers + 1))
        second_used = _utilisation(inflow[places], second.servers, total * seconds, second_powers)
        slower = total * second_used < served[places]
        # The faster of the two limits has the queue of a steady state at the throughput of the slower one.
        first_alone = np.minimum(total * second_used / np.maximum(capacity[places], 1e-12), _MAX_UTILISATION)
        second_alone = np.minimum(served[places] / np.maximum(total, 1e-12), _MAX_UTILISATION)
        more_waiting = np.where(
            slower,
            first_alone ** powers[places] / (1 - first_alone),
            second_alone**second_powers / (1 - second_alone),
        )
        served[places] = np.where(slower, total * second_used, served[places])
        holding[places] = np.where(slower, second.servers * second_used, holding[places])
        used[places] = np.where(slower, np.maximum(second_used, first_alone), np.maximum(used[places], second_alone))
    # Rounding must not make a backlog negative.
    after = np.maximum(inflow - served * seconds, 0.0)
    refused = np.zeros_like(after)
    over = after > max_backlog
    if over.any():
        excess = np.minimum(np.where(over, after - max_backlog, 0.0), arrivals * seconds)
        refused = excess / seconds
        after = after - excess
    waiting = np.maximum(after - holding, 0.0)
    if second is not None and more_waiting is not None:
        waiting[second.places] += more_waiting
    waits = waiting / np.maximum(served, 1e-9)
    # An empty queue has no waiting time, whatever the quotient of two tiny numbers is.
    waits = np.where(served > 1e-9, waits, np.where(waiting > 1e-9, seconds, 0.0))
    return QueueState(after, served, waits, used, refused)


@dataclass(slots=True)
class Ledger:
    """What became of the requests of each class in an interval, per second, and how many are still in the queue.

    A class is an operation of a server, or a call that uses a connection pool. Requests of all classes of a queue are
    served in the order of their arrival, so each class has the share of the throughput that it has of the inflow.
    """

    waiting: Array
    served: Array
    refused: Array


def divide(state: QueueState, queues: np.ndarray, arrivals: Array, waiting: Array, seconds: float) -> Ledger:
    """Divide the outcome of each queue over its classes; `queues` is the queue of each class."""
    count = len(state.served)
    offered = np.bincount(queues, arrivals, minlength=count)
    refused_share = np.where(offered > 1e-12, state.refused / np.maximum(offered, 1e-12), 0.0)
    refused = arrivals * np.minimum(refused_share, 1.0)[queues]
    inside = waiting + (arrivals - refused) * seconds
    total = np.bincount(queues, inside, minlength=count)
    left = np.minimum(state.served * seconds / np.maximum(total, 1e-12), 1.0)[queues] * inside
    # A queue ends: a fluid would only ever become thinner.
    left = np.where(inside - left < 1e-9, inside, left)
    return Ledger(inside - left, left / seconds, refused)


def wait_variances(state: QueueState, own: Array, max_backlog: Array) -> Array:
    """Return the variance of each queue's waiting time.

    A queueing time is exponential (its deviation equals its mean), until a long backlog makes it equal for all: the
    time of n requests ahead deviates by a factor of 1/sqrt(n) only. The 20 is chosen: a wait of twenty service times
    (`own`) halves the variance. A full queue has as many requests ahead of everyone who gets in.
    """
    ahead = np.maximum(state.backlog, 1.0)
    full = np.minimum(state.backlog / max_backlog, 1.0) ** 2
    shape = (1 - full) / (1 + state.waits / np.maximum(own, 1e-4) / 20) + full / ahead
    result: Array = state.waits**2 * shape
    return result


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
        before, used = used, np.minimum(np.maximum(used - value / slope, 0.0), bound)
        if np.abs(used - before).max(initial=0.0) < _PRECISION:
            break
    result: Array = used
    return result
