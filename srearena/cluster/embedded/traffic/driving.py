"""What sends requests by itself: simulated users, fixed rates, and consumers of messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from srearena.application_model.schema import Consumption, Driving, Operation, Task
from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.programs.datastores.datastore import Broker
from srearena.cluster.embedded.traffic.circuit import Circuit
from srearena.cluster.embedded.traffic.durations import beyond, drawn, shapes_and_scales
from srearena.cluster.embedded.traffic.graph import Call, Node
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.wiring import calls_of

_UNCONNECTED = frozenset(("refused", "name", "unreachable", "port", "reset"))


_KEPT = 1000


class Tally:
    """What became of the requests of one source of load."""

    def __init__(self) -> None:
        self.answered = 0.0
        self.refused = 0.0
        """Answered with an error."""
        self.late = 0.0
        self.unconnected = 0.0
        self.received = 0.0
        self._parts: deque[tuple[float, float, float]] = deque(maxlen=_KEPT)
        """Of each interval and kind of request lately: how many, their mean time and its variance."""
        self._lately: deque[float] = deque(maxlen=10)
        self._sum = 0.0
        self._squares = 0.0

    def add(self, count: float, mean: float, variance: float, payload: float, seconds: float) -> None:
        self.answered += count
        self._lately.append(count / seconds)
        self.received += count * payload
        if count > 0:
            self._parts.append((count, mean, variance))
            self._sum += count * mean
            self._squares += count * (variance + mean**2)

    def recent_rate(self) -> float:
        """Answers per second, lately."""
        return sum(self._lately) / len(self._lately) if self._lately else 0.0

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        total = self.answered or 1.0
        mean = self._sum / total
        return mean, max(self._squares / total - mean**2, 0.0) ** 0.5

    def rough_quantiles(self, shares: Sequence[float]) -> list[float]:
        """As `quantiles`, from mean and deviation alone: for those who ask every few seconds."""
        mean, deviation = self.moments()
        return [drawn(mean, deviation**2, 1 - share) for share in shares]

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """The times within which these shares of requests were answered."""
        if not self._parts:
            return [0.0] * len(shares)
        counts, means, variances = (np.array(column) for column in zip(*self._parts, strict=True))
        shapes, scales = shapes_and_scales(means, variances)
        wanted = np.array(shares)
        low, high = np.zeros(len(wanted)), np.full(len(wanted), float(np.max(means)) * 50 + 1e-6)
        for _ in range(30):
            middle = (low + high) / 2
            within = np.average(1 - beyond(middle[:, None], shapes, scales), axis=1, weights=counts)
            short = within < wanted
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return [float(value) for value in high]


@dataclass(slots=True, eq=False)
class Driver:
    """The load one running program makes: a node per task, and what became of its requests."""

    instance: Instance
    driving: Driving
    clock: Clock
    began: float
    address: str = ""
    resting: bool = False
    """It sends nothing at the moment, but will again."""
    rate: float | None = None
    """Overrides the model's, for generators whose rate changes with time."""
    nodes: list[Node] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    by_task: dict[str, Tally] = field(default_factory=dict)
    tasks: list[Task] = field(init=False)
    """Those that the program's settings let anybody have."""

    def __post_init__(self) -> None:
        known = self.instance.settings
        self.tasks = [task for task in self.driving.tasks if task.when is None or known.satisfy(task.when)]

    def node_for(self, number: int, task: Task) -> Node:
        name = task.name or f"task-{number}"
        operation = Operation(span=None if task.name else "", span_kind="internal", cpu=0.0002)
        return Node(self.instance, name, "", operation, 0.0002, 0.0, 0.0, 0.0, "")

    def rates(self, circuit: Circuit | None) -> list[float]:
        """How many tasks of each kind begin per second now."""
        settings = self.instance.settings
        weights = [task.weight for task in self.tasks]
        total = sum(weights) or 1.0
        if self.resting or self.instance.stopped:
            return [0.0] * len(weights)
        if self.rate is not None:
            whole = self.rate
        elif self.driving.rate is not None:
            whole = settings.number(self.driving.rate, 0.0)
        else:
            thinking = sum(self.driving.wait) / 2
            whole = self.users() / max(thinking + self._response(circuit, weights, total), 0.001)
        return [whole * weight / total for weight in weights]

    def users(self) -> float:
        """How many simulated users there are by now."""
        settings = self.instance.settings
        ramp = settings.number(self.driving.ramp, float("inf"))
        return min(settings.number(self.driving.users, 0.0), ramp * (self.clock.now - self.began))

    @property
    def ramping(self) -> bool:
        """Whether there will be more users, or fewer, in a moment."""
        if self.driving.rate is not None:
            return False
        return self.users() < self.instance.settings.number(self.driving.users, 0.0)

    def note(self, circuit: Circuit, seconds: float) -> None:
        """Count what became of an interval's requests."""
        for node in self.nodes:
            begun = float(circuit.arrivals[node.index]) * seconds
            if begun <= 0:
                continue
            for call in calls_of(node.plan):
                self._note_call(circuit, call, seconds)

    def _note_call(self, circuit: Circuit, call: Call, seconds: float) -> None:
        count = float(circuit.call_rates[call.index]) * seconds
        mean, variance = float(circuit.call_seconds[call.index]), float(circuit.call_variance[call.index])
        failing = float(circuit.call_fails[call.index])
        lost = sum(link.weight for link in call.links if link.failure is not None and link.failure.kind in _UNCONNECTED)
        late = sum(link.weight for link in call.links if link.failure is not None and link.failure.kind == "timeout")
        for tally in (self.tally, self.by_task.setdefault(call.operation, Tally())):
            answered = count * max(0.0, 1 - lost - late)
            tally.unconnected += count * lost
            tally.late += count * late
            tally.refused += count * max(0.0, failing - lost - late)
            payload = call.links[0].callee.payload if call.links and call.links[0].callee else 0
            tally.add(answered, mean, variance, payload, seconds)

    def _response(self, circuit: Circuit | None, weights: list[float], total: float) -> float:
        if circuit is None:
            return 0.0
        known = [
            float(circuit.response[node.index]) * weight
            for node, weight in zip(self.nodes, weights, strict=False)
            if 0 <= node.index < circuit.node_count and circuit.graph.nodes[node.index] is node
        ]
        return sum(known) / total


