"""Sources of load: simulated users, fixed rates, and consumers of messages."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from srearena.application_model.schema import Consumption, Driving, Operation, Task
from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.programs.datastores.datastore import Broker
from srearena.cluster.embedded.traffic.durations import sample_duration, shapes_and_scales, tail_share
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import Call, Node
from srearena.cluster.embedded.traffic.graph_builder import calls_of
from srearena.cluster.embedded.traffic.outcomes import OK, REFUSED
from srearena.cluster.embedded.traffic.servers import Instance

_CONNECT_ERRORS = frozenset(("refused", "name", "unreachable", "port", "reset"))


_MAX_SAMPLES = 1000
"""Chosen: bounds the cost of a quantile, and is enough for the minutes that a test lasts."""


class Tally:
    """Outcomes of the requests of one source of load."""

    def __init__(self) -> None:
        self.completed = 0.0
        self.errors = 0.0
        """Completed with an error."""
        self.timeouts = 0.0
        self.connect_errors = 0.0
        self.bytes_received = 0.0
        self._samples: deque[tuple[float, float, float]] = deque(maxlen=_MAX_SAMPLES)
        """Of each recent interval and kind of request: the count, mean seconds and their variance."""
        self._recent_rates: deque[float] = deque(maxlen=10)
        self._sum = 0.0
        self._squares = 0.0

    def add(self, count: float, mean: float, variance: float, payload: float, seconds: float) -> None:
        self.completed += count
        self._recent_rates.append(count / seconds)
        self.bytes_received += count * payload
        if count > 0:
            self._samples.append((count, mean, variance))
            self._sum += count * mean
            self._squares += count * (variance + mean**2)

    def recent_rate(self) -> float:
        """Return completed requests per second over the last ten intervals."""
        return sum(self._recent_rates) / len(self._recent_rates) if self._recent_rates else 0.0

    def moments(self) -> tuple[float, float]:
        """Return mean and standard deviation."""
        total = self.completed or 1.0
        mean = self._sum / total
        return mean, max(self._squares / total - mean**2, 0.0) ** 0.5

    def rough_quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return `quantiles` estimated from mean and deviation alone: cheap enough for frequent polling."""
        mean, deviation = self.moments()
        return [sample_duration(mean, deviation**2, 1 - share) for share in shares]

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the durations within which these shares of requests completed."""
        if not self._samples:
            return [0.0] * len(shares)
        counts, means, variances = (np.array(column) for column in zip(*self._samples, strict=True))
        shapes, scales = shapes_and_scales(means, variances)
        targets = np.array(shares)
        low, high = np.zeros(len(targets)), np.full(len(targets), float(np.max(means)) * 50 + 1e-6)
        for _ in range(30):
            middle = (low + high) / 2
            within = np.average(1 - tail_share(middle[:, None], shapes, scales), axis=1, weights=counts)
            short = within < targets
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return [float(value) for value in high]


@dataclass(slots=True, eq=False)
class Driver:
    """The load of one running program: a node per task, and the outcomes of its requests."""

    instance: Instance
    driving: Driving
    clock: Clock
    started_at: float
    address: str = ""
    paused: bool = False
    """It sends nothing now, but will again."""
    connections: float = math.inf
    """The number of requests in flight, at most."""
    rate: float | None = None
    """Overrides the rate of the model, for generators whose rate changes."""
    nodes: list[Node] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    by_task: dict[str, Tally] = field(default_factory=dict)
    tasks: list[Task] = field(init=False)
    """The tasks that the program's settings enable."""
    in_flight: list[float] = field(init=False)
    """Requests of each task that have no response yet, where their number has a limit."""

    def __post_init__(self) -> None:
        settings = self.instance.settings
        self.tasks = [task for task in self.driving.tasks if task.when is None or settings.satisfy(task.when)]
        self.in_flight = [0.0] * len(self.tasks)

    def node_for(self, number: int, task: Task) -> Node:
        name = task.name or f"task-{number}"
        # 0.2 ms of processor time per task. Chosen: load generators are light, and their own cost must not limit them.
        operation = Operation(span=None if task.name else "", span_kind="internal", cpu=0.0002)
        return Node(self.instance, name, "", operation, 0.0002, 0.0, 0.0, 0.0, "")

    def rates(self, fluid: FluidModel | None) -> list[float]:
        """Return the tasks of each kind that begin per second now."""
        settings = self.instance.settings
        weights = [task.weight for task in self.tasks]
        total = sum(weights) or 1.0
        if self.paused or self.instance.stopped:
            return [0.0] * len(weights)
        if self.rate is not None:
            whole = self.rate
        elif self.driving.rate is not None:
            whole = settings.number(self.driving.rate, 0.0)
        else:
            thinking = sum(self.driving.wait) / 2
            whole = self.users() / max(thinking + self._response(fluid, weights, total), 0.001)
        return [whole * weight / total for weight in weights]

    def users(self) -> float:
        """Return the number of simulated users now."""
        settings = self.instance.settings
        ramp = settings.number(self.driving.ramp, float("inf"))
        return min(settings.number(self.driving.users, 0.0), ramp * (self.clock.now - self.started_at))

    @property
    def most_in_flight(self) -> float:
        """Requests in flight, at most: one per connection or simulated user."""
        if self.rate is not None or self.driving.rate is not None:
            return self.connections
        return min(max(self.users(), 1.0), self.connections)

    @property
    def ramping(self) -> bool:
        """Whether the number of users still changes."""
        if self.driving.rate is not None:
            return False
        return self.users() < self.instance.settings.number(self.driving.users, 0.0)

    def record(self, fluid: FluidModel, seconds: float) -> None:
        """Count the outcomes of an interval's requests."""
        # Of the calls that got a response, if only an error.
        means, variances = fluid.call_outcomes.mixed(OK, REFUSED)
        for node in self.nodes:
            begun = float(fluid.arrivals[node.index]) * seconds
            if begun <= 0:
                continue
            for call in calls_of(node.plan):
                self._record_call(fluid, call, seconds, float(means[call.index]), float(variances[call.index]))

    def _record_call(self, fluid: FluidModel, call: Call, seconds: float, mean: float, variance: float) -> None:
        count = float(fluid.call_rates[call.index]) * seconds
        ok, errors, refused, timeouts = fluid.call_outcomes.share[:, call.index].tolist()
        unreachable = min(
            sum(link.weight for link in call.links if link.failure and link.failure.kind in _CONNECT_ERRORS), refused
        )
        payload = call.links[0].callee.payload if call.links and call.links[0].callee else 0
        for tally in (self.tally, self.by_task.setdefault(call.operation, Tally())):
            tally.connect_errors += count * unreachable
            tally.timeouts += count * timeouts
            tally.errors += count * (errors + refused - unreachable)
            tally.add(count * (ok + errors + refused - unreachable), mean, variance, payload, seconds)

    def _response(self, fluid: FluidModel | None, weights: list[float], total: float) -> float:
        if fluid is None:
            return 0.0
        weighted = [
            float(fluid.response[node.index]) * weight
            for node, weight in zip(self.nodes, weights, strict=False)
            if 0 <= node.index < fluid.node_count and fluid.graph.nodes[node.index] is node
        ]
        return sum(weighted) / total


