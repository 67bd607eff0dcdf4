"""Outcomes of requests, from the leaves of the call graph to its roots: shares and durations per kind of outcome.

A request at a server, and an attempt of a call, has one of four outcomes: a response, an error, a refusal (the queue is
full, nothing listens) or the end of a timeout. Each has its own duration: a refusal takes a fraction of a millisecond
and a timeout takes its time, however long the others take. Metrics are computed from these numbers, and walks
sample the same ones hop by hop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from srearena.cluster.embedded.traffic.durations import Array, moments_within, shapes_and_scales

if TYPE_CHECKING:
    from srearena.cluster.embedded.traffic.fluid_model import FluidModel, Level

OK, ERROR, REFUSED, TIMEOUT = range(4)
REFUSAL_SECONDS = 0.00015
"""Chosen: reading a request and writing an error takes a server a fraction of a millisecond."""
LOST_SECONDS = 30.0
"""Chosen: clients without a timeout give up on a connection without packets after about half a minute."""
BREAKER_SECONDS = 0.0001
"""Chosen: a call that an open circuit breaker rejects costs a function call."""
_SMALLEST = 1e-12
_LARGEST = 1 - 1e-6
_UNLIKELY = 12.0
"""Deviations beyond which a timeout is not considered: less than one request in 100,000 of an exponential time."""


class Outcomes:
    """Per outcome (rows) and request (columns): the share of requests, mean and variance of their duration."""

    __slots__ = ("mean", "share", "variance")

    def __init__(self, count: int) -> None:
        self.share = np.zeros((4, count))
        self.share[OK] = 1.0
        self.mean = np.zeros((4, count))
        self.variance = np.zeros((4, count))

    def mixed(self, first: int = OK, last: int = TIMEOUT) -> tuple[Array, Array]:
        """Return mean and variance over a range of outcomes."""
        share, mean = self.share[first : last + 1], self.mean[first : last + 1]
        total = np.maximum(share.sum(axis=0), _SMALLEST)
        average: Array = (share * mean).sum(axis=0) / total
        square = (share * (self.variance[first : last + 1] + mean**2)).sum(axis=0) / total
        return average, np.maximum(square - average**2, 0.0)


def propagate(fluid: FluidModel) -> None:
    """Compute the outcomes of all nodes and calls after the queues have advanced."""
    count = fluid.node_count
    waits, wait_variance = fluid.waits[fluid.servers], fluid.wait_variance[fluid.servers]
    own = fluid.cpu * fluid.stretch[fluid.servers] + fluid.latency
    done = fluid.completed + fluid.refused + fluid.abandoned
    quiet = done <= _SMALLEST
    divisor = np.where(quiet, 1.0, done)
    nodes = Outcomes(count + 1)
    nodes.share[REFUSED, :count] = np.where(quiet, 0.0, fluid.refused / divisor)
    nodes.mean[REFUSED, :count] = REFUSAL_SECONDS
    nodes.share[TIMEOUT, :count] = np.where(quiet, 0.0, fluid.abandoned / divisor)
    nodes.mean[TIMEOUT, :count] = fluid.patience[fluid.servers]
    served = 1 - nodes.share[REFUSED, :count] - nodes.share[TIMEOUT, :count]
    nodes.share[OK, :count] = served * (1 - fluid.own_fails)
    nodes.share[ERROR, :count] = served * fluid.own_fails
    nodes.mean[OK, :count] = waits + own + fluid.pauses
    nodes.mean[ERROR, :count] = waits + own
    nodes.variance[:2, :count] = wait_variance + fluid.own_variance
    for level in reversed(fluid.levels):
        if level.calls.start < level.calls.stop:
            failing = _calls(fluid, level, nodes)
            _nodes(fluid, level, nodes, served, failing)
    fluid.node_outcomes = nodes
    # Of the requests that were served.
    fluid.response, fluid.variance = (values[:count] for values in nodes.mixed(OK, ERROR))
    fluid.fails = 1 - nodes.share[OK, :count]


def _calls(fluid: FluidModel, level: Level, nodes: Outcomes) -> bool:
    """Compute the outcomes of single attempts of one level's calls; return whether any fail."""
    links, calls = level.links, level.calls
    callees, weights = fluid.callees[links], fluid.weights[links]
    size = calls.stop - calls.start
    result = fluid.call_outcomes
    trip, trip_variance = fluid.round_trips[links], fluid.link_variance[links]
    ok, ok_variance = trip + nodes.mean[OK][callees], trip_variance + nodes.variance[OK][callees]
    limits = fluid.link_timeouts[links]
    timed = level.timed and bool((ok + _UNLIKELY * np.sqrt(ok_variance) > limits).any())
    pool_wait, pool_late, pool_limit = fluid.pool_outcomes(calls)
    failing = (
        timed
        or pool_late is not None
        or bool(fluid.link_fails[links].any() or fluid.open[calls].any())
        or bool((nodes.share[OK][callees] < 1 - 1e-9).any())
    )
    if not failing:
        share, mean, variance = weights[None], ok[None], ok_variance[None]
        result.share[ERROR:, calls] = 0.0
    else:
        share, mean, variance = _link_outcomes(fluid, level, nodes, timed, limits)
        share = weights * share
    # One sum for all: a level has few links, and the number of operations is what takes time.
    parts = np.concatenate((share, share * mean, share * (variance + mean**2)))
    rows = len(share)
    sums = _sums(level.sum_places[: parts.size], parts.ravel(), 3 * rows * size)
    total, average, square = sums.reshape(3, rows, size)
    some = np.maximum(total, _SMALLEST)
    average = average / some
    result.share[:rows, calls] = total
    result.mean[:rows, calls] = average
    result.variance[:rows, calls] = np.maximum(square / some - average**2, 0.0)
    whole = result.share[:, calls].sum(axis=0)
    # Weights add up to 1 but for rounding; a call without any path fails at once.
    pathless = whole < 1 - 1e-6
    if pathless.any():
        result.share[REFUSED, calls] += np.where(pathless, 1 - whole, 0.0)
    fluid.call_hold[calls] = (result.share[:, calls] * result.mean[:, calls]).sum(axis=0)
    if pool_wait is not None:
        result.mean[:, calls] += pool_wait
        result.variance[:, calls] += pool_wait**2
        if pool_late is not None:
            _add_late(result, calls, pool_late, pool_limit)
    opened = fluid.open[calls]
    fluid.call_fails[calls] = np.minimum((1 - result.share[OK, calls]) * (1 - opened) + opened, 1.0)
    if not failing:
        fluid.call_fails[calls] = 0.0
    return failing


