"""Build the call graph from models and the state of the cluster: every call is resolved against the present network.

The builder starts at the sources of load and follows calls to the servers that would receive them. Whether a name
resolves, a Service has endpoints, a policy admits packets, a port is open, a login is accepted, a flag is on: each is
evaluated here, once, and stays in the graph until something changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from srearena.application_model.schema import Condition, Dependency, Effect, Operation, Step
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.network.routes import Path
from srearena.cluster.embedded.programs.datastores.datastore import Broker, Datastore, Login, request_refusal
from srearena.cluster.embedded.traffic.costs import STORES, cost_of
from srearena.cluster.embedded.traffic.failures import Failure, connect_failure, remote_failure
from srearena.cluster.embedded.traffic.graph import (
    Action,
    ActiveEffect,
    CacheSpace,
    Call,
    Graph,
    Link,
    Node,
    NodeKey,
    OnMiss,
    Parallel,
    Pause,
    Target,
)
from srearena.cluster.embedded.traffic.protocols import as_discovery, implements
from srearena.cluster.embedded.traffic.routing import find_operation, keeps_route
from srearena.cluster.embedded.traffic.servers import Instance, Server, ServerKey, Store
from srearena.cluster.embedded.traffic.settings import holds
from srearena.cluster.embedded.traffic.spans import Attributes

CONNECT_TIMEOUT = 20.0
"""Connect timeout of clients that configure none. Chosen: between the 10 s of common HTTP clients and the kernel's
127 s of SYN retries."""
HANGING = 120.0
"""Seconds until a request without a response fails. Chosen: longer than every timeout the applications configure."""
RESEND = 0.2
"""First retransmission of Linux TCP: the minimal retransmission timeout, TCP_RTO_MIN (200 ms)."""
MAX_LEVEL = 40
"""Deepest chain of calls; a loop of calls is cut there. Chosen: deeper than any application here."""
_FLAG_HOOKS = frozenset(("go", "dotnet", "python"))
"""Runtimes whose programs here register OpenFeature's tracing hook, as those of the OpenTelemetry demo do."""


