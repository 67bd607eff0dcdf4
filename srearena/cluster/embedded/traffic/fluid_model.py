"""Fluid model of a call graph: request rates as arrays, one interval at a time.

An interval has two passes. Down the graph: sources of load offer requests, every node makes its calls, and the rate of
each call is divided over its links. Then the queues advance: processors, threads and connection pools. Up the graph:
from the leaves, each node's response time and failure share become its callers' waiting times, timeouts and errors.

The effect of a call's outcome on its caller's further calls and on retries comes in the *next* interval. This delay
lets feedback build up and persist: a retry storm emerges, it is not solved for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.traffic import queues
from srearena.cluster.embedded.traffic.durations import Array, shapes_and_scales, tail_share
from srearena.cluster.embedded.traffic.graph import Call, CallKey, Graph, Node
from srearena.cluster.embedded.traffic.servers import Instance

SavedCalls = dict[CallKey, tuple[float, float, float]]
"""Of each call: the share that failed, its mean seconds, and how far its circuit breaker was open."""

LONGEST = 1e6
"""Seconds that stand for no limit."""
MAX_CORES = 64.0
"""Chosen: the largest nodes that a cluster here has."""
_EPSILON = 1e-12
# Limits within which a state counts as steady, so that ticks may be skipped. Chosen: below what metrics resolve
# (a tenth of a per cent of failures), and well below the utilisation at which waiting times grow steeply.
_STEADY_CHANGE = 1e-3
_HIGH_UTILISATION = 0.7
_BACKLOG_CHANGE = 0.1


@dataclass(slots=True)
class Level:
    """Positions of the nodes of one level, their calls, groups of calls and links in the arrays."""

    nodes: slice
    calls: slice
    links: slice
    groups: slice
    group_starts: np.ndarray
    """First call of each group, counted from the level's first call."""
    group_nodes: np.ndarray
    """The node of each group, counted from the level's first node."""
    call_nodes: np.ndarray
    link_calls: np.ndarray
    timed: bool
    """Whether any call of the level has a timeout."""


