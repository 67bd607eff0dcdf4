"""Fluid model of a call graph: request rates as arrays, one interval at a time.

An interval has two passes. Down the graph: sources of load offer requests, every node makes its calls, and the rate of
each call is divided over its links. Then the queues advance: processors, threads and connection pools. Up the graph
(`outcomes`): from the leaves, each node's outcomes become its callers' waiting times, timeouts and errors.

Requests are conserved. Of those that reach a node, each is served, refused, abandoned by its caller, or still waiting;
and a node makes the calls of every request that it has served. Since the throughput of an interval is known only after
its arrivals, calls are made at the expected throughput, and the difference is made up for in the next interval.

The effect of a call's outcome on its caller's further calls and on retries comes in the *next* interval. This delay
lets feedback build up and persist: a retry storm emerges, it is not solved for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from srearena.cluster.embedded.traffic import outcomes, queues
from srearena.cluster.embedded.traffic.durations import Array
from srearena.cluster.embedded.traffic.graph import Call, CallKey, Graph, Link, Node, NodeKey, Pause
from srearena.cluster.embedded.traffic.outcomes import Outcomes
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.spans import Attributes


@dataclass(slots=True)
class SavedState:
    """What outlives a fluid model."""

    calls: dict[CallKey, tuple[float, float, float, float, float]] = field(default_factory=dict)
    """The share that failed, mean seconds on a connection, how far the circuit breaker was open, the requests that wait
    for a connection, and those that have one but are not yet sent."""
    nodes: dict[NodeKey, tuple[float, float, float]] = field(default_factory=dict)
    """Requests in the queue, requests served whose calls are still to be made, and mean seconds without waiting: the
    time of which a request, with its calls, holds a thread."""


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
_ONE_REQUEST = 1.0


_FEEDBACK = (
    *("waiting", "unmade", "pass_ratio", "waits", "response", "mean_cpu", "patience"),
    *("call_fails", "call_hold", "call_waiting", "unsent", "missing"),
)


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
    first_groups: np.ndarray
    """The first group of the same node, of each group."""
    parallels: list[tuple[np.ndarray, np.ndarray]]
    """Groups of several calls: for their second, third ... calls the groups that have one, and those calls."""
    call_nodes: np.ndarray
    link_calls: np.ndarray
    sum_places: np.ndarray
    """Where a link counts in one array of several sums per call: those of one outcome, or those of all four."""
    timed: bool
    """Whether any call of the level has a timeout."""

    @property
    def single(self) -> bool:
        """Whether each group has one call."""
        return not self.parallels


class FluidModel:
    """The arrays of one graph. `save_state` returns everything that must outlive it."""

    def __init__(self, graph: Graph, saved: SavedState) -> None:
        self.graph = graph
        self.span_attributes: dict[Node | Link, Attributes] = {}
        """Of spans without an error, by server and by path: they stay as long as the graph."""
        nodes, calls = graph.nodes, graph.calls
        self.node_count, self.call_count = len(nodes), len(calls)
        # Nodes
        self.servers = np.array([node.server.index for node in nodes], dtype=np.intp)
        self.cpu = np.array([node.cpu for node in nodes])
        self.latency = np.array([node.latency for node in nodes])
        self.long_statements = [node for node in nodes if node.shared_cpu]
        self.own_variance = np.array([node.variance for node in nodes])
        self.own_fails = np.array([node.fails for node in nodes])
        self.pauses = np.array([_pauses(node) for node in nodes])
        self.payloads = np.array([float(node.payload) for node in nodes])
        self.arrivals = np.zeros(len(nodes))
        self.expected = np.zeros(len(nodes))
        """Requests per second whose calls are made."""
        self.completed = np.zeros(len(nodes))
        """Requests served per second; `refused` and `abandoned` ones ended otherwise."""
        self.refused = np.zeros(len(nodes))
        self.abandoned = np.zeros(len(nodes))
        kept = [saved.nodes.get(node.key, (0.0, 0.0, node.cpu + node.latency)) for node in nodes]
        self.waiting = np.array([waiting for waiting, _, _ in kept])
        """Requests in the queue of each node's server."""
        self.unmade = np.array([unmade for _, unmade, _ in kept])
        """Requests served whose calls are still to be made; negative where more were made than served."""
        self.response = np.array([holding for _, _, holding in kept])
        """Mean seconds of the requests that were served, and their variance."""
        self.variance = self.own_variance.copy()
        self.fails = self.own_fails.copy()
        """Share of requests that ended other than with a response."""
        self.node_outcomes = Outcomes(len(nodes) + 1)
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
        """Whether hit rates of caches changed in the last interval; `changing`: whether shares of failures did."""
        self.changing = True
        self.max_factors = np.array([_max_factor(call) for call in calls])
        self.call_rates = np.zeros(len(calls))
        """Attempts per second."""
        self.sent = np.zeros(len(calls))
        """Attempts per second that got a connection."""
        self.call_refused = np.zeros(len(calls))
        """Attempts per second that got no connection from the pool in time."""
        self.call_outcomes = Outcomes(len(calls))
        """Outcomes of single attempts."""
        nothing = (0.0, 0.0, 0.0, 0.0, 0.0)
        state = np.array([saved.calls.get(call.key, nothing) for call in calls]).reshape(-1, 5).T.copy()
        self.call_fails, self.call_hold, self.open, self.call_waiting, self.unsent = state
        """Share of single attempts that fail; mean seconds on a connection; breakers; requests that wait for a
        connection, and those that have one but are not yet sent."""
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
        self.link_lost = np.array([0.0 if link.callee is None else link.lost for link in self.links])
        silent = np.array([link.failure is not None and link.failure.kind == "timeout" for link in self.links], bool)
        self.link_silent = np.where(silent & (self.callees == count), 1.0, 0.0)
        """1 for paths without any answer; `link_refused`: with an error instead of a connection."""
        self.link_refused = np.where(~silent & (self.callees == count), 1.0, 0.0)
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
        threaded = [
            server
            for server in servers
            if isinstance(server, Instance) and (server.program.threads or server.program.paced) is not None
        ]
        count = len(servers)
        self.threads = np.array([s.settings.number(s.program.threads, 1.0) for s in threaded])
        self.paces = np.array([s.settings.number(s.program.paced, np.inf) for s in threaded])
        self.pools = np.array([target.pool for target in self.pooled])
        self.thread_servers = np.array([server.index for server in threaded], dtype=np.intp)
        self.unthreaded = np.ones(count, dtype=bool)
        self.unthreaded[self.thread_servers] = False
        max_backlog = np.full(count + len(self.pooled), np.inf)
        for position, server in enumerate(servers):
            if isinstance(server, Instance) and server.program.queue is not None:
                in_service = self.threads[threaded.index(server)] if server in threaded else 1.0
                max_backlog[position] = server.settings.number(server.program.queue, np.inf) + in_service
        self.max_backlog = max_backlog
        self.call_pools = np.array([call.target.index for call in self.graph.calls], dtype=np.intp)
        self.pooled_calls = np.flatnonzero(self.call_pools >= 0)
        self.pool_timeouts = np.array([target.pool_timeout for target in self.pooled])
        # Classes of requests in the queues: nodes at servers, then calls at connection pools.
        self.class_queues = np.concatenate([self.servers, count + self.call_pools[self.pooled_calls]])
        empty = np.zeros_like(max_backlog)
        self.queues = queues.QueueState(empty, empty, empty, empty, empty)
        self.offered = np.zeros(count)
        self.steadiness = np.zeros(count + len(self.pooled))
        """How far throughput is from arrivals, relative to them; `queue_changes`: in requests."""
        self.queue_changes = np.zeros(count + len(self.pooled))
        self.cores = np.ones(count)
        self.stretch = np.ones(count)
        self.pass_ratio = np.ones(count + len(self.pooled))
        self.waits = np.zeros(count)
        self.wait_variance = np.zeros(count)
        self.patience = np.zeros(count)
        """Mean timeout of the callers of a server."""
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
            group_starts = self.group_starts[g] - c.start
            group_nodes = self.callers[self.group_starts[g]] - n.start
            result.append(
                Level(
                    n,
                    c,
                    k,
                    g,
                    group_starts,
                    group_nodes,
                    np.searchsorted(group_nodes, group_nodes, side="left"),
                    _parallels(group_starts, c.stop - c.start),
                    self.callers[c] - n.start,
                    self.link_calls[k] - c.start,
                    _repeated(self.link_calls[k] - c.start, c.stop - c.start),
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
        call_fails, fails = self.call_fails.copy(), self.fails
        self._reach_and_retries()
        self._propagate_load(seconds, roots)
        self._advance_queues(seconds)
        outcomes.propagate(self)
        self.changing = bool(
            (np.abs(self.call_fails - call_fails) > _STEADY_CHANGE).any()
            or (np.abs(self.fails - fails) > _STEADY_CHANGE).any()
        )

    @property
    def is_steady(self) -> bool:
        """Whether the same share fails as before, no queue is near its capacity, and nothing changes by itself."""
        return not (
            self.warming
            or self.changing
            or self.open.any()
            or (self.queues.utilisation > _HIGH_UTILISATION).any()
            or ((self.steadiness > _BACKLOG_CHANGE) & (self.queue_changes > _ONE_REQUEST)).any()
        )

    def _reach_and_retries(self) -> None:
        if not self.call_count:
            return
        before = self.missing.copy()
        for cache in self.graph.caches:
            self.missing[cache.index + 1] = cache.miss_share()
        self.warming = bool(np.abs(self.missing - before).max() > _STEADY_CHANGE)
        failing = np.where(self.retried, self.call_fails**self.attempts, self.call_fails)
        share = self.made_share = self.missing[self.conditions] * self.shares
        succeeds = 1 - self.mandatory * share * _any_of(failing, self.times)
        prefix = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(succeeds, 1e-9)))])
        self.reach = np.exp(prefix[self.before_group] - prefix[self.first_of_node]) * share
        fails = np.minimum(self.call_fails, 1 - 1e-9)
        attempts_per_call = np.where(self.retried, (1 - fails**self.attempts) / (1 - fails), 1.0)
        # A program that fails by itself makes no calls.
        reach = self.reach * (1 - self.own_fails[self.callers])
        self.multipliers = reach * self.times * attempts_per_call * (1 - self.open)

    def _propagate_load(self, seconds: float, roots: Array) -> None:
        count = self.node_count
        arrivals = np.zeros(count + 1)
        for node, rate in zip(self.graph.roots, roots, strict=True):
            arrivals[node.index] += rate
        pass_ratio = self.pass_ratio[self.servers]
        expected = np.zeros(count)
        for level in self.levels:
            if level.calls.start == level.calls.stop:
                continue
            done = arrivals[level.nodes] * pass_ratio[level.nodes] + self.unmade[level.nodes] / seconds
            done = expected[level.nodes] = np.maximum(done, 0.0)
            rates = sent = done[level.call_nodes] * self.multipliers[level.calls]
            self.call_rates[level.calls] = rates
            if self.pooled:
                pools = self.call_pools[level.calls]
                ratio = self.pass_ratio[len(self.graph.servers) + np.maximum(pools, 0)]
                through = np.maximum(rates * ratio + self.unsent[level.calls] / seconds, 0.0)
                sent = np.where(pools >= 0, through, rates)
            self.sent[level.calls] = sent
            flows = sent[level.link_calls] * self.weights[level.links]
            arrivals += _sums(self.callees[level.links], flows, count + 1)
            self.flows[level.links] = flows
        self.arrivals = arrivals[:count]
        self.expected = expected

    def _advance_queues(self, seconds: float) -> None:
        count, nodes = len(self.graph.servers), self.node_count
        arrivals, waiting = self.arrivals, self.waiting
        if self.pooled:
            arrivals = np.concatenate([arrivals, self.call_rates[self.pooled_calls]])
            waiting = np.concatenate([waiting, self.call_waiting[self.pooled_calls]])
        sizes = count + len(self.pooled)
        offered = _sums(self.class_queues, arrivals, sizes)
        self.offered = offered[:count]
        backlog = _sums(self.class_queues, waiting, sizes)
        inside = self.waiting + self.arrivals * seconds
        total = _sums(self.servers, inside, count)
        work = _sums(self.servers, inside * self.cpu, count)
        self.mean_cpu = np.where(total > _EPSILON, work / np.maximum(total, _EPSILON), self.mean_cpu)
        usable = np.where(self.single_threaded, np.minimum(self.cores, 1.0), self.cores)
        servers = np.maximum(np.floor(usable), 1.0)
        speed = usable / servers
        self.stretch = 1 / np.maximum(speed, 1e-6)
        rates = speed / np.maximum(self.mean_cpu, 1e-7)
        threads: queues.SecondLimit | None = None
        if len(self.thread_servers):
            holding = self._mean_of_servers(self.response, inside, total)[self.thread_servers]
            each = 1 / np.maximum(holding - self.waits[self.thread_servers], 1e-6)
            threads = queues.SecondLimit(self.thread_servers, self.threads, np.minimum(each, self.paces))
        if self.pooled:
            sent = self.sent[self.pooled_calls]
            which = self.call_pools[self.pooled_calls]
            busy = _sums(which, sent * self.call_hold[self.pooled_calls], len(self.pooled))
            rate = _sums(which, sent, len(self.pooled))
            each = 1 / np.maximum(busy / np.maximum(rate, _EPSILON), 1e-5)
            servers, rates = np.concatenate([servers, self.pools]), np.concatenate([rates, each])
            # Who waits longer than the pool's timeout leaves with an error, so the queue has a length.
            self.max_backlog[count:] = self.pools + self.pools * each * self.pool_timeouts
        state = self.queues = queues.step(offered, servers, rates, backlog, self.max_backlog, seconds, threads)
        ledger = queues.divide(state, self.class_queues, arrivals, waiting, seconds)
        self.waiting = ledger.waiting[:nodes]
        self.completed, self.refused = ledger.served[:nodes], ledger.refused[:nodes]
        self.unmade = _without_rounding(self.unmade + (self.completed - self.expected) * seconds)
        self._abandon(seconds)
        if self.pooled:
            calls = self.pooled_calls
            self.call_waiting[calls] = ledger.waiting[nodes:]
            self.call_refused[calls] = ledger.refused[nodes:]
            unsent = self.unsent[calls] + (ledger.served[nodes:] - self.sent[calls]) * seconds
            self.unsent[calls] = _without_rounding(unsent)
        # Ratios within two per cent of 1 count as 1, so that rounding does not look like a backlog.
        pass_ratio = np.where(offered > _EPSILON, state.served / np.maximum(offered, _EPSILON), 1.0)
        self.steadiness = np.abs(pass_ratio - 1)
        self.queue_changes = np.abs(state.served - offered) * seconds
        self.pass_ratio = np.where(self.steadiness < 0.02, 1.0, np.minimum(pass_ratio, 1.0))
        own = self._mean_of_servers(self.cpu * self.stretch[self.servers], inside, total)
        self.waits = state.waits[:count]
        own = np.concatenate([own, 1 / rates[count:]])
        self.wait_variance = queues.wait_variances(state, own, self.max_backlog)[:count]

    def _abandon(self, seconds: float) -> None:
        """Drop queued requests whose callers timed out: they close the connection.

        So a queue holds at most what arrives within its callers' timeouts; callers without one wait for ever. A thread
        pool knows nothing of its callers' deadlines: what waits for a thread is executed, however late.
        """
        self.abandoned = np.zeros(self.node_count)
        if not self.has_timeout.any():
            return
        count = len(self.graph.servers)
        timeouts = np.where(self.flows > _EPSILON, self.link_timeouts, 0.0)
        waited_for = self.flows * timeouts
        places = np.append(self.servers, count)[self.callees]
        most = _sums(places, waited_for, count + 1)[:count]
        state, backlog = self.queues, self.queues.backlog
        over = (backlog[:count] > most + 1) & self.unthreaded
        if over.any():
            arriving = _sums(places, self.flows, count + 1)[:count]
            self.patience = np.where(over, most / np.maximum(arriving, _EPSILON), self.patience)
            most = most + 1
            gone = np.where(over, 1 - most / np.maximum(backlog[:count], _EPSILON), 0.0)[self.servers] * self.waiting
            self.waiting = self.waiting - gone
            self.abandoned = gone / seconds
            backlog[:count] = np.where(over, most, backlog[:count])
            state.waits[:count] = np.where(over, most / np.maximum(state.served[:count], 1e-9), state.waits[:count])

    def _mean_of_servers(self, values: Array, inside: Array, total: Array) -> Array:
        """Return the mean of a number of nodes over the requests inside each server."""
        count = len(self.graph.servers)
        weighted = _sums(self.servers, inside * values, count)
        plain = _sums(self.servers, values, count) / np.maximum(np.bincount(self.servers, minlength=count), 1)
        result: Array = np.where(total > _EPSILON, weighted / np.maximum(total, _EPSILON), plain)
        return result

    def pool_wait(self, call: int) -> tuple[float, float]:
        """Return how long a call waits for a connection, and the share of calls that wait in vain."""
        pool = self.call_pools[call]
        wait = min(float(self.queues.waits[len(self.graph.servers) + pool]), float(self.pool_timeouts[pool]))
        refused = float(self.call_refused[call])
        return wait, refused / max(float(self.sent[call]) + refused, _EPSILON)

    def pool_outcomes(self, calls: slice) -> tuple[Array | None, Array | None, Array]:
        """Return how long calls wait for a connection, the share that waits in vain, and for how long."""
        if not self.pooled:
            return None, None, self.pool_timeouts
        pools = self.call_pools[calls]
        limits = np.where(pools >= 0, self.pool_timeouts[np.maximum(pools, 0)], 0.0)
        waits = np.where(pools >= 0, self.queues.waits[len(self.graph.servers) + np.maximum(pools, 0)], 0.0)
        refused = self.call_refused[calls]
        if not refused.any():
            return waits, None, limits
        ended = self.sent[calls] + refused
        return np.minimum(waits, limits), refused / np.maximum(ended, _EPSILON), limits

    # State beyond an interval, and beyond this model

    def feedback_state(self) -> dict[str, Array]:
        """Return what an interval leaves to the next one, so that it can be repeated."""
        return {name: getattr(self, name).copy() for name in _FEEDBACK}

    def restore(self, state: dict[str, Array]) -> None:
        for name, values in state.items():
            setattr(self, name, values.copy())

    def save_state(self) -> SavedState:
        """Return the state of calls and queues, for the next fluid model."""
        columns = (self.call_fails, self.call_hold, self.open, self.call_waiting, self.unsent)
        calls = zip(self.graph.calls, zip(*(column.tolist() for column in columns), strict=True), strict=True)
        holding = np.maximum(self.response - self.waits[self.servers], 0.0)
        kept = zip(self.waiting.tolist(), self.unmade.tolist(), holding.tolist(), strict=True)
        nodes = zip(self.graph.nodes, kept, strict=True)
        return SavedState({call.key: values for call, values in calls}, {node.key: values for node, values in nodes})