class GraphBuilder:
    """Builds one graph. `instances` and `stores` are keyed by process."""

    def __init__(self, network: Network, instances: dict[Process, Instance], stores: dict[Process, Store]) -> None:
        self.network = network
        self.instances = instances
        self.stores = stores
        self._nodes: dict[NodeKey, Node] = {}
        self._ordinals: dict[Node, int] = {}
        self._group = 0
        self._caches: list[CacheSpace] = []
        self._targets: dict[tuple[ServerKey, str], Target] = {}
        self._paths: dict[tuple[ServerKey, str], list[tuple[float, Path | Failure]]] = {}
        self._watched: list[tuple[object, int]] = []
        self._flags: dict[tuple[ServerKey, str], object] = {}
        self._variants: dict[tuple[ServerKey, str], str] = {}

    def graph(self, roots: Sequence[Node], further: Sequence[Node] = ()) -> Graph:
        """Return the graph of everything that the roots call, and of the nodes found while planning them."""
        pending = [*roots, *further]
        for node in roots:
            self._nodes[node.key] = node
        while pending:
            node = pending.pop()
            if isinstance(node.server, Instance) and not node.plan and node.operation is not None:
                self._plan(node, node.operation.does, pending)
        self._set_levels(roots)
        nodes = sorted(self._nodes.values(), key=lambda node: node.level)
        for index, node in enumerate(nodes):
            node.index = index
        servers: list[Server] = list(dict.fromkeys(node.server for node in nodes))
        for index, server in enumerate(servers):
            server.index = index
        calls = [call for node in nodes for call in calls_of(node.plan)]
        for index, call in enumerate(calls):
            call.index = index
        for index, cache in enumerate(self._caches):
            cache.index = index
        return Graph(
            nodes,
            calls,
            list(self._targets.values()),
            servers,
            self._caches,
            roots,
            self._watched,
        )

    def _set_levels(self, roots: Iterable[Node]) -> None:
        """Put each node one level below its deepest caller; cut loops at MAX_LEVEL."""
        pending = [(node, 0) for node in roots]
        while pending:
            node, level = pending.pop()
            if level > MAX_LEVEL:
                continue
            node.level = max(node.level, level)
            for call in calls_of(node.plan):
                for link in call.links:
                    if link.callee is not None and link.callee.level < level + 1:
                        if level + 1 > MAX_LEVEL:
                            link.callee, link.failure = None, Failure("error", "too many hops", 0.0)
                        else:
                            pending.append((link.callee, level + 1))

    # Operations

    def node(self, instance: Instance, name: str, operation: Operation, route: str) -> Node:
        """Return the node of an operation; it is created on first use."""
        key = (instance.key, name, route)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = self._create_node(instance, name, operation, route)
        return found

    def _create_node(self, instance: Instance, name: str, operation: Operation, route: str) -> Node:
        settings = instance.settings
        cpu = settings.seconds(operation.cpu, 0.0005)
        latency = settings.seconds(operation.latency, 0.0)
        variance = ((cpu + latency) * operation.spread) ** 2
        passes = 1 - settings.number(operation.fails, 0.0)
        active: list[ActiveEffect] = []
        error = operation.error
        flags: list[str] = []
        for effect in instance.program.effects:
            if effect.operation not in ("*", name):
                continue
            if effect.when.flag is not None and not effect.unhealthy:
                flags.append(effect.when.flag)
            value = self.value_of(instance, effect.when)
            if value is None:
                continue
            resolved = _resolve_effect(effect, value)
            active.append(resolved)
            cpu = cpu * effect.cpu_factor + effect.share * effect.cpu
            latency += effect.share * effect.latency
            variance += effect.share * (1 - effect.share) * effect.latency**2
            passes *= 1 - effect.share * resolved.fails
        return Node(
            instance,
            name,
            route,
            operation,
            cpu,
            latency,
            variance,
            1 - passes,
            error,
            operation.response_bytes,
            tuple(active),
            self._flag_evaluations(instance, flags),
        )

    def value_of(self, instance: Instance, condition: Condition) -> object | None:
        """Return the value that satisfies a condition (of a flag or a setting), or None where it does not hold."""
        value: object = True
        if condition.setting is not None:
            if not instance.settings.satisfy(condition):
                return None
            value = instance.settings[condition.setting]
        if condition.flag is not None:
            value = self._flag(instance, condition.flag)
            if value is None or not holds(value, condition):
                return None
        return value

    def _flag(self, instance: Instance, flag: str) -> object | None:
        """Return the flag's value from the flag service; None where that is not reachable."""
        key = (instance.key, flag)
        if key not in self._flags:
            self._flags[key] = None
            if "flags" in instance.program.dependencies:
                for _, path in self.paths_to(instance, "flags"):
                    server = getattr(path, "listener", None) and path.listener.server  # type: ignore[union-attr]
                    evaluate = getattr(server, "evaluate", None)
                    if evaluate is not None:
                        self._watch(server)
                        self._flags[key], self._variants[key] = evaluate(flag)
                        break
        return self._flags[key]

    def _flag_evaluations(self, instance: Instance, flags: list[str]) -> tuple[Attributes, ...]:
        """Return the attributes of the events by which OpenFeature's tracing hook records evaluations."""
        if instance.runtime not in _FLAG_HOOKS:
            return ()
        found = []
        for flag in dict.fromkeys(flags):
            if self._flag(instance, flag) is not None:
                evaluation = ("feature_flag.key", flag), ("feature_flag.provider_name", "flagd")
                found.append((*evaluation, ("feature_flag.variant", self._variants[instance.key, flag])))
        return tuple(found)

    def _watch(self, server: object) -> None:
        if not any(watched is server for watched, _ in self._watched):
            self._watched.append((server, getattr(server, "epoch", 0)))

    # Plans

    def _plan(self, node: Node, steps: Sequence[Step], pending: list[Node]) -> None:
        self._group = 0
        node.plan = self._actions(node, steps, None, pending)

    def plan_task(self, node: Node, steps: Sequence[Step]) -> list[Node]:
        """Plan the steps of a node (a simulated user's task); return the nodes that it calls."""
        pending: list[Node] = []
        self._nodes[node.key] = node
        self._plan(node, steps, pending)
        return pending

    def _actions(
        self,
        node: Node,
        steps: Sequence[Step],
        cache: CacheSpace | None,
        pending: list[Node],
        *,
        in_parallel: bool = False,
    ) -> tuple[Action, ...]:
        actions: list[Action] = []
        instance = node.server
        assert isinstance(instance, Instance)
        for step in steps:
            if step.when is not None:
                if step.when.flag is not None:
                    node.flag_evaluations += self._flag_evaluations(instance, [step.when.flag])
                if self.value_of(instance, step.when) is None:
                    continue
            if not in_parallel:
                self._group += 1
            if step.call is not None:
                actions.append(self._call(node, step, step.call, cache, pending))
            elif step.publish is not None:
                name, _, topic = step.publish.partition(" ")
                actions.append(self._call(node, step, f"{name} produce {topic.strip()}", cache, pending))
            elif step.cache is not None:
                lookup = self._call(node, step, step.cache, cache, pending)
                actions.append(lookup)
                space = CacheSpace(f"{node.server.name}/{step.cache}", step.keys, step.space, step.fill, lookup)
                self._caches.append(space)
                actions.append(OnMiss(space, self._actions(node, step.miss, space, pending)))
            elif step.parallel is not None:
                branches = tuple(
                    self._actions(node, [branch], cache, pending, in_parallel=True) for branch in step.parallel
                )
                actions.append(Parallel(branches))
            elif step.do is not None:
                actions.extend(self._actions(node, step.do, cache, pending, in_parallel=in_parallel))
            elif step.wait is not None:
                actions.append(Pause(step.wait))
        return tuple(actions)

    def _call(self, node: Node, step: Step, text: str, cache: CacheSpace | None, pending: list[Node]) -> Call:
        name, _, operation = text.partition(" ")
        operation = operation.strip()
        forwards = operation == "same"
        if forwards:
            operation = node.route
        instance = node.server
        assert isinstance(instance, Instance)
        call = Call(
            node,
            self._target(instance, name),
            step,
            operation,
            self._ordinals.setdefault(node, 0),
            instance.settings.number(step.times, 1.0),
            step.share,
            cache=cache,
            group=self._group,
            crashes=step.on_error == "crash",
            optional=step.on_error == "ignore",
            forwards=forwards,
        )
        self._ordinals[node] += 1
        for weight, path in self.paths_to(instance, name):
            call.links.append(self._link(call, weight, path, pending))
        return call

    def _target(self, instance: Instance, name: str) -> Target:
        key = (instance.key, name)
        found = self._targets.get(key)
        if found is None:
            dependency = instance.program.dependencies[name]
            settings = instance.settings
            found = self._targets[key] = Target(
                name,
                dependency,
                instance,
                settings.seconds(dependency.timeout, float("inf")) or float("inf"),
                max(1, int(settings.number(dependency.attempts, 1.0))),
                settings.seconds(dependency.backoff.initial, 0.0),
                settings.number(dependency.backoff.multiplier, 1.0),
                settings.number(dependency.pool, float("inf")),
                settings.seconds(dependency.pool_timeout, float("inf")),
            )
        return found

    # Connection paths

    def paths_to(self, instance: Instance, name: str) -> list[tuple[float, Path | Failure]]:
        """Return the possible paths of connections to a dependency, with their shares."""
        key = (instance.key, name)
        found = self._paths.get(key)
        if found is None:
            found = self._paths[key] = self._find_paths(instance, instance.program.dependencies[name])
        return found

    def _find_paths(self, instance: Instance, dependency: Dependency) -> list[tuple[float, Path | Failure]]:
        if dependency.discover:
            addresses = self._discovered(instance, instance.settings.fill(dependency.discover))
            if not addresses:
                text = remote_failure(instance.runtime, "http", "there is no address available")
                if instance.runtime == "go":
                    text = "rpc error: code = Unavailable desc = there is no address available"
                return [(1.0, Failure("unreachable", text, 0.0005))]
        else:
            address = instance.settings.fill(dependency.address)
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                text = f"invalid address {address!r}" if address else "missing address"
                return [(1.0, Failure("name", text, 0.0))]
            addresses = [(host, int(port))]
        paths: list[tuple[float, Path | Failure]] = []
        for host, number in addresses:
            paths.extend(self._paths_of(instance, dependency, host, number, 1 / len(addresses)))
        if dependency.discover and dependency.protocol == "grpc":
            return _connected(paths)
        return paths

    def _discovered(self, instance: Instance, text: str) -> list[tuple[str, int]]:
        registry, _, service = text.partition("/")
        for _, path in self.paths_to(instance, registry):
            server = as_discovery(path.listener) if isinstance(path, Path) else None
            if server is not None:
                self._watch(server)
                instance.discovered_addresses[service] = [(one.ip, one.port) for one in server.instances(service)]
                break
        return instance.discovered_addresses.get(service, [])

    def _paths_of(
        self, instance: Instance, dependency: Dependency, host: str, port: int, share: float
    ) -> list[tuple[float, Path | Failure]]:
        forecast = self.network.forecast(instance.host, host, port)
        connect_timeout = instance.settings.seconds(
            dependency.connect_timeout,
            instance.settings.seconds(dependency.timeout, CONNECT_TIMEOUT) or CONNECT_TIMEOUT,
        )
        runtime, protocol = instance.runtime, dependency.protocol

        def failed(outcome: Outcome, address: str, seconds: float) -> Failure:
            return connect_failure(outcome, runtime, protocol, host, address, port, min(seconds, connect_timeout))

        paths: list[tuple[float, Path | Failure]] = []
        unresolved = 1.0 if not forecast.paths else forecast.lookup.failing
        if unresolved > 0:
            outcome = forecast.lookup.outcome if not forecast.paths else Outcome.DNS_FAILURE
            paths.append((share * unresolved, failed(outcome, "", forecast.lookup.seconds)))
        for path in forecast.paths:
            weight = share * (1 - unresolved) / len(forecast.paths)
            if path.outcome is Outcome.CONNECTED and path.lost < 1:
                paths.append((weight, path))
            else:
                outcome = Outcome.TIMEOUT if path.outcome is Outcome.CONNECTED else path.outcome
                slow = outcome is Outcome.TIMEOUT
                paths.append(
                    (weight, failed(outcome, path.address, connect_timeout if slow else path.round_trip or 0.001))
                )
        return paths

    def _link(self, call: Call, weight: float, path: Path | Failure, pending: list[Node]) -> Link:
        if isinstance(path, Failure):
            return Link(weight, None, path, path.seconds)
        round_trip = path.round_trip + path.forward.delay + path.reverse.delay
        variance = path.forward.jitter**2 + path.reverse.jitter**2
        lost = path.lost
        if lost > 0:
            # A lost packet is sent again after RESEND, then after twice that (exponential backoff). A call is lost with
            # six losses in a row: chosen, since by then the backoff exceeds ten seconds and clients have given up.
            resent = lost / (1 - lost)
            round_trip += resent * RESEND * 2
            variance += resent * (RESEND * 2) ** 2
        reached = self._callee(call, path, pending)
        if isinstance(reached, Failure):
            return Link(weight, None, reached, round_trip + reached.seconds, address=path.address, port=path.port)
        return Link(weight, reached, None, round_trip, variance, lost**6, path.address, path.port)

    def _callee(self, call: Call, path: Path, pending: list[Node]) -> Node | Failure:
        assert path.listener is not None
        server = path.listener.server
        instance = call.target.instance
        protocol = call.target.dependency.protocol
        if path.listener.starved:
            text = remote_failure(instance.runtime, protocol, "timeout awaiting response headers")
            return Failure("timeout", text, HANGING)
        if isinstance(server, Instance):
            return self._at_instance(call, server, pending)
        if server is not None and is_store(server):
            return self._at_store(call, server, path)  # type: ignore[arg-type]
        if protocol in STORES or path.listener.http is None:
            text = remote_failure(instance.runtime, protocol, "connection closed by peer")
            return Failure("protocol", text, 0.001)
        return Failure("error", remote_failure(instance.runtime, protocol, "unexpected answer"), 0.001)

    def _at_instance(self, call: Call, server: Instance, pending: list[Node]) -> Node | Failure:
        protocol = call.target.dependency.protocol
        if protocol in STORES:
            return Failure("protocol", "unexpected message from server", 0.001)
        requested = call.step.operation if call.step.operation in server.program.operations else call.operation
        found = find_operation(server.program, protocol, requested)
        if found is None:
            words = "404 Not Found" if protocol == "http" else f"unknown method {call.operation}"
            return Failure("error", remote_failure(call.target.instance.runtime, protocol, words), 0.001)
        name, operation = found
        route = call.operation if keeps_route(operation) else ""
        key = (server.key, name, route)
        is_new = key not in self._nodes
        node = self.node(server, name, operation, route)
        if is_new:
            pending.append(node)
        return node

    def _at_store(self, call: Call, model: Datastore | Broker, path: Path) -> Node | Failure:
        target = call.target
        protocol = target.dependency.protocol
        assert path.listener is not None and path.host is not None
        self._watch(model)
        login = None
        if target.dependency.login is not None:
            configured, fill = target.dependency.login, target.instance.settings.fill
            login = Login(fill(configured.user), fill(configured.password), fill(configured.database), "admin")
        cost = cost_of(protocol, call.operation)
        goal = call.step.target or call.operation.partition(" ")[2]
        refusal = request_refusal(model, target.instance.process, login, "write" if cost.writes else "read", goal)
        if refusal is not None:
            if refusal.kind == "locked":
                return Failure("timeout", refusal.message, HANGING)
            return Failure("error", refusal.message, 0.002)
        owner = path.listener.owner
        assert isinstance(owner, Process)
        store = self.stores.get(owner)
        if store is None:
            store = self.stores[owner] = Store(owner, path.host, model, protocol)
        verb = call.operation.split(None, 1)[0]
        step = call.step
        key = (store.key, verb, step.statement)
        found = self._nodes.get(key)
        if found is None:
            cpu = cost.cpu if step.cpu is None else step.cpu
            latency = cost.latency if step.latency is None else step.latency
            latency *= _disk_factor(owner) if protocol in _ON_DISK else 1.0
            variance = ((cpu + latency) * cost.spread) ** 2
            shared_cpu = 0.0
            if cpu > _LONG_STATEMENT:
                shared_cpu, latency, cpu = cpu, latency + cpu / min(store.meter.cpu_limit or 1.0, 1.0), 0.0
            found = self._nodes[key] = Node(
                store, verb, step.statement, None, cpu, latency, variance, 0.0, "", step.payload, shared_cpu=shared_cpu
            )
        return found