def _link_outcomes(
    fluid: FluidModel, level: Level, nodes: Outcomes, timed: bool, limits: Array
) -> tuple[Array, Array, Array]:
    """Return share, mean and variance of each outcome (rows) on each link."""
    links = level.links
    callees = fluid.callees[links]
    trip, trip_variance = fluid.round_trips[links], fluid.link_variance[links]
    lost = fluid.link_lost[links]
    unreachable, silent = fluid.link_refused[links], fluid.link_silent[links]
    reached = (1 - lost) * (1 - unreachable - silent)
    share: Array = nodes.share[:, callees] * reached
    mean: Array = trip + nodes.mean[:, callees]
    variance: Array = trip_variance + nodes.variance[:, callees]
    share[REFUSED] = share[REFUSED] + unreachable
    mean[REFUSED] = np.minimum(np.where(unreachable > 0, trip, mean[REFUSED]), limits)
    # An abandoned request is one whose caller had timed out; a path that swallows packets may have a shorter limit.
    late = share[TIMEOUT]
    late_seconds = late * np.where(np.isfinite(limits), limits, mean[TIMEOUT])
    late_seconds = late_seconds + lost * np.minimum(LOST_SECONDS, limits) + silent * np.minimum(trip, limits)
    late = late + lost + silent
    if timed:
        for outcome in (OK, ERROR):
            risky = np.flatnonzero(mean[outcome] + _UNLIKELY * np.sqrt(variance[outcome]) > limits)
            shapes, scales = shapes_and_scales(mean[outcome][risky], variance[outcome][risky])
            exceed, within, within_variance = moments_within(limits[risky], shapes, scales)
            mean[outcome][risky] = within
            variance[outcome][risky] = within_variance
            exceeding = share[outcome][risky] * exceed
            share[outcome][risky] -= exceeding
            late[risky] += exceeding
            late_seconds[risky] += exceeding * limits[risky]
    share[TIMEOUT] = late
    mean[TIMEOUT] = late_seconds / np.maximum(late, _SMALLEST)
    variance[TIMEOUT] = 0.0
    variance[REFUSED] = trip_variance
    return share, mean, variance


