"""Rates through a graph, one interval at a time, as arrays.

An interval goes down and up. Down: what drives load offers requests, every node that gets some makes its calls, and
each call's rate is divided over its links. Then the lines move: processors, threads and connection pools. Up: from
the leaves, each node learns how long a request stays and how often it fails, and each caller makes of that its own
waiting time, timeouts and errors.

What a call's outcome means for its caller's further calls and for retries takes effect in the *next* interval. That
is what lets feedback build up and stay: a storm of retries is not solved for, it happens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.traffic import queues
from srearena.cluster.embedded.traffic.durations import Array, beyond, shapes_and_scales
from srearena.cluster.embedded.traffic.graph import Call, CallKey, Graph, Node
from srearena.cluster.embedded.traffic.servers import Instance

Remembered = dict[CallKey, tuple[float, float, float]]
"""Of each call: how often it failed, how long it took, how far its breaker was open."""

FOREVER = 1e6
MAX_CORES = 64.0
_NONE = 1e-12
_STEADY = 1e-3
_CROWDED = 0.7
_UNEVEN = 0.1


@dataclass(slots=True)
class Level:
    """Where the nodes of one level, their calls, groups of calls and links are in the arrays."""

    nodes: slice
    calls: slice
    links: slice
    groups: slice
    group_starts: np.ndarray
    """First call of each group, from the level's first call on."""
    group_nodes: np.ndarray
    """The node of each group, from the level's first node on."""
    call_nodes: np.ndarray
    link_calls: np.ndarray
    timed: bool
    """Whether any call of the level has a timeout."""