@dataclass(slots=True, eq=False)
class Consumer:
    """A program's share of a topic."""

    instance: Instance
    consumption: Consumption
    node: Node
    broker: Broker | None = None
    owed: float = 0.0
    """The fraction of a message that could have been taken."""

    def rate(self, circuit: Circuit | None, seconds: float) -> float:
        """Messages a second it takes now: as many as there are, and as it gets done."""
        if self.broker is None:
            return 0.0
        topic, group = self.consumption.topic, self.consumption.group or self.instance.name
        if topic not in self.broker.topics:
            return 0.0
        parallel = self.instance.settings.number(self.consumption.parallel, 1.0)
        each = self.node.cpu + self.node.latency
        if circuit is not None and 0 <= self.node.index < circuit.node_count:
            each = max(float(circuit.response[self.node.index]), each)
        able = parallel / max(each, 1e-4) * seconds + self.owed
        whole = int(min(able, 1e6))
        taken = self.broker.fetch(group, topic, whole) if whole else 0
        self.owed = min(able - taken, 1.0) if taken == whole else 0.0
        return taken / seconds


def jittered(rates: list[float], seconds: float, random: np.random.Generator) -> np.ndarray:
    """Rates as they come in life: so many requests in an interval, more or less."""
    expected = np.array(rates) * seconds
    return random.poisson(np.minimum(expected, 1e9)) / seconds