def _add_late(result: Outcomes, calls: slice, late: Array, limit: Array) -> None:
    """Turn a share of calls into timeouts of the connection pool."""
    before = result.share[TIMEOUT, calls] * (1 - late)
    result.share[:, calls] *= 1 - late
    total = before + late
    mean = (before * result.mean[TIMEOUT, calls] + late * limit) / np.maximum(total, _SMALLEST)
    result.share[TIMEOUT, calls] = total
    result.mean[TIMEOUT, calls] = mean


def _nodes(fluid: FluidModel, level: Level, nodes: Outcomes, served: Array, failing: bool) -> None:
    """Add the outcomes of one level's calls to their nodes."""
    calls, span = level.calls, level.nodes
    size = span.stop - span.start
    result = fluid.call_outcomes
    call_share = fluid.made_share[calls]
    seconds, variance = result.mean[OK, calls], result.variance[OK, calls]
    if not failing:
        step = fluid.sequential_times[calls] * seconds + fluid.max_factors[calls] * np.sqrt(variance)
        mean = call_share * step
        spread = call_share * fluid.sequential_times[calls] * variance + call_share * (1 - call_share) * step**2
        mean, spread = _parallel(level, mean, spread)
        nodes.mean[OK, span] += _sums(level.group_nodes, mean, size)
        nodes.variance[OK, span] += _sums(level.group_nodes, spread, size)
        return
    fails = fluid.call_fails[calls]
    bad_seconds, bad_variance = _failure_times(fluid, calls)
    attempts, retried, backoff = fluid.attempts[calls], fluid.retried[calls], fluid.backoffs[calls]
    lost = np.where(retried, fails**attempts, fails)
    retries = np.where(retried, _before_end(fails, attempts), 0.0)
    good = seconds + retries * (bad_seconds + backoff)
    good_variance = variance + retries * bad_variance
    bad = attempts * bad_seconds + (attempts - 1) * backoff
    bad_variance = attempts * bad_variance
    times, in_sequence = fluid.times[calls], fluid.sequential_times[calls]
    mandatory = fluid.mandatory[calls] > 0
    passing = 1 - lost
    all_pass = np.where(times == 1, passing, passing**times)
    step = in_sequence * good + fluid.max_factors[calls] * np.sqrt(good_variance)
    passes = np.where(mandatory, 1 - call_share * (1 - all_pass), 1.0)
    passed_share = np.where(mandatory, call_share * all_pass / np.maximum(passes, _SMALLEST), call_share)
    step = np.where(mandatory, step, in_sequence * (passing * good + lost * bad))
    step_variance = np.where(
        mandatory,
        in_sequence * good_variance,
        in_sequence * (passing * good_variance + lost * bad_variance + passing * lost * (good - bad) ** 2),
    )
    mean = passed_share * step
    spread = passed_share * step_variance + passed_share * (1 - passed_share) * step**2
    earlier = np.where(in_sequence > 1, _before_end(passing, in_sequence), 0.0)
    stop, stop_variance = earlier * good + bad, earlier * good_variance + bad_variance
    mean, spread = _parallel(level, mean, spread)
    if not level.single:
        weight = np.maximum(1 - passes, _SMALLEST)
        weights = np.add.reduceat(weight, level.group_starts)
        stop = np.maximum(np.add.reduceat(weight * stop, level.group_starts) / weights, mean)
        stop_variance = np.add.reduceat(weight * stop_variance, level.group_starts) / weights
        passes = np.multiply.reduceat(passes, level.group_starts)
    _stops(fluid, level, nodes, served, (passes, mean, spread, stop, stop_variance))


