"""The traffic of a cluster: one beat of virtual time after the other, rates through every running application.

Programs with a model join when they have started and leave when their process ends. At each beat the circuit is
wired anew if the cluster changed, load is offered, rates move, and what follows from them is put where the cluster
keeps such things: processor and memory at the containers' meters, messages at brokers, keys in caches, an end to
processes that a failed call kills. A few requests are walked for traces and logs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from srearena.cluster.embedded.machine.meter import PERIOD
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.network.routes import Path
from srearena.cluster.embedded.programs.datastores.datastore import Broker
from srearena.cluster.embedded.traffic.carrying import carried
from srearena.cluster.embedded.traffic.circuit import MAX_CORES, Circuit, Remembered
from srearena.cluster.embedded.traffic.counters import SpanCounters
from srearena.cluster.embedded.traffic.driving import Consumer, Driver, jittered
from srearena.cluster.embedded.traffic.graph import Call, Graph, Node
from srearena.cluster.embedded.traffic.routing import find_operation, keeps_route
from srearena.cluster.embedded.traffic.servers import Instance, Server, Store
from srearena.cluster.embedded.traffic.spans import Span
from srearena.cluster.embedded.traffic.walks import Result, Walker
from srearena.cluster.embedded.traffic.wiring import Wiring
from srearena.cluster.embedded.world import World

BEAT = 1.0
CALM_SECONDS = 5
"""Where nothing happens, rates are moved only this often. Scrapes are multiples of it apart: they lag alike."""
WALKS = 1.0
"""Requests walked per second and source of load, at most."""
LOOK_AGAIN = 30.0
"""Names expire, and what was resolved long ago is asked again."""


class Traffic:
    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.clock = world.clock
        self.network = network
        self.instances: dict[Process, Instance] = {}
        self.stores: dict[Process, Store] = {}
        self.drivers: dict[Process, Driver] = {}
        self.consumers: list[Consumer] = []
        self.counters = SpanCounters()
        self.on_trace: list[Callable[[list[Span]], object]] = []
        self.circuit: Circuit | None = None
        self.requests = 0.0
        """Requests that sources of load have sent so far."""
        self._version = 0
        self._wired: tuple[int, int] | None = None
        self._wired_at = 0.0
        self._remembered: Remembered = {}
        self._asked: dict[tuple[Process, str, str], None] = {}
        self._roots: list[Node] = []
        self._random = world.randomness.stream("traffic")
        self._poisson = np.random.Generator(np.random.PCG64(self._random.getrandbits(64)))
        self._beating = False
        self._owed = 0.0
        """Seconds since rates were moved."""
        self._calm = False
        self._rates = np.zeros(0)
        self._driven: list[tuple[float | None, bool]] = []

    # Who takes part

    def join(self, instance: Instance) -> None:
        """A program has started and listens."""
        self.instances[instance.process] = instance
        self._version += 1
        driving = instance.program.drives
        if driving is not None:
            self.drivers[instance.process] = Driver(instance, driving, self.clock, self.clock.now)
        if not self._beating:
            self._beating = True
            self.clock.after(BEAT, self._beat)

    def drive(self, driver: Driver) -> None:
        """A program sends requests of a mix that is known only now."""
        self.instances[driver.instance.process] = driver.instance
        self.drivers[driver.instance.process] = driver
        self._version += 1
        if not self._beating:
            self._beating = True
            self.clock.after(BEAT, self._beat)

    def leave(self, process: Process) -> None:
        if self.instances.pop(process, None) is not None or self.stores.pop(process, None) is not None:
            self.drivers.pop(process, None)
            self._version += 1

    def changed(self) -> None:
        """Something that is built into the circuit is no longer so."""
        self._version += 1

    def settle(self) -> None:
        """Account for everything up to now: somebody is about to change what is sent, or to read what became of it."""
        if self.circuit is not None:
            self._pass(self.circuit)

    # A beat

    def _beat(self) -> None:
        gone = [process for group in (self.instances, self.stores) for process in group if process.done.is_set]
        for process in gone:
            self.leave(process)
        if not self.instances:
            self._beating = False
            self._owed = 0.0
            self._keep()
            self.circuit = None
            return
        self.clock.after(BEAT, self._beat)
        circuit = self._current()
        self._owed += BEAT
        if not self._resting():
            self._pass(circuit)
        self._sample(circuit)

    def _resting(self) -> bool:
        """Whether this beat would change nothing: all is calm, and as much is asked for as before."""
        if not self._calm or self._owed >= CALM_SECONDS or math.floor(self.clock.now) % CALM_SECONDS == 0:
            return False
        return not any(driver.ramping for driver in self.drivers.values()) and self._wanted() == self._driven

    def _wanted(self) -> list[tuple[float | None, bool]]:
        return [(driver.rate, driver.resting) for driver in self.drivers.values()]

    def _pass(self, circuit: Circuit) -> None:
        """Let the time pass that has not been accounted for."""
        seconds, self._owed = self._owed, 0.0
        if not seconds or not circuit.node_count:
            return
        self._rates = self._offered(circuit, seconds)
        self._driven = self._wanted()
        self._set_cores(circuit)
        circuit.step(seconds, self._rates)
        # Messages are looked for all the time.
        self._calm = circuit.calm and not self.consumers
        self.counters.count(circuit, self._rows, seconds)
        for driver in self.drivers.values():
            driver.note(circuit, seconds)
        self._account(circuit, seconds)
        self._send(circuit, seconds)
        self._crash(circuit, seconds)

    def _current(self) -> Circuit:
        """The circuit of this moment."""
        if self._stale():
            self._wire()
        assert self.circuit is not None
        return self.circuit

    def _stale(self) -> bool:
        return (
            self.circuit is None
            or self._wired != (self.network.epoch, self._version)
            or self.clock.now - self._wired_at > LOOK_AGAIN
            or any(getattr(server, "epoch", 0) != epoch for server, epoch in self.circuit.graph.watched)
        )

    def _keep(self) -> None:
        if self.circuit is not None:
            self._remembered = self.circuit.keep()

    def _wire(self) -> None:
        if self.circuit is not None:
            self._pass(self.circuit)  # what was until now went the old ways
            self._calm = False
        self._keep()
        wiring = Wiring(self.network, self.instances, self.stores)
        roots: list[Node] = []
        further: list[Node] = []
        for driver in self.drivers.values():
            driver.nodes = []
            for number, task in enumerate(driver.tasks):
                node = driver.node_for(number, task)
                further += wiring.plan_task(node, task.requests)
                driver.nodes.append(node)
                roots.append(node)
        self.consumers = self._consumers(wiring)
        roots += [consumer.node for consumer in self.consumers]
        for process, name, route in (*self._asked, *self._unfinished()):
            instance = self.instances.get(process)
            if instance is not None:
                roots.append(wiring.node(instance, name, instance.program.operations[name], route))
        graph: Graph = wiring.graph(_without_twins(roots), further)
        self._roots = list(graph.roots)
        self.circuit = Circuit(graph, self._remembered)
        self._rows = self.counters.rows_of(self.circuit)
        self._wired = (self.network.epoch, self._version)
        self._wired_at = self.clock.now
        self._publishing = [call for call in graph.calls if call.step.publish is not None]
        self._crashing = [call for call in graph.calls if call.crashes]
        self._breaking = [call for call in graph.calls if call.target.dependency.breaker is not None]

    def _unfinished(self) -> list[tuple[Process, str, str]]:
        """Operations with requests still in line: they go on although nobody may be asking for more."""
        if self.circuit is None:
            return []
        return [
            (node.server.process, node.name, node.route)
            for node in self.circuit.graph.nodes
            if isinstance(node.server, Instance)
            and node.server.cpu_held + node.server.thread_held > 0.5
            and node.name in node.server.program.operations
        ]

    def _consumers(self, wiring: Wiring) -> list[Consumer]:
        earlier = {(c.instance.key, c.consumption.topic): c.owed for c in self.consumers}
        found: list[Consumer] = []
        for instance in self.instances.values():
            for consumption in instance.program.consumes:
                operation = instance.program.operations[consumption.operation]
                node = wiring.node(instance, consumption.operation, operation, "")
                broker = next(
                    (
                        way.listener.server
                        for _, way in wiring.ways_to(instance, consumption.source)
                        if isinstance(way, Path)
                        and way.listener is not None
                        and isinstance(way.listener.server, Broker)
                    ),
                    None,
                )
                owed = earlier.get((instance.key, consumption.topic), 0.0)
                found.append(Consumer(instance, consumption, node, broker, owed))
        return found

    def _offered(self, circuit: Circuit, seconds: float) -> np.ndarray:
        """Rates of the roots, in the order of the graph's."""
        by_node: dict[Node, float] = {}
        for driver in self.drivers.values():
            if not driver.nodes:
                continue  # it has come since the circuit was wired
            drawn = jittered(driver.rates(circuit), seconds, self._poisson)
            for node, rate in zip(driver.nodes, drawn, strict=True):
                by_node[node] = float(rate)
        for consumer in self.consumers:
            by_node[consumer.node] = consumer.rate(circuit, seconds)
        return np.array([by_node.get(node, 0.0) for node in self._roots])

    def _set_cores(self, circuit: Circuit) -> None:
        for index, server in enumerate(circuit.graph.servers):
            meter = server.meter
            cores = min(float(server.container.host.kernel.cpus), MAX_CORES)
            if meter.cpu_limit is not None and meter.cpu_limit < cores:
                cores = meter.cpu_limit
            if meter.available_cores is not None and meter.available_cores < cores:
                cores = max(meter.available_cores, 0.01)
            if server.busy:
                # Threads that never rest take their share of what there is.
                cores = max(cores - server.busy, cores / (1 + server.busy))
            circuit.cores[index] = 1e-4 if server.stopped else cores

    # What follows

    def _account(self, circuit: Circuit, seconds: float) -> None:
        servers = circuit.graph.servers
        count = len(servers)
        work = np.bincount(circuit.servers, circuit.arrivals * circuit.cpu, minlength=count)
        in_flight = np.bincount(circuit.servers, circuit.completed * circuit.response, minlength=count)
        volumes = carried(circuit, seconds)
        waiting = circuit.lines.held[:count]
        for index, server in enumerate(servers):
            if server.process.done.is_set:
                continue
            server.station.sockets.carried.add(*volumes[index])
            if isinstance(server, Instance):
                busy = float(in_flight[index] + waiting[index])
                self._account_instance(server, float(work[index]), busy, circuit, seconds)
            else:
                server.meter.load("traffic", float(work[index]))
        for cache in circuit.graph.caches:
            rate = float(circuit.call_rates[cache.lookup.index]) * (1 - float(circuit.call_fails[cache.lookup.index]))
            stores = cache.stores if cache.fill else []
            for store in stores:
                cold = 1 - store.warm.get(cache.name, 0.0)
                store.warm[cache.name] = 1 - cold * float(
                    np.exp(-rate * cache.keys * seconds / cache.space / len(stores))
                )

    def _account_instance(
        self, server: Instance, work: float, in_flight: float, circuit: Circuit, seconds: float
    ) -> None:
        program = server.program
        nodes = circuit.nodes_by_server.get(server.index, ())
        allocated, held = 0.0, 0.0
        busy, leaked = 0.0, 0.0
        for node in nodes:
            done = float(circuit.completed[node.index])
            if node.operation is not None:
                allocated += done * node.operation.allocates
                held = max(held, float(node.operation.memory))
            for active in node.effects:
                busy = max(busy, active.effect.busy)
                leaked += done * active.effect.share * active.leaks
        server.in_flight = in_flight
        server.allocated += allocated * seconds
        collected = 0.0
        if program.collects is not None:
            percent = max(server.settings.number(program.collects.percent, 100.0), 0.1)
            rounds = allocated / max(program.collects.live * percent / 100, 1.0)
            collected = rounds * program.collects.live / program.collects.speed
            server.collections += rounds * seconds
            server.collecting += collected * seconds
        server.busy = busy + collected
        server.leaked += leaked * seconds
        # It may want more than the machine has, but it cannot use more.
        wanted = min(work + busy + collected, float(server.container.host.kernel.cpus))
        server.meter.load("traffic", wanted)
        server.meter.bursts = self._bursts(server, wanted, float(circuit.offered[server.index]))
        memory = program.memory + in_flight * held + server.leaked
        if abs(memory - server.process.memory) > 0.02 * server.process.memory:
            server.process.set_memory(int(memory))

    def _bursts(self, server: Instance, used: float, rate: float) -> float:
        """How often the requests of one period of the kernel's quota need more than the quota."""
        limit = server.meter.cpu_limit
        if limit is None or used <= 0 or rate <= 0:
            return 0.0
        each = used / rate
        spread = each * (2 * max(rate * PERIOD, 1.0)) ** 0.5
        return 1 / (1 + math.exp(min(1.7 * (limit - used) * PERIOD / max(spread, 1e-9), 50.0)))

    def _send(self, circuit: Circuit, seconds: float) -> None:
        """Messages that were published reach their broker."""
        for call in self._publishing:
            unsent = call.target.instance.unsent
            count = float(circuit.call_rates[call.index] * (1 - circuit.call_fails[call.index])) * seconds
            count += unsent.get(call.operation, 0.0)
            unsent[call.operation] = count % 1
            if count >= 1:
                for link in call.links:
                    store = link.callee.server if link.callee is not None else None
                    if isinstance(store, Store) and isinstance(store.model, Broker):
                        store.model.append(call.operation.split()[-1], int(count), call.step.payload)
                        break

    def _crash(self, circuit: Circuit, seconds: float) -> None:
        """Some programs do not survive a failed call."""
        for call in self._crashing:
            expected = float(circuit.call_rates[call.index] * circuit.call_fails[call.index]) * seconds
            if expected > 1e-6 and self._poisson.poisson(min(expected, 1e6)) > 0:
                self._end(call)
        for call in self._breaking:
            self._trip(circuit, call, seconds)

    def _end(self, call: Call) -> None:
        instance = call.target.instance
        if instance.crashed or not instance.alive:
            return
        instance.crashed = True
        error = next((link.failure.text for link in call.links if link.failure is not None), "i/o timeout")
        for line in call.step.crash_log:
            instance.say(line, error=error)
        instance.process.end(call.step.exit)

    def _trip(self, circuit: Circuit, call: Call, seconds: float) -> None:
        breaker = call.target.dependency.breaker
        assert breaker is not None
        index = call.index
        if circuit.open[index] > 0:
            # Half open after a while: a tenth of the calls is let through to see.
            circuit.open[index] = max(0.0, circuit.open[index] - seconds / breaker.open)
        elif circuit.call_fails[index] > breaker.errors and circuit.call_rates[index] > breaker.minimum:
            circuit.open[index] = 0.95

    # Samples

    def _sample(self, circuit: Circuit) -> None:
        if not circuit.node_count:
            return
        walker = Walker(circuit, self._random)
        busy = [(node, float(rate)) for node, rate in zip(self._roots, self._rates, strict=True) if rate > 0]
        self.requests += sum(rate for _, rate in busy) * BEAT
        if not busy:
            return
        by_source: dict[Server, list[tuple[Node, float]]] = {}
        for node, rate in busy:
            by_source.setdefault(node.server, []).append((node, rate))
        for offers in by_source.values():
            total = sum(rate for _, rate in offers)
            if total < WALKS and self._random.random() >= total * BEAT:
                continue
            node = self._random.choices([node for node, _ in offers], [rate for _, rate in offers])[0]
            start = self.clock.now - self._random.random() * BEAT
            _, spans = walker.walk(node, start)
            if spans:
                for listener in self.on_trace:
                    listener(spans)

    def request(self, instance: Instance, method: str, path: str) -> tuple[Result, Node] | None:
        """One request from outside the load, as the circuit stands; None where the program serves no such route."""
        found = find_operation(instance.program, "http", f"{method} {path}")
        if found is None:
            return None
        name, operation = found
        route = f"{method} {path.partition('?')[0]}" if keeps_route(operation) else ""
        node = self._node(instance, name, route)
        if node is None:
            return None
        walker = Walker(self._current(), self._random)
        result, spans = walker.walk(node, self.clock.now)
        if spans and not operation.health:
            for listener in self.on_trace:
                listener(spans)
        return result, node

    def _node(self, instance: Instance, name: str, route: str) -> Node | None:
        key = (instance.process, name, route)
        for _ in range(2):
            for node in self._current().nodes_by_server.get(instance.index, ()):
                if node.server is instance and node.name == name and node.route == route:
                    return node
            if len(self._asked) > 500:
                self._asked.clear()
            self._asked[key] = None
            self._version += 1
        return None

    def servers(self) -> list[Server]:
        """Everybody who took part in the last beat."""
        return list(self.circuit.graph.servers) if self.circuit is not None else []


def _without_twins(roots: list[Node]) -> list[Node]:
    return list(dict.fromkeys(roots))