def _sums(places: np.ndarray, values: Array, size: int) -> Array:
    """Sum the values per position."""
    result: Array = np.asarray(np.bincount(places, values, minlength=size), dtype=np.float64)
    return result


def _repeated(places: np.ndarray, size: int) -> np.ndarray:
    """Return the places of three sums for each of four outcomes, one array of sums after the other."""
    result: np.ndarray = (places + size * np.arange(3 * 4)[:, None]).ravel()
    return result


def _without_rounding(values: Array) -> Array:
    result: Array = np.where(np.abs(values) < 1e-9, 0.0, values)
    return result


def _any_of(failing: Array, times: Array) -> Array:
    """Return the share of steps that fail, where a step of several calls fails with any of them."""
    result: Array = np.where(times == 1, failing, 1 - (1 - np.minimum(failing, 1 - 1e-9)) ** times)
    return result


def _slice(levels: np.ndarray, level: int) -> slice:
    return slice(int(np.searchsorted(levels, level, "left")), int(np.searchsorted(levels, level, "right")))


def _parallels(group_starts: np.ndarray, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    lengths = np.diff(np.append(group_starts, size))
    longest = int(lengths.max(initial=1))
    return [(groups := np.flatnonzero(lengths > rank), group_starts[groups] + rank) for rank in range(1, longest)]


def _max_factor(call: Call) -> float:
    """Return how many deviations the longest of the calls of a step lies above the mean, where they are concurrent.

    For exponential times it is the harmonic number less one, and for normal ones hardly anything else.
    """
    return sum(1 / number for number in range(2, round(call.times) + 1)) if call.step.at_once else 0.0


def _pauses(node: Node) -> float:
    return sum(action.seconds for action in node.plan if isinstance(action, Pause))


def _mean_backoff(call: Call) -> float:
    target = call.target
    if target.attempts <= 1 or target.backoff <= 0:
        return 0.0
    limit = target.dependency.backoff.limit
    waits = [min(target.backoff * target.multiplier**number, limit) for number in range(min(target.attempts - 1, 20))]
    return sum(waits) / len(waits)