def _failure_times(fluid: FluidModel, calls: slice) -> tuple[Array, Array]:
    """Return mean and variance of the time of a failed attempt, rejections of an open breaker among them."""
    result, opened = fluid.call_outcomes, fluid.open[calls]
    shares = result.share[ERROR:, calls] * (1 - opened)
    total = np.maximum(shares.sum(axis=0) + opened, _SMALLEST)
    means = result.mean[ERROR:, calls]
    mean = ((shares * means).sum(axis=0) + opened * BREAKER_SECONDS) / total
    square = (shares * (result.variance[ERROR:, calls] + means**2)).sum(axis=0) / total
    return mean, np.maximum(square - mean**2, 0.0)


def _stops(
    fluid: FluidModel, level: Level, nodes: Outcomes, served: Array, groups: tuple[Array, Array, Array, Array, Array]
) -> None:
    """Add up groups of calls in their order: a request ends with the first group that fails."""
    passes, mean, spread, stop, stop_variance = groups
    span, owners = level.nodes, level.group_nodes
    size = span.stop - span.start
    first = level.first_groups
    logs = np.log(np.maximum(passes, _SMALLEST))
    reach = np.exp(_before(logs, first))
    base_fails = fluid.own_fails[span]
    base, base_variance = nodes.mean[ERROR, span], nodes.variance[ERROR, span]
    stops = (1 - base_fails)[owners] * reach * (1 - passes)
    times = (base + fluid.pauses[span])[owners] + _before(mean, first) + stop
    squares = base_variance[owners] + _before(spread, first) + stop_variance + times**2
    failed = base_fails + _sums(owners, stops, size)
    some = np.maximum(failed, _SMALLEST)
    bad = (base_fails * base + _sums(owners, stops * times, size)) / some
    square = (base_fails * (base_variance + base**2) + _sums(owners, stops * squares, size)) / some
    failed = np.minimum(failed, 1.0)
    nodes.share[OK, span] = served[span] * (1 - failed)
    nodes.share[ERROR, span] = served[span] * failed
    nodes.mean[ERROR, span] = np.where(failed > 0, bad, base)
    nodes.variance[ERROR, span] = np.where(failed > 0, np.maximum(square - bad**2, 0.0), base_variance)
    nodes.mean[OK, span] += _sums(owners, mean, size)
    nodes.variance[OK, span] += _sums(owners, spread, size)


def _before(values: Array, first: np.ndarray) -> Array:
    """Return for each group the sum over earlier groups of its node."""
    sums = np.cumsum(values) - values
    result: Array = sums - sums[first]
    return result


def _before_end(chance: Array, most: Array) -> Array:
    """Return the mean number of repetitions before the first that ends a series, given that one of `most` does.

    `chance` is the probability that a repetition does not end it.
    """
    chance = np.minimum(chance, _LARGEST)
    power = chance**most
    result: Array = chance / (1 - chance) - most * power / (1 - power)
    return result


def _parallel(level: Level, mean: Array, spread: Array) -> tuple[Array, Array]:
    """Return mean and variance of the longest call of each group, by Clark's formula for two normal variables."""
    if level.single:
        return mean, spread
    longest, variance = mean[level.group_starts], spread[level.group_starts]
    for groups, members in level.parallels:
        one, two = longest[groups], mean[members]
        deviation = np.sqrt(variance[groups] + spread[members])
        ratio = (one - two) / np.maximum(deviation, _SMALLEST)
        # The logistic function approximates the normal distribution's within a hundredth.
        below = 1 / (1 + np.exp(-np.clip(1.702 * ratio, -50, 50)))
        density = np.exp(-(ratio**2) / 2) * 0.3989422804014327
        both = one * below + two * (1 - below) + deviation * density
        square = (one**2 + variance[groups]) * below + (two**2 + spread[members]) * (1 - below)
        square = square + (one + two) * deviation * density
        longest[groups] = np.maximum(both, np.maximum(one, two))
        variance[groups] = np.maximum(square - both**2, 0.0)
    return longest, variance


def _sums(places: np.ndarray, values: Array, size: int) -> Array:
    """Sum the values per position."""
    result: Array = np.asarray(np.bincount(places, values, minlength=size), dtype=np.float64)
    return result
