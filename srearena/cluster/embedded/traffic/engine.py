"""The traffic engine of a cluster: tick by tick, request rates through every running application.

Programs with a model are added when they have started and removed when their process ends. At each tick the fluid model
is rebuilt if the cluster changed, load is offered, rates move, and the consequences are applied to the cluster:
processor time and memory to the containers' meters, messages to brokers, keys to caches, and the end of processes that
a failed call kills. A few requests are walked for traces and logs.
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
from srearena.cluster.embedded.traffic.closed_loops import ClientLimit, step_with_limits
from srearena.cluster.embedded.traffic.connections import LoadConnections
from srearena.cluster.embedded.traffic.counters import SpanCounters
from srearena.cluster.embedded.traffic.data_handlers import Visit
from srearena.cluster.embedded.traffic.fluid_model import MAX_CORES, FluidModel, SavedState
from srearena.cluster.embedded.traffic.graph import Call, Graph, Node
from srearena.cluster.embedded.traffic.graph_builder import GraphBuilder
from srearena.cluster.embedded.traffic.load import Consumer, Driver, jittered
from srearena.cluster.embedded.traffic.load_samples import LoadSamples
from srearena.cluster.embedded.traffic.log_volume import LogVolume
from srearena.cluster.embedded.traffic.network_volume import interface_volumes
from srearena.cluster.embedded.traffic.pings import PingedConnections
from srearena.cluster.embedded.traffic.requests_with_data import RequestsWithData
from srearena.cluster.embedded.traffic.routing import find_operation, keeps_route
from srearena.cluster.embedded.traffic.servers import Instance, Server, Store
from srearena.cluster.embedded.traffic.spans import Span
from srearena.cluster.embedded.traffic.store_tally import StoreTally
from srearena.cluster.embedded.traffic.walks import Result, Walker
from srearena.cluster.embedded.world import World

TICK = 1.0
"""Virtual seconds between ticks. Chosen: shorter than timeouts and probes, long enough for thousands of episodes."""
STEADY_INTERVAL = 5
"""Ticks between updates of a steady state. It divides scrape intervals (15 and 30 s)."""
WALKS_PER_SECOND = 1.0
"""Requests walked per second and source of load, at most. Chosen: enough traces to study, few enough to be cheap."""
_FEW = 1e-6
"""Requests in a queue that are too few to keep an operation in the graph."""
RESOLVE_INTERVAL = 30.0
"""Seconds until names are resolved again: the TTL of CoreDNS's kubernetes plugin."""