@dataclass(slots=True, eq=False)
class Consumer:
    """A consumer of a topic."""

    instance: Instance
    consumption: Consumption
    node: Node
    broker: Broker | None = None
    owed: float = 0.0
    """The fraction of a message left over from the last interval."""
    fetched: int = 0
    """Messages since the last `take`."""

    def poll(self, fluid: FluidModel | None, seconds: float) -> None:
        """Fetch the messages of an interval, limited by supply and by processing time."""
        if self.broker is None:
            return
        topic, group = self.consumption.topic, self.consumption.group or self.instance.name
        if topic not in self.broker.topics:
            return
        parallel = self.instance.settings.number(self.consumption.parallel, 1.0)
        each = self.node.cpu + self.node.latency
        if fluid is not None and 0 <= self.node.index < fluid.node_count:
            each = max(float(fluid.response[self.node.index]), each)
        able = parallel / max(each, 1e-4) * seconds + self.owed
        whole = int(min(able, 1e6))
        fetched = self.broker.fetch(group, topic, whole) if whole else 0
        self.owed = min(able - fetched, 1.0) if fetched == whole else 0.0
        self.fetched += fetched

    def take(self) -> int:
        """Return how many messages were fetched since this was last called."""
        fetched, self.fetched = self.fetched, 0
        return fetched


def jittered(rates: list[float], seconds: float, random: np.random.Generator) -> np.ndarray:
    """Return rates with Poisson noise: the number of requests in an interval is random."""
    expected = np.array(rates) * seconds
    return random.poisson(np.minimum(expected, 1e9)) / seconds