_LONG_STATEMENT = 0.1
"""Processor seconds from which a statement is no part of the queue for processors, which is served in order: others of
a database run in between. Chosen: many times the time slice of the kernel."""
_ON_DISK = frozenset(("mongo", "postgres", "mysql", "kafka"))


def _disk_factor(process: Process) -> float:
    machine = getattr(process.container.host, "machine", None)
    return float(getattr(machine, "disk_factor", 1.0))


def is_store(server: object) -> bool:
    """Return whether a server model is a datastore or a broker."""
    return implements(server, Datastore) or implements(server, Broker)


def _resolve_effect(effect: Effect, value: object) -> ActiveEffect:
    number = float(value) if isinstance(value, int | float | str) and _is_number(value) else 1.0
    fails = number if effect.fails == "value" else float(effect.fails or 0.0)
    leaks = effect.leaks * (number if effect.leak_factor == "value" else 1.0)
    return ActiveEffect(effect, min(max(fails, 0.0), 1.0), leaks)


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def calls_of(plan: Iterable[Action]) -> list[Call]:
    """Return all calls of a plan, in order."""
    calls: list[Call] = []
    for action in plan:
        if isinstance(action, Call):
            calls.append(action)
        elif isinstance(action, Parallel):
            for branch in action.branches:
                calls.extend(calls_of(branch))
        elif isinstance(action, OnMiss):
            calls.extend(calls_of(action.plan))
    return calls


def _connected(paths: list[tuple[float, Path | Failure]]) -> list[tuple[float, Path | Failure]]:
    """Keep the connected paths: gRPC's round robin ignores stale addresses unless all are."""
    connected = [(weight, path) for weight, path in paths if isinstance(path, Path)]
    total = sum(weight for weight, _ in connected)
    return [(weight / total, path) for weight, path in connected] if total > 0 else paths