class FluidModel:
    """The arrays of one graph. `save_state` returns everything that must outlive it."""

    def __init__(self, graph: Graph, saved_calls: SavedCalls) -> None:
        self.graph = graph
        nodes, calls = graph.nodes, graph.calls
        self.node_count, self.call_count = len(nodes), len(calls)
        # Nodes
        self.servers = np.array([node.server.index for node in nodes], dtype=np.intp)
        self.cpu = np.array([node.cpu for node in nodes])
        self.latency = np.array([node.latency for node in nodes])
        self.own_variance = np.array([node.variance for node in nodes])
        self.own_fails = np.array([node.fails for node in nodes])
        self.pauses = np.array([_pauses(node) for node in nodes])
        self.payloads = np.array([float(node.payload) for node in nodes])
        self.arrivals = np.zeros(len(nodes))
        self.completed = np.zeros(len(nodes))
        self.response = self.cpu + self.latency
        self.variance = self.own_variance.copy()
        self.fails = self.own_fails.copy()
        # Calls
        self.callers = np.array([call.caller.index for call in calls], dtype=np.intp)
        self.times = np.array([call.times for call in calls])
        self.sequential_times = np.array([1.0 if call.step.at_once else call.times for call in calls])
        self.shares = np.array([call.share for call in calls])
        self.mandatory = np.array([0.0 if call.optional else 1.0 for call in calls])
        self.timeouts = np.array([call.target.timeout for call in calls])
        self.attempts = np.array([float(call.target.attempts) for call in calls])
        self.retried = self.attempts > 1
        self.backoffs = np.array([_mean_backoff(call) for call in calls])
        self.conditions = np.array([0 if call.cache is None else call.cache.index + 1 for call in calls], dtype=np.intp)
        self.missing = np.ones(len(graph.caches) + 1)
        self.warming = False
        """Whether hit rates of caches changed in the last interval."""
        self.call_rates = np.zeros(len(calls))
        self.call_fails = np.zeros(len(calls))
        """Share of single attempts that fail."""
        self.call_seconds = np.zeros(len(calls))
        self.call_variance = np.zeros(len(calls))
        self.open = np.zeros(len(calls))
        for index, call in enumerate(calls):
            self.call_fails[index], self.call_seconds[index], self.open[index] = saved_calls.get(
                call.key, (0.0, 0.0, 0.0)
            )
        # Links
        links = [(call.index, link) for call in calls for link in call.links]
        self.links = [link for _, link in links]
        self.link_calls = np.array([index for index, _ in links], dtype=np.intp)
        self.weights = np.array([link.weight for link in self.links])
        count = len(nodes)
        self.callees = np.array(
            [count if link.callee is None else link.callee.index for link in self.links], dtype=np.intp
        )
        self.round_trips = np.array([min(link.round_trip, LONGEST) for link in self.links])
        self.link_variance = np.array([link.variance for link in self.links])
        self.link_fails = np.array([1.0 if link.callee is None else link.lost for link in self.links])
        self.flows = np.zeros(len(self.links))
        self.link_timeouts = self.timeouts[self.link_calls] if len(self.links) else np.zeros(0)
        self.has_timeout = np.isfinite(self.link_timeouts)
        self.nodes_by_server: dict[int, list[Node]] = {}
        for node in nodes:
            self.nodes_by_server.setdefault(node.server.index, []).append(node)
        self._prepare_queues()
        self.levels = self._levels()
        self._prepare_reach()

    # Preparation

    def _prepare_queues(self) -> None:
        servers = self.graph.servers
        self.pooled = [target for target in self.graph.targets if target.pool < LONGEST]
        for index, target in enumerate(self.pooled):
            target.index = index
        self.threaded = [
            server
            for server in servers
            if isinstance(server, Instance) and (server.program.threads or server.program.paced) is not None
        ]
        count = len(servers)
        self.backlog = np.concatenate(
            [
                np.array([server.cpu_backlog for server in servers]),
                np.array([server.thread_backlog for server in self.threaded]),
                np.zeros(len(self.pooled)),
            ]
        )
        self.threads = np.array([s.settings.number(s.program.threads, 1.0) for s in self.threaded])
        self.paces = np.array([s.settings.number(s.program.paced, np.inf) for s in self.threaded])
        self.pools = np.array([target.pool for target in self.pooled])
        self.thread_servers = np.array([server.index for server in self.threaded], dtype=np.intp)
        max_backlog = np.full(count + len(self.threaded) + len(self.pooled), np.inf)
        for position, server in enumerate(servers):
            if isinstance(server, Instance) and server.program.queue is not None:
                limit = server.settings.number(server.program.queue, np.inf)
                if server in self.threaded:
                    place = count + self.threaded.index(server)
                    max_backlog[place] = limit + self.threads[self.threaded.index(server)]
                else:
                    max_backlog[position] = limit + 1
        self.max_backlog = max_backlog
        self.call_pools = np.array([call.target.index for call in self.graph.calls], dtype=np.intp)
        self.has_pool = self.call_pools >= 0
        self.pool_timeouts = np.array([call.target.pool_timeout for call in self.graph.calls])
        empty = np.zeros_like(max_backlog)
        self.queues = queues.QueueState(self.backlog, empty, empty, empty, empty)
        self.offered = np.zeros(count)
        self.cores = np.ones(count)
        self.stretch = np.ones(count)
        self.pass_ratio = np.ones(count)
        self.server_waits = np.zeros(count)
        self.refused = np.zeros(count)
        self.single_threaded = np.array([server.single_threaded for server in servers])
        self.mean_cpu = np.full(count, 0.0005)

    def _levels(self) -> list[Level]:
        nodes, calls = self.graph.nodes, self.graph.calls
        node_levels = np.array([node.level for node in nodes], dtype=np.intp)
        call_levels = node_levels[self.callers] if calls else np.zeros(0, dtype=np.intp)
        link_levels = call_levels[self.link_calls] if len(self.links) else np.zeros(0, dtype=np.intp)
        groups = [(call.caller.index, call.group) for call in calls]
        starts = [index for index, group in enumerate(groups) if index == 0 or groups[index - 1] != group]
        self.group_starts = np.array(starts, dtype=np.intp)
        self.group_of_call = np.searchsorted(self.group_starts, np.arange(len(calls)), side="right") - 1
        group_levels = call_levels[self.group_starts] if starts else np.zeros(0, dtype=np.intp)
        result: list[Level] = []
        for level in range(int(node_levels.max(initial=0)) + 1):
            n, c, k, g = (_slice(levels, level) for levels in (node_levels, call_levels, link_levels, group_levels))
            result.append(
                Level(
                    n,
                    c,
                    k,
                    g,
                    self.group_starts[g] - c.start,
                    self.callers[self.group_starts[g]] - n.start,
                    self.callers[c] - n.start,
                    self.link_calls[k] - c.start,
                    bool(np.isfinite(self.timeouts[c]).any()),
                )
            )
        return result

    def _prepare_reach(self) -> None:
        """Find the calls that must succeed before a call is made: earlier ones of its node, outside its own group."""
        first_of_node = np.searchsorted(self.callers, self.callers, side="left")
        self.before_group = self.group_starts[self.group_of_call] if self.call_count else first_of_node
        self.first_of_node = first_of_node

    # One interval

    def step(self, seconds: float, roots: Array) -> None:
        """Advance by an interval in which the roots offer these rates."""
        self._reach_and_retries()
        self._propagate_load(roots)
        self._advance_queues(seconds)
        self._propagate_outcomes()

    @property
    def is_steady(self) -> bool:
        """Whether nothing fails, no queue is near its capacity, and nothing changes by itself."""
        return not (
            self.warming
            or self.open.any()
            or (self.call_fails > _STEADY_CHANGE).any()
            or (self.fails > _STEADY_CHANGE).any()
            or (self.queues.utilisation > _HIGH_UTILISATION).any()
            or (np.abs(self.pass_ratio - 1) > _BACKLOG_CHANGE).any()
        )

    def _reach_and_retries(self) -> None:
        if not self.call_count:
            return
        before = self.missing.copy()
        for cache in self.graph.caches:
            self.missing[cache.index + 1] = cache.miss_share()
        self.warming = bool(np.abs(self.missing - before).max() > _STEADY_CHANGE)
        failing = np.where(self.retried, self.call_fails**self.attempts, self.call_fails)
        share = self.call_share = self.missing[self.conditions] * self.shares
        succeeds = 1 - self.mandatory * share * _any_of(failing, self.times)
        prefix = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(succeeds, 1e-9)))])
        self.reach = np.exp(prefix[self.before_group] - prefix[self.first_of_node]) * share
        fails = np.minimum(self.call_fails, 1 - 1e-9)
        attempts_per_call = np.where(self.retried, (1 - fails**self.attempts) / (1 - fails), 1.0)
        self.attempts_per_call = attempts_per_call
        self.multipliers = self.reach * self.times * attempts_per_call * (1 - self.open)

    def _propagate_load(self, roots: Array) -> None:
        count = self.node_count
        arrivals = np.zeros(count + 1)
        for node, rate in zip(self.graph.roots, roots, strict=True):
            arrivals[node.index] += rate
        pass_ratio = self.pass_ratio[self.servers]
        for level in self.levels:
            if level.calls.start == level.calls.stop:
                continue
            done = arrivals[level.nodes] * pass_ratio[level.nodes]
            rates = done[level.call_nodes] * self.multipliers[level.calls]
            self.call_rates[level.calls] = rates
            flows = rates[level.link_calls] * self.weights[level.links]
            arrivals += _sums(self.callees[level.links], flows, count + 1)
            self.flows[level.links] = flows
        self.arrivals = arrivals[:count]

    def _advance_queues(self, seconds: float) -> None:
        count = len(self.graph.servers)
        offered = _sums(self.servers, self.arrivals, count)
        work = _sums(self.servers, self.arrivals * self.cpu, count)
        self.offered = offered
        self.mean_cpu = np.where(offered > _EPSILON, work / np.maximum(offered, _EPSILON), self.mean_cpu)
        usable = np.where(self.single_threaded, np.minimum(self.cores, 1.0), self.cores)
        servers = np.maximum(np.floor(usable), 1.0)
        speed = usable / servers
        self.stretch = 1 / np.maximum(speed, 1e-6)
        rates = speed / np.maximum(self.mean_cpu, 1e-7)
        arrivals, counts, each = [offered], [servers], [rates]
        if self.threaded:
            holding = self._mean_of_servers(self.response)[self.thread_servers]
            waits = self.queues.waits[count : count + len(self.threaded)]
            arrivals.append(offered[self.thread_servers])
            counts.append(self.threads)
            each.append(np.minimum(1 / np.maximum(holding - waits, 1e-6), self.paces))
        if self.pooled:
            pools = len(self.pooled)
            mask = self.has_pool
            which = self.call_pools[mask]
            rate = _sums(which, self.call_rates[mask], pools)
            busy = _sums(which, (self.call_rates * self.call_seconds)[mask], pools)
            arrivals.append(rate)
            counts.append(self.pools)
            waits = self.queues.waits[count + len(self.threaded) :]
            each.append(1 / np.maximum(busy / np.maximum(rate, _EPSILON) - waits, 1e-5))
        self.queues = queues.step(
            np.concatenate(arrivals),
            np.concatenate(counts),
            np.concatenate(each),
            self.backlog,
            self.max_backlog,
            seconds,
        )
        self._abandon(count)
        self.backlog = self.queues.backlog
        served = self.queues.served[:count]
        # With a growing backlog outflow is less than inflow; with a draining one it is more. Ratios within two per cent
        # of 1 count as 1, so that rounding does not look like a backlog; 20 bounds the flush of a drained queue.
        pass_ratio = np.where(offered > _EPSILON, served / np.maximum(offered, _EPSILON), 1.0)
        self.pass_ratio = np.clip(np.where(np.abs(pass_ratio - 1) < 0.02, 1.0, pass_ratio), 0.0, 20.0)
        if self.threaded:
            through = self.queues.served[count : count + len(self.threaded)] / np.maximum(
                offered[self.thread_servers], _EPSILON
            )
            limited = np.where(offered[self.thread_servers] > _EPSILON, np.minimum(through, 1.0), 1.0)
            self.pass_ratio[self.thread_servers] = np.minimum(self.pass_ratio[self.thread_servers], limited)
        self.completed = self.arrivals * self.pass_ratio[self.servers]

    def _abandon(self, count: int) -> None:
        """Drop queued requests whose callers timed out: they close the connection.

        So a queue holds at most what arrives within its callers' timeouts; callers without one wait for ever.
        """
        if not self.has_timeout.any():
            return
        timeouts = np.where(self.flows > _EPSILON, self.link_timeouts, 0.0)
        waited_for = self.flows * timeouts
        places = np.append(self.servers, count)[self.callees]
        most = _sums(places, waited_for, count + 1)[:count] + 1
        state, backlog = self.queues, self.queues.backlog
        over = backlog[:count] > most
        if over.any():
            backlog[:count] = np.where(over, most, backlog[:count])
            state.waits[:count] = np.where(over, most / np.maximum(state.served[:count], 1e-9), state.waits[:count])

    def _mean_of_servers(self, values: Array) -> Array:
        count = len(self.graph.servers)
        total = _sums(self.servers, self.arrivals * values, count)
        plain = _sums(self.servers, values, count) / np.maximum(np.bincount(self.servers, minlength=count), 1)
        result: Array = np.where(self.offered > _EPSILON, total / np.maximum(self.offered, _EPSILON), plain)
        return result

    def _propagate_outcomes(self) -> None:
        count = len(self.graph.servers)
        waits = self.queues.waits[:count].copy()
        refused = self.queues.refused[:count].copy()
        if self.threaded:
            waits[self.thread_servers] += self.queues.waits[count : count + len(self.threaded)]
            refused[self.thread_servers] = np.maximum(
                refused[self.thread_servers], self.queues.refused[count : count + len(self.threaded)]
            )
        self.server_waits = waits
        self.refused = refused
        pool_waits = self.queues.waits[count + len(self.threaded) :]
        wait = waits[self.servers]
        own = self.cpu * self.stretch[self.servers] + self.latency + self.pauses
        response = np.append(wait + own, 0.0)
        # A queueing time is exponential (its deviation equals its mean), until a long backlog makes it equal for all.
        # The 20 is chosen: a wait of twenty service times halves the variance.
        variance = np.append(wait**2 / (1 + wait / np.maximum(own, 1e-4) / 20) + self.own_variance, 0.0)
        passes = np.append((1 - self.own_fails) * (1 - refused[self.servers]), 1.0)
        for level in reversed(self.levels):
            if level.calls.start == level.calls.stop:
                continue
            self._return_outcomes(level, response, variance, passes, pool_waits)
        self.response = response[:-1]
        self.variance = variance[:-1]
        self.fails = 1 - passes[:-1]

    def _return_outcomes(
        self, level: Level, response: Array, variance: Array, passes: Array, pool_waits: Array
    ) -> None:
        """Add the outcomes of one level's calls to their nodes."""
        links, calls = level.links, level.calls
        callees = self.callees[links]
        seconds = self.round_trips[links] + response[callees]
        spread = self.link_variance[links] + variance[callees]
        fails = 1 - passes[callees] * (1 - self.link_fails[links])
        if level.timed:
            limits = self.timeouts[calls][level.link_calls]
            shapes, scales = shapes_and_scales(seconds, spread)
            timed_out = np.where(np.isfinite(limits), tail_share(limits, shapes, scales), 0.0)
            fails = 1 - (1 - fails) * (1 - timed_out)
            cut = np.minimum(seconds, limits)
            spread = np.where(timed_out > 0.5, 0.01 * cut**2, spread)
            seconds = cut
        weights = self.weights[links]
        size = calls.stop - calls.start
        mean = _sums(level.link_calls, weights * seconds, size)
        square = _sums(level.link_calls, weights * (spread + seconds**2), size)
        failing = _sums(level.link_calls, weights * fails, size)
        if self.pooled:
            pools = self.call_pools[calls]
            waits = np.where(pools >= 0, pool_waits[np.maximum(pools, 0)], 0.0)
            timed_out = np.where(waits > 0, np.exp(-self.pool_timeouts[calls] / np.maximum(waits, 1e-9)), 0.0)
            failing = 1 - (1 - failing) * (1 - timed_out)
            mean = mean + np.minimum(waits, self.pool_timeouts[calls])
        opened = self.open[calls]
        failing = failing * (1 - opened) + opened
        mean = mean * (1 - opened)
        spread = np.maximum(square - mean**2, 0.0)
        self.call_fails[calls] = np.minimum(failing, 1.0)
        self.call_seconds[calls] = mean
        self.call_variance[calls] = spread
        tries = self.attempts_per_call[calls]
        whole = mean * tries + self.backoffs[calls] * (tries - 1)
        made_share = self.reach[calls] * self.sequential_times[calls]
        group_means = np.maximum.reduceat(made_share * whole, level.group_starts)
        group_spreads = np.maximum.reduceat(made_share * spread * tries, level.group_starts)
        size = level.nodes.stop - level.nodes.start
        response[level.nodes] += _sums(level.group_nodes, group_means, size)
        variance[level.nodes] += _sums(level.group_nodes, group_spreads, size)
        lost = np.where(self.retried[calls], failing ** self.attempts[calls], failing)
        succeeds = 1 - self.mandatory[calls] * self.call_share[calls] * _any_of(lost, self.times[calls])
        good = _sums(level.call_nodes, np.log(np.maximum(succeeds, 1e-9)), size)
        passes[level.nodes] *= np.exp(good)

    # State beyond this model

    def save_state(self) -> SavedCalls:
        """Store backlogs at their servers and return the state of calls, for the next fluid model."""
        count = len(self.graph.servers)
        for index, server in enumerate(self.graph.servers):
            server.cpu_backlog = float(self.backlog[index])
        for position, server in enumerate(self.threaded):
            server.thread_backlog = float(self.backlog[count + position])
        return {
            call.key: (float(self.call_fails[index]), float(self.call_seconds[index]), float(self.open[index]))
            for index, call in enumerate(self.graph.calls)
        }


def _sums(places: np.ndarray, values: Array, size: int) -> Array:
    """Sum the values per position."""
    result: Array = np.asarray(np.bincount(places, values, minlength=size), dtype=np.float64)
    return result


def _any_of(failing: Array, times: Array) -> Array:
    """Return the share of steps that fail, where a step of several calls fails with any of them."""
    result: Array = np.where(times == 1, failing, 1 - (1 - np.minimum(failing, 1 - 1e-9)) ** times)
    return result


def _slice(levels: np.ndarray, level: int) -> slice:
    return slice(int(np.searchsorted(levels, level, "left")), int(np.searchsorted(levels, level, "right")))


def _pauses(node: Node) -> float:
    from srearena.cluster.embedded.traffic.graph import Pause

    return sum(action.seconds for action in node.plan if isinstance(action, Pause))


def _mean_backoff(call: Call) -> float:
    target = call.target
    if target.attempts <= 1 or target.backoff <= 0:
        return 0.0
    limit = target.dependency.backoff.limit
    waits = [min(target.backoff * target.multiplier**number, limit) for number in range(min(target.attempts - 1, 20))]
    return sum(waits) / len(waits)