class Circuit:
    """The arrays of one graph. Everything that must outlive it is put back with `keep`."""

    def __init__(self, graph: Graph, remembered: Remembered) -> None:
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
        self.in_a_row = np.array([1.0 if call.step.at_once else call.times for call in calls])
        self.shares = np.array([call.share for call in calls])
        self.matters = np.array([0.0 if call.optional else 1.0 for call in calls])
        self.timeouts = np.array([call.target.timeout for call in calls])
        self.attempts = np.array([float(call.target.attempts) for call in calls])
        self.retried = self.attempts > 1
        self.backoffs = np.array([_mean_backoff(call) for call in calls])
        self.conditions = np.array([0 if call.cache is None else call.cache.index + 1 for call in calls], dtype=np.intp)
        self.missing = np.ones(len(graph.caches) + 1)
        self.warming = False
        """Whether caches found more, or less, than an interval before."""
        self.call_rates = np.zeros(len(calls))
        self.call_fails = np.zeros(len(calls))
        """Share of single attempts that fail."""
        self.call_seconds = np.zeros(len(calls))
        self.call_variance = np.zeros(len(calls))
        self.open = np.zeros(len(calls))
        for index, call in enumerate(calls):
            self.call_fails[index], self.call_seconds[index], self.open[index] = remembered.get(
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
        self.round_trips = np.array([min(link.round_trip, FOREVER) for link in self.links])
        self.link_variance = np.array([link.variance for link in self.links])
        self.link_fails = np.array([1.0 if link.callee is None else link.lost for link in self.links])
        self.flows = np.zeros(len(self.links))
        self.link_timeouts = self.timeouts[self.link_calls] if len(self.links) else np.zeros(0)
        self.impatient = np.isfinite(self.link_timeouts)
        self.nodes_by_server: dict[int, list[Node]] = {}
        for node in nodes:
            self.nodes_by_server.setdefault(node.server.index, []).append(node)
        self._prepare_lines()
        self.levels = self._levels()
        self._prepare_reach()

    # Preparation

    def _prepare_lines(self) -> None:
        servers = self.graph.servers
        self.pooled = [target for target in self.graph.targets if target.pool < FOREVER]
        for index, target in enumerate(self.pooled):
            target.index = index
        self.threaded = [
            server
            for server in servers
            if isinstance(server, Instance) and (server.program.threads or server.program.paced) is not None
        ]
        count = len(servers)
        self.held = np.concatenate(
            [
                np.array([server.cpu_held for server in servers]),
                np.array([server.thread_held for server in self.threaded]),
                np.zeros(len(self.pooled)),
            ]
        )
        self.threads = np.array([s.settings.number(s.program.threads, 1.0) for s in self.threaded])
        self.paces = np.array([s.settings.number(s.program.paced, np.inf) for s in self.threaded])
        self.pools = np.array([target.pool for target in self.pooled])
        self.thread_servers = np.array([server.index for server in self.threaded], dtype=np.intp)
        room = np.full(count + len(self.threaded) + len(self.pooled), np.inf)
        for position, server in enumerate(servers):
            if isinstance(server, Instance) and server.program.queue is not None:
                limit = server.settings.number(server.program.queue, np.inf)
                if server in self.threaded:
                    place = count + self.threaded.index(server)
                    room[place] = limit + self.threads[self.threaded.index(server)]
                else:
                    room[position] = limit + 1
        self.room = room
        self.call_pools = np.array([call.target.index for call in self.graph.calls], dtype=np.intp)
        self.has_pool = self.call_pools >= 0
        self.pool_timeouts = np.array([call.target.pool_timeout for call in self.graph.calls])
        empty = np.zeros_like(room)
        self.lines = queues.Lines(self.held, empty, empty, empty, empty)
        self.offered = np.zeros(count)
        self.cores = np.ones(count)
        self.stretch = np.ones(count)
        self.passed = np.ones(count)
        self.server_waits = np.zeros(count)
        self.refused = np.zeros(count)
        self.single = np.array([server.single for server in servers])
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
        found: list[Level] = []
        for level in range(int(node_levels.max(initial=0)) + 1):
            n, c, k, g = (_slice(levels, level) for levels in (node_levels, call_levels, link_levels, group_levels))
            found.append(
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
        return found

    def _prepare_reach(self) -> None:
        """A call is made only if those before it in its node went well; those of its own group do not count."""
        first_of_node = np.searchsorted(self.callers, self.callers, side="left")
        self.before_group = self.group_starts[self.group_of_call] if self.call_count else first_of_node
        self.first_of_node = first_of_node

    # One interval

    def step(self, seconds: float, roots: Array) -> None:
        """Let an interval pass in which the roots offer these rates."""
        self._reach_and_retries()
        self._down(roots)
        self._move_lines(seconds)
        self._up()

    @property
    def calm(self) -> bool:
        """Nothing fails, nothing is crowded, and nothing changes by itself."""
        return not (
            self.warming
            or self.open.any()
            or (self.call_fails > _STEADY).any()
            or (self.fails > _STEADY).any()
            or (self.lines.utilisation > _CROWDED).any()
            or (np.abs(self.passed - 1) > _UNEVEN).any()
        )

    def _reach_and_retries(self) -> None:
        if not self.call_count:
            return
        before = self.missing.copy()
        for cache in self.graph.caches:
            self.missing[cache.index + 1] = cache.missing()
        self.warming = bool(np.abs(self.missing - before).max() > _STEADY)
        failing = np.where(self.retried, self.call_fails**self.attempts, self.call_fails)
        taken = self.taken = self.missing[self.conditions] * self.shares
        goes_well = 1 - self.matters * taken * _any_of(failing, self.times)
        prefix = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(goes_well, 1e-9)))])
        self.reach = np.exp(prefix[self.before_group] - prefix[self.first_of_node]) * taken
        fails = np.minimum(self.call_fails, 1 - 1e-9)
        amplified = np.where(self.retried, (1 - fails**self.attempts) / (1 - fails), 1.0)
        self.amplified = amplified
        self.multipliers = self.reach * self.times * amplified * (1 - self.open)

    def _down(self, roots: Array) -> None:
        count = self.node_count
        arrivals = np.zeros(count + 1)
        for node, rate in zip(self.graph.roots, roots, strict=True):
            arrivals[node.index] += rate
        passed = self.passed[self.servers]
        for level in self.levels:
            if level.calls.start == level.calls.stop:
                continue
            done = arrivals[level.nodes] * passed[level.nodes]
            rates = done[level.call_nodes] * self.multipliers[level.calls]
            self.call_rates[level.calls] = rates
            flows = rates[level.link_calls] * self.weights[level.links]
            arrivals += _sums(self.callees[level.links], flows, count + 1)
            self.flows[level.links] = flows
        self.arrivals = arrivals[:count]

    def _move_lines(self, seconds: float) -> None:
        count = len(self.graph.servers)
        offered = _sums(self.servers, self.arrivals, count)
        work = _sums(self.servers, self.arrivals * self.cpu, count)
        self.offered = offered
        self.mean_cpu = np.where(offered > _NONE, work / np.maximum(offered, _NONE), self.mean_cpu)
        usable = np.where(self.single, np.minimum(self.cores, 1.0), self.cores)
        servers = np.maximum(np.floor(usable), 1.0)
        speed = usable / servers
        self.stretch = 1 / np.maximum(speed, 1e-6)
        rates = speed / np.maximum(self.mean_cpu, 1e-7)
        arrivals, counts, each = [offered], [servers], [rates]
        if self.threaded:
            holding = self._mean_of_servers(self.response)[self.thread_servers]
            waits = self.lines.waits[count : count + len(self.threaded)]
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
            waits = self.lines.waits[count + len(self.threaded) :]
            each.append(1 / np.maximum(busy / np.maximum(rate, _NONE) - waits, 1e-5))
        self.lines = queues.step(
            np.concatenate(arrivals), np.concatenate(counts), np.concatenate(each), self.held, self.room, seconds
        )
        self._abandon(count)
        self.held = self.lines.held
        served = self.lines.served[:count]
        # With a backlog less comes out than went in, or more, while it drains.
        passed = np.where(offered > _NONE, served / np.maximum(offered, _NONE), 1.0)
        self.passed = np.clip(np.where(np.abs(passed - 1) < 0.02, 1.0, passed), 0.0, 20.0)
        if self.threaded:
            through = self.lines.served[count : count + len(self.threaded)] / np.maximum(
                offered[self.thread_servers], _NONE
            )
            limited = np.where(offered[self.thread_servers] > _NONE, np.minimum(through, 1.0), 1.0)
            self.passed[self.thread_servers] = np.minimum(self.passed[self.thread_servers], limited)
        self.completed = self.arrivals * self.passed[self.servers]

    def _abandon(self, count: int) -> None:
        """Whoever gave up waiting closes the connection, and the server drops the request it has not come to yet.

        So a line holds at most what arrives within its callers' patience; those without a limit wait for ever.
        """
        if not self.impatient.any():
            return
        patience = np.where(self.flows > _NONE, self.link_timeouts, 0.0)
        waited_for = self.flows * patience
        places = np.append(self.servers, count)[self.callees]
        most = _sums(places, waited_for, count + 1)[:count] + 1
        lines, held = self.lines, self.lines.held
        over = held[:count] > most
        if over.any():
            held[:count] = np.where(over, most, held[:count])
            lines.waits[:count] = np.where(over, most / np.maximum(lines.served[:count], 1e-9), lines.waits[:count])

    def _mean_of_servers(self, values: Array) -> Array:
        count = len(self.graph.servers)
        total = _sums(self.servers, self.arrivals * values, count)
        plain = _sums(self.servers, values, count) / np.maximum(np.bincount(self.servers, minlength=count), 1)
        result: Array = np.where(self.offered > _NONE, total / np.maximum(self.offered, _NONE), plain)
        return result

    def _up(self) -> None:
        count = len(self.graph.servers)
        waits = self.lines.waits[:count].copy()
        refused = self.lines.refused[:count].copy()
        if self.threaded:
            waits[self.thread_servers] += self.lines.waits[count : count + len(self.threaded)]
            refused[self.thread_servers] = np.maximum(
                refused[self.thread_servers], self.lines.refused[count : count + len(self.threaded)]
            )
        self.server_waits = waits
        self.refused = refused
        pool_waits = self.lines.waits[count + len(self.threaded) :]
        wait = waits[self.servers]
        own = self.cpu * self.stretch[self.servers] + self.latency + self.pauses
        response = np.append(wait + own, 0.0)
        # A wait in line varies as much as it lasts, until it is a long backlog everybody stands in alike.
        variance = np.append(wait**2 / (1 + wait / np.maximum(own, 1e-4) / 20) + self.own_variance, 0.0)
        passes = np.append((1 - self.own_fails) * (1 - refused[self.servers]), 1.0)
        for level in reversed(self.levels):
            if level.calls.start == level.calls.stop:
                continue
            self._return(level, response, variance, passes, pool_waits)
        self.response = response[:-1]
        self.variance = variance[:-1]
        self.fails = 1 - passes[:-1]

    def _return(self, level: Level, response: Array, variance: Array, passes: Array, pool_waits: Array) -> None:
        """What the calls of one level bring back to their nodes."""
        links, calls = level.links, level.calls
        callees = self.callees[links]
        seconds = self.round_trips[links] + response[callees]
        spread = self.link_variance[links] + variance[callees]
        fails = 1 - passes[callees] * (1 - self.link_fails[links])
        if level.timed:
            limits = self.timeouts[calls][level.link_calls]
            shapes, scales = shapes_and_scales(seconds, spread)
            late = np.where(np.isfinite(limits), beyond(limits, shapes, scales), 0.0)
            fails = 1 - (1 - fails) * (1 - late)
            cut = np.minimum(seconds, limits)
            spread = np.where(late > 0.5, 0.01 * cut**2, spread)
            seconds = cut
        weights = self.weights[links]
        size = calls.stop - calls.start
        mean = _sums(level.link_calls, weights * seconds, size)
        square = _sums(level.link_calls, weights * (spread + seconds**2), size)
        failing = _sums(level.link_calls, weights * fails, size)
        if self.pooled:
            pools = self.call_pools[calls]
            waits = np.where(pools >= 0, pool_waits[np.maximum(pools, 0)], 0.0)
            impatient = np.where(waits > 0, np.exp(-self.pool_timeouts[calls] / np.maximum(waits, 1e-9)), 0.0)
            failing = 1 - (1 - failing) * (1 - impatient)
            mean = mean + np.minimum(waits, self.pool_timeouts[calls])
        opened = self.open[calls]
        failing = failing * (1 - opened) + opened
        mean = mean * (1 - opened)
        spread = np.maximum(square - mean**2, 0.0)
        self.call_fails[calls] = np.minimum(failing, 1.0)
        self.call_seconds[calls] = mean
        self.call_variance[calls] = spread
        tries = self.amplified[calls]
        whole = mean * tries + self.backoffs[calls] * (tries - 1)
        taken = self.reach[calls] * self.in_a_row[calls]
        group_means = np.maximum.reduceat(taken * whole, level.group_starts)
        group_spreads = np.maximum.reduceat(taken * spread * tries, level.group_starts)
        size = level.nodes.stop - level.nodes.start
        response[level.nodes] += _sums(level.group_nodes, group_means, size)
        variance[level.nodes] += _sums(level.group_nodes, group_spreads, size)
        lost = np.where(self.retried[calls], failing ** self.attempts[calls], failing)
        goes_well = 1 - self.matters[calls] * self.taken[calls] * _any_of(lost, self.times[calls])
        good = _sums(level.call_nodes, np.log(np.maximum(goes_well, 1e-9)), size)
        passes[level.nodes] *= np.exp(good)

    # What outlives the arrays

    def keep(self) -> Remembered:
        """Put lines back to their servers, and say what calls were like, for the circuit that comes next."""
        count = len(self.graph.servers)
        for index, server in enumerate(self.graph.servers):
            server.cpu_held = float(self.held[index])
        for position, server in enumerate(self.threaded):
            server.thread_held = float(self.held[count + position])
        return {
            call.key: (float(self.call_fails[index]), float(self.call_seconds[index]), float(self.open[index]))
            for index, call in enumerate(self.graph.calls)
        }


def _sums(places: np.ndarray, values: Array, size: int) -> Array:
    """What comes together at each place."""
    result: Array = np.asarray(np.bincount(places, values, minlength=size), dtype=np.float64)
    return result


def _any_of(failing: Array, times: Array) -> Array:
    """The share of steps that fail, where a step of several calls fails with any of them."""
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