class Traffic:
    """Request traffic of all applications of one cluster."""

    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.clock = world.clock
        self.network = network
        self.instances: dict[Process, Instance] = {}
        self.stores: dict[Process, Store] = {}
        self.drivers: dict[Process, Driver] = {}
        self.consumers: list[Consumer] = []
        self.counters = SpanCounters()
        self.store_tally = StoreTally()
        self.connections = LoadConnections(network, network.fabric.flows)
        self.pinged_connections = PingedConnections(world.randomness.stream("pings"))
        self.on_trace: list[Callable[[list[Span]], object]] = []
        self.fluid: FluidModel | None = None
        self.requests = 0.0
        """Requests that sources of load have sent so far."""
        self._version = 0
        self._built_for: tuple[int, int] | None = None
        self._built_at = 0.0
        self._saved_state = SavedState()
        self._requested_routes: dict[tuple[Process, str, str], None] = {}
        self._roots: list[Node] = []
        self._places: dict[Node, int] = {}
        self._random = world.randomness.stream("traffic")
        self.requests_with_data = RequestsWithData(
            network, self.clock, world.randomness.stream("application data"), self.instances
        )
        self.load_samples = LoadSamples(world.randomness.stream("load samples"), self.requests_with_data.sample)
        self.log_volume = LogVolume(self.clock, world.randomness.stream("log lines"))
        self.reseed()
        self._ticking = False
        self._pending_seconds = 0.0
        """Seconds since rates were moved."""
        self._steady = False
        self._polled_seconds = 0.0
        """Of the pending seconds: those whose messages have been passed on."""
        self._rates = np.zeros(0)
        self._applied_load: list[tuple[float | None, bool]] = []

    def reseed(self) -> None:
        """Draw counts from the present state of the world's stream."""
        self._poisson = np.random.Generator(np.random.PCG64(self._random.getrandbits(64)))

    # Participants

    def add_instance(self, instance: Instance) -> None:
        """Add a program that has started and listens."""
        self.instances[instance.process] = instance
        self._version += 1
        driving = instance.program.drives
        if driving is not None:
            self.drivers[instance.process] = Driver(instance, driving, self.clock, self.clock.now)
        if not self._ticking:
            self._ticking = True
            self.clock.after(TICK, self._tick)

    def add_driver(self, driver: Driver) -> None:
        """Add a program that sends a mix of requests that is not in its model."""
        self.instances[driver.instance.process] = driver.instance
        self.drivers[driver.instance.process] = driver
        self._version += 1
        if not self._ticking:
            self._ticking = True
            self.clock.after(TICK, self._tick)

    def remove(self, process: Process) -> None:
        if self.instances.pop(process, None) is not None or self.stores.pop(process, None) is not None:
            self.drivers.pop(process, None)
            self._version += 1

    def catch_up(self) -> None:
        """Advance to the present, before the load changes or its outcomes are read."""
        if self.fluid is not None:
            self._advance(self.fluid)

    # Ticks

    def _tick(self) -> None:
        ended = [process for group in (self.instances, self.stores) for process in group if process.done.is_set]
        for process in ended:
            self.remove(process)
        if not self.instances:
            self._ticking = False
            self._pending_seconds = self._polled_seconds = 0.0
            self._save_state()
            self.fluid = None
            self.connections.clear()
            return
        self.clock.after(TICK, self._tick)
        fluid = self._current_model()
        self._pending_seconds += TICK
        if not self._can_skip():
            self._advance(fluid)
        elif self.consumers:
            self._poll(fluid)
        self._sample(fluid)

    def _can_skip(self) -> bool:
        """Return whether this tick would change nothing: the state is steady and the load is unchanged."""
        if (
            not self._steady
            or self._pending_seconds >= STEADY_INTERVAL
            # The last tick before a scrape: so scrapes cover equal times, whether the state is steady or not.
            or math.floor(self.clock.now + TICK) % STEADY_INTERVAL == 0
        ):
            return False
        return (
            not any(driver.ramping for driver in self.drivers.values()) and self._requested_load() == self._applied_load
        )

    def _requested_load(self) -> list[tuple[float | None, bool]]:
        return [(driver.rate, driver.paused) for driver in self.drivers.values()]

    def _advance(self, fluid: FluidModel) -> None:
        """Advance the fluid model by the pending seconds."""
        seconds, self._pending_seconds = self._pending_seconds, 0.0
        if not seconds or not fluid.node_count:
            return
        self._rates = self._offered_rates(fluid, seconds)
        self._applied_load = self._requested_load()
        self._set_cores(fluid)
        self._rates = step_with_limits(fluid, seconds, self._rates, self._client_limits())
        # A program that a failed call ends ends at once.
        ending = any(fluid.call_fails[call.index] > 0 for call in self._crash_calls)
        self._steady = fluid.is_steady and not ending
        self.counters.count(fluid, self._rows, seconds)
        self.log_volume.observe(fluid)
        self.pinged_connections.age(fluid, seconds)
        self.store_tally.add(fluid, seconds)
        for driver in self.drivers.values():
            driver.record(fluid, seconds)
        self._account(fluid, seconds)
        self._publish(fluid, seconds - self._polled_seconds)
        self._polled_seconds = 0.0
        self._apply_call_failures(fluid, seconds)
        self.requests_with_data.deliver(self.consumers)

    def _poll(self, fluid: FluidModel) -> None:
        """Pass messages on in a tick that is skipped otherwise: who consumes a topic polls at every tick."""
        for consumer in self.consumers:
            consumer.poll(fluid, TICK)
        self._publish(fluid, TICK)
        self._polled_seconds += TICK
        self.requests_with_data.deliver(self.consumers)

    def _current_model(self) -> FluidModel:
        """Return the fluid model, rebuilt if it is stale."""
        if self._stale():
            self._rebuild()
        assert self.fluid is not None
        return self.fluid

    def _stale(self) -> bool:
        return (
            self.fluid is None
            or self._built_for != (self.network.epoch, self._version)
            or self.clock.now - self._built_at > RESOLVE_INTERVAL
            or any(getattr(server, "epoch", 0) != epoch for server, epoch in self.fluid.graph.watched)
        )

    def _save_state(self) -> None:
        if self.fluid is not None:
            self._saved_state = self.fluid.save_state()

    def _rebuild(self) -> None:
        if self.fluid is not None:
            self._advance(self.fluid)  # the time until now belongs to the old graph
            self._steady = False
        self._save_state()
        builder = GraphBuilder(self.network, self.instances, self.stores)
        roots: list[Node] = []
        further: list[Node] = []
        for driver in self.drivers.values():
            driver.nodes = []
            for number, task in enumerate(driver.tasks):
                node = driver.node_for(number, task)
                further += builder.plan_task(node, task.requests)
                driver.nodes.append(node)
                roots.append(node)
        self.consumers = self._consumers(builder)
        roots += [consumer.node for consumer in self.consumers]
        for process, name, route in (*self._requested_routes, *self._backlogged_operations()):
            instance = self.instances.get(process)
            if instance is not None:
                roots.append(builder.node(instance, name, instance.program.operations[name], route))
        graph: Graph = builder.graph(_unique(roots), further)
        self._roots = list(graph.roots)
        self._places = {node: place for place, node in enumerate(self._roots)}
        self.fluid = FluidModel(graph, self._saved_state)
        self._rows = self.counters.rows_of(self.fluid)
        self.store_tally.follow(self.fluid)
        self.log_volume.follow(self.fluid)
        self.connections.follow(self.fluid, self.drivers)
        self.pinged_connections.follow(builder, self.instances.values(), self.fluid)
        self.load_samples.follow(self._roots, self.clock.now)
        self._built_for = (self.network.epoch, self._version)
        self._built_at = self.clock.now
        self._publish_calls = [call for call in graph.calls if call.step.publish is not None]
        self._crash_calls = [call for call in graph.calls if call.crashes]
        self._breaker_calls = [call for call in graph.calls if call.target.dependency.breaker is not None]

    def _backlogged_operations(self) -> list[tuple[Process, str, str]]:
        """Return operations with queued requests: they must stay in the graph, even without new load."""
        if self.fluid is None:
            return []
        return [
            (node.server.process, node.name, node.route)
            for node in self.fluid.graph.nodes
            if isinstance(node.server, Instance)
            and self.fluid.waiting[node.index] > _FEW
            and node.name in node.server.program.operations
        ]

    def _consumers(self, builder: GraphBuilder) -> list[Consumer]:
        owed_before = {(c.instance.key, c.consumption.topic): c.owed for c in self.consumers}
        consumers: list[Consumer] = []
        for instance in self.instances.values():
            for consumption in instance.program.consumes:
                operation = instance.program.operations[consumption.operation]
                node = builder.node(instance, consumption.operation, operation, "")
                broker = next(
                    (
                        path.listener.server
                        for _, path in builder.paths_to(instance, consumption.source)
                        if isinstance(path, Path)
                        and path.listener is not None
                        and isinstance(path.listener.server, Broker)
                    ),
                    None,
                )
                owed = owed_before.get((instance.key, consumption.topic), 0.0)
                consumers.append(Consumer(instance, consumption, node, broker, owed))
        return consumers

    def _offered_rates(self, fluid: FluidModel, seconds: float) -> np.ndarray:
        """Return the rates of the roots, in the order of the graph."""
        by_node: dict[Node, float] = {}
        for driver in self.drivers.values():
            if not driver.nodes:
                continue  # added since the graph was built
            sampled = jittered(driver.rates(fluid), seconds, self._poisson)
            for node, rate in zip(driver.nodes, sampled, strict=True):
                by_node[node] = float(rate)
        for consumer in self.consumers:
            consumer.poll(fluid, seconds - self._polled_seconds)
            by_node[consumer.node] = consumer.take() / seconds
        return np.array([by_node.get(node, 0.0) for node in self._roots])

    def _client_limits(self) -> list[ClientLimit]:
        """Return the sources of load that have a limited number of requests in flight."""
        places = self._places
        return [
            ClientLimit([places[node] for node in driver.nodes], driver.nodes, driver.in_flight, driver.most_in_flight)
            for driver in self.drivers.values()
            if driver.nodes and driver.most_in_flight < math.inf
        ]

    def _set_cores(self, fluid: FluidModel) -> None:
        for index, server in enumerate(fluid.graph.servers):
            meter = server.meter
            cores = min(float(server.container.host.kernel.cpus), MAX_CORES)
            if meter.cpu_limit is not None and meter.cpu_limit < cores:
                cores = meter.cpu_limit
            if meter.available_cores is not None and meter.available_cores < cores:
                cores = max(meter.available_cores, 0.01)
            if server.busy:
                # Busy threads take their fair share of the cores.
                cores = max(cores - server.busy, cores / (1 + server.busy))
            # A stopped process serves nothing; a tiny number avoids a division by zero.
            fluid.cores[index] = 1e-4 if server.stopped else cores

    # Consequences

    def _account(self, fluid: FluidModel, seconds: float) -> None:
        servers = fluid.graph.servers
        count = len(servers)
        # What is demanded counts, not only what the processors achieve: the meter knows the limits.
        demand = np.maximum(fluid.arrivals - fluid.refused, fluid.completed)
        work = np.bincount(fluid.servers, demand * fluid.cpu, minlength=count)
        for node in fluid.long_statements:
            work[node.server.index] += self._long_work(node, float(demand[node.index]), seconds)
        in_flight = np.bincount(fluid.servers, fluid.completed * fluid.response, minlength=count)
        volumes = interface_volumes(fluid, seconds)
        for index, server in enumerate(servers):
            if server.process.done.is_set:
                continue
            server.host.sockets.carried.add(*volumes[index])
            if isinstance(server, Instance):
                self._account_instance(server, float(work[index]), float(in_flight[index]), fluid, seconds)
            else:
                server.meter.load("traffic", float(work[index]))
        for cache in fluid.graph.caches:
            rate = float(fluid.call_rates[cache.lookup.index]) * (1 - float(fluid.call_fails[cache.lookup.index]))
            stores = cache.stores if cache.fill else []
            for store in cache.stores:
                store.forget_losses()
                warm = store.warm_shares.get(cache.name, 0.0)
                if store in stores:
                    filled = float(np.exp(-rate * cache.keys * seconds / cache.space / len(stores)))
                    warm = store.warm_shares[cache.name] = 1 - (1 - warm) * filled
                self.store_tally.add_lookups(cache, store, rate * seconds / len(cache.stores), warm)

    @staticmethod
    def _long_work(node: Node, rate: float, seconds: float) -> float:
        """Return the cores that a long statement uses: averaged over the time that it runs, since few are sent."""
        assert isinstance(node.server, Store)
        before = node.server.long_work.get(node.route, 0.0)
        fading = math.exp(-seconds / node.latency)
        cores = node.server.long_work[node.route] = before * fading + rate * node.shared_cpu * (1 - fading)
        return cores

    def _account_instance(
        self, server: Instance, work: float, in_flight: float, fluid: FluidModel, seconds: float
    ) -> None:
        program = server.program
        nodes = fluid.nodes_by_server.get(server.index, ())
        allocated, request_memory = 0.0, 0.0
        busy, leaked_bytes = 0.0, 0.0
        for node in nodes:
            done = float(fluid.completed[node.index])
            server.served += done * seconds
            if node.operation is not None:
                allocated += done * node.operation.allocates
                request_memory = max(request_memory, float(node.operation.memory))
            for active in node.effects:
                busy = max(busy, active.effect.busy)
                leaked_bytes += done * active.effect.share * active.leaks
        server.in_flight = in_flight
        server.allocated += allocated * seconds
        collected = 0.0
        if program.collects is not None:
            percent = max(server.settings.number(program.collects.percent, 100.0), 0.1)
            rounds = allocated / max(program.collects.live * percent / 100, 1.0)
            collected = rounds * program.collects.live / program.collects.speed
            server.collections += rounds * seconds
            server.collection_seconds += collected * seconds
        server.busy = busy + collected
        server.leaked_bytes += leaked_bytes * seconds
        # Demand may exceed the cores of the machine, use cannot.
        used = min(work + busy + collected, float(server.container.host.kernel.cpus))
        server.meter.load("traffic", used)
        server.meter.bursts = self._bursts(server, used, float(fluid.offered[server.index]))
        memory = program.memory + in_flight * request_memory + server.leaked_bytes
        # Changes within two per cent are not reported: memory is set often, and metrics are coarser.
        if abs(memory - server.process.memory) > 0.02 * server.process.memory:
            server.process.set_memory(int(memory))

    def _bursts(self, server: Instance, used: float, rate: float) -> float:
        """Return the share of quota periods in which requests need more than the CPU quota.

        Demand in a period is approximately normal: a compound Poisson sum of exponential service times, with variance
        of twice the mean count times the squared mean. The logistic function with factor 1.7 approximates its tail.
        """
        limit = server.meter.cpu_limit
        if limit is None or used <= 0 or rate <= 0:
            return 0.0
        each = used / rate
        spread = each * (2 * max(rate * PERIOD, 1.0)) ** 0.5
        return 1 / (1 + math.exp(min(1.7 * (limit - used) * PERIOD / max(spread, 1e-9), 50.0)))

    def _publish(self, fluid: FluidModel, seconds: float) -> None:
        """Append published messages to their broker."""
        for call in self._publish_calls:
            unsent = call.target.instance.unsent
            count = float(fluid.call_rates[call.index] * (1 - fluid.call_fails[call.index])) * seconds
            count += unsent.get(call.operation, 0.0)
            unsent[call.operation] = count % 1
            if count >= 1:
                for link in call.links:
                    store = link.callee.server if link.callee is not None else None
                    if isinstance(store, Store) and isinstance(store.model, Broker):
                        store.model.append(call.operation.split()[-1], int(count), call.step.payload)
                        break

    def _apply_call_failures(self, fluid: FluidModel, seconds: float) -> None:
        """Crash programs that do not survive a failed call, and trip circuit breakers."""
        for call in self._crash_calls:
            expected = float(fluid.call_rates[call.index] * fluid.call_fails[call.index]) * seconds
            if expected > 1e-6 and self._poisson.poisson(min(expected, 1e6)) > 0:
                self._crash_instance(call)
        for call in self._breaker_calls:
            self._trip(fluid, call, seconds)

    def _crash_instance(self, call: Call) -> None:
        instance = call.target.instance
        if instance.crashed or not instance.alive:
            return
        instance.crashed = True
        error = next((link.failure.text for link in call.links if link.failure is not None), "i/o timeout")
        for line in call.step.crash_log:
            instance.write_log(line, error=error)
        instance.process.end(call.step.exit)

    def _trip(self, fluid: FluidModel, call: Call, seconds: float) -> None:
        breaker = call.target.dependency.breaker
        assert breaker is not None
        index = call.index
        if fluid.open[index] > 0:
            # Half open: the breaker closes gradually and admits a growing share of calls as probes.
            fluid.open[index] = max(0.0, fluid.open[index] - seconds / breaker.open)
        elif fluid.call_fails[index] > breaker.errors and fluid.call_rates[index] > breaker.minimum:
            # Chosen: one call in twenty probes an open breaker.
            fluid.open[index] = 0.95

    # Samples

    def _sample(self, fluid: FluidModel) -> None:
        if not fluid.node_count:
            return
        self.load_samples.tick(fluid, self._rates, self.clock.now, TICK)  # type: ignore[arg-type]
        walker = Walker(fluid, self._random)
        busy = [(node, float(rate)) for node, rate in zip(self._roots, self._rates, strict=True) if rate > 0]
        self.requests += sum(rate for _, rate in busy) * TICK
        if not busy:
            return
        by_source: dict[Server, list[tuple[Node, float]]] = {}
        for node, rate in busy:
            by_source.setdefault(node.server, []).append((node, rate))
        totals = {source: sum(rate for _, rate in offers) for source, offers in by_source.items()}
        for source, offers in by_source.items():
            total = totals[source]
            if total < WALKS_PER_SECOND and self._random.random() >= total * TICK:
                continue
            node = self._random.choices([node for node, _ in offers], [rate for _, rate in offers])[0]
            walker.walk(node, self.clock.now + self._random.random() * TICK)
            self._record_walk(walker, traced=True)
            if total > WALKS_PER_SECOND:
                self.log_volume.count(walker.lines)
        self.log_volume.tick(fluid, totals, WALKS_PER_SECOND, TICK)

    def _record_walk(self, walker: Walker, *, traced: bool) -> None:
        """Write log lines when their time comes, and report spans within a second after they have ended."""
        for line in walker.lines:
            self.clock.at(line.time, line.write)
        by_tick: dict[int, list[Span]] = {}
        for span in walker.spans if traced else ():
            by_tick.setdefault(math.ceil(span.end), []).append(span)
        for moment, spans in by_tick.items():
            self.clock.at(moment, self._report_spans, spans)

    def _report_spans(self, spans: list[Span]) -> None:
        for listener in self.on_trace:
            listener(spans)

    def request(self, instance: Instance, method: str, path: str) -> tuple[Result, Node, list[Visit]] | None:
        """Walk one request from outside the load; None where the program serves no such route."""
        found = find_operation(instance.program, "http", f"{method} {path}")
        if found is None:
            return None
        name, operation = found
        route = f"{method} {path.partition('?')[0]}" if keeps_route(operation) else ""
        node = self._node(instance, name, route)
        if node is None:
            return None
        walker = Walker(self._current_model(), self._random)
        result, _ = walker.walk(node, self.clock.now)
        self._record_walk(walker, traced=not operation.health)
        return result, node, walker.visits

    def _node(self, instance: Instance, name: str, route: str) -> Node | None:
        key = (instance.process, name, route)
        for _ in range(2):
            for node in self._current_model().nodes_by_server.get(instance.index, ()):
                if node.server is instance and node.name == name and node.route == route:
                    return node
            if len(self._requested_routes) > 500:  # chosen: bounds the graph against scanners of random routes
                self._requested_routes.clear()
            self._requested_routes[key] = None
            self._version += 1
        return None

    def servers(self) -> list[Server]:
        """Return the servers of the present graph."""
        return list(self.fluid.graph.servers) if self.fluid is not None else []


def _unique(roots: list[Node]) -> list[Node]:
    return list(dict.fromkeys(roots))
