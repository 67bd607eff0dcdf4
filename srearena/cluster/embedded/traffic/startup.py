"""Startup of a program: its steps in order, each against the present cluster, and the handling of failures."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.application_model.schema import Dependency, StartStep, Trouble
from srearena.cluster.embedded.machine.networking.interface_counters import Exchange
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.datastore import Datastore, Discovery, joined
from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer
from srearena.cluster.embedded.traffic.data_sets import records_of
from srearena.cluster.embedded.traffic.failures import connect_failure
from srearena.cluster.embedded.traffic.protocols import as_discovery
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.store_clients import login_of

_REGISTRATION = Exchange.of_connection(433, 158)
"""A request with a small JSON document, and its short answer."""


class StartFailed(Exception):
    """The program gives up; it has logged why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Startup:
    """The startup of one instance."""

    def __init__(self, instance: Instance, network: object) -> None:
        self.instance = instance
        self.process: Process = instance.process
        self._cluster = network
        self.registered: list[StartStep] = []

    async def run(self, steps: Iterable[StartStep]) -> None:
        """Run the steps; StartFailed where one of them ends the program."""
        for step in steps:
            await self._run_step(step)

    async def _run_step(self, step: StartStep) -> None:
        failures = 0
        while True:
            error = await self._try(step)
            if error is None:
                return
            trouble = step.otherwise
            for line in _log_lines(trouble.log):
                self.instance.write_log(line, error=error)
            failures += 1
            if trouble.retry is None or (trouble.attempts and failures >= trouble.attempts):
                break
            await self.process.sleep(trouble.retry)
        if trouble.exit is not None:
            raise StartFailed(trouble.exit)

    async def _try(self, step: StartStep) -> str | None:
        """Run a step once; return an error message or None."""
        instance = self.instance
        if step.log is not None:
            for line in _log_lines(step.log):
                instance.write_log(line)
        elif step.take is not None:
            await self._work(step.take, step.cpu)
        elif step.need is not None:
            return None if instance.settings[step.need] else f'"{step.need}" is not set'
        elif step.reach is not None:
            return await self._reach(step.reach, step)
        elif step.access is not None:
            return await self._reach(step.access, step, step.action, step.target)
        elif step.seed is not None:
            return await self._seed(step)
        elif step.write is not None:
            return self._write(instance.settings.fill(step.write))
        elif step.register_in is not None:
            return await self._register(step)
        return None

    async def _work(self, seconds: float, cpu: float) -> None:
        meter = self.instance.meter
        limit = meter.cpu_limit
        # Work above the CPU quota takes longer.
        slowdown = cpu / limit if limit is not None and limit < cpu else 1.0
        meter.load("start", cpu)
        try:
            await self.process.sleep(seconds * slowdown * self.instance.container.random.uniform(0.8, 1.2))
        finally:
            meter.load("start", 0.0)

    def _address(self, name: str) -> tuple[Dependency, str, int]:
        dependency = self.instance.program.dependencies[name]
        host, _, port = self.instance.settings.fill(dependency.address).rpartition(":")
        return dependency, host, int(port) if port.isdigit() else 0

    async def _connect(self, name: str, step: StartStep) -> tuple[object | None, str | None]:
        """Return the server model behind a dependency's socket, or the error of the connection."""
        instance = self.instance
        dependency, host, port = self._address(name)
        if not host or not port:
            return None, "missing address"
        within = instance.settings.seconds(step.within, 10.0)
        result = await instance.container.network.connect(host, port, timeout=within)
        if result.outcome is not Outcome.CONNECTED:
            failure = connect_failure(
                result.outcome, instance.runtime, dependency.protocol, host, result.address, port, 0.0
            )
            return None, failure.text
        if result.connection is not None:
            result.connection.close()
        listener = self._listener(host, port)
        return (listener.server if listener is not None else None), None

    def _listener(self, host: str, port: int) -> Listener | None:
        forecast = self._cluster.forecast(self.instance.host, host, port)  # type: ignore[attr-defined]
        return next((path.listener for path in forecast.paths if path.listener is not None), None)

    async def _reach(self, name: str, step: StartStep, action: str = "", target: str = "") -> str | None:
        server, error = await self._connect(name, step)
        if error is not None:
            return error
        if isinstance(server, Datastore):
            login = login_of(self.instance, name)
            refusal = joined(server, self.process, login)
            if refusal is None and action:
                refusal = server.refuses(login, action, target)
            if refusal is not None:
                return refusal.message
        return None

    async def _seed(self, step: StartStep) -> str | None:
        assert step.seed is not None
        server, error = await self._connect(step.seed, step)
        if error is not None or not isinstance(server, Datastore):
            return error
        login = login_of(self.instance, step.seed)
        refusal = joined(server, self.process, login)
        database = login.database if login is not None else ""
        if refusal is None and server.count(database, step.target) == 0:
            refusal = server.refuses(login, "create", step.target)
            if refusal is not None:
                return refusal.message
            refusal = server.put(database, step.target, records_of(self.instance.application, step.rows))
        if refusal is None and isinstance(server, MongoServer):
            self.instance.loaded[step.target] = list(server.collection(database, step.target))
        return None if refusal is None else refusal.message

    def _write(self, directory: str) -> str | None:
        files = self.process.files
        path = f"{directory.rstrip('/')}/.probe"
        try:
            files.write_bytes(path, b"")
            files.unlink(path)
        except OSError as problem:
            return f"open {path}: {str(problem.strerror).lower()}"
        return None

    async def _register(self, step: StartStep) -> str | None:
        assert step.register_in is not None
        server, error = await self._connect(step.register_in, step)
        if error is not None:
            return error
        if not isinstance(server, Discovery):
            return "unexpected answer from the registry"
        service, address, port = self._registration(step)
        server.register(service, address, port)
        if step.beat is not None:
            self.process.spawn_thread(self._renew_registration(step, step.beat))
            if not step.stays:
                self.registered.append(step)
        return None

    def _registration(self, step: StartStep) -> tuple[str, str, int]:
        instance = self.instance
        port = int(instance.settings.fill(str(instance.program.listen[0].port)) or 0)
        return instance.settings.fill(step.name), instance.host.address, port

    def _registry(self, step: StartStep) -> Discovery | None:
        """The registry that is reached now, for one request."""
        assert step.register_in is not None
        _, host, port = self._address(step.register_in)
        listener = self._listener(host, port)
        registry = as_discovery(listener)
        if listener is not None and registry is not None:
            listener.namespace.carried.add_exchange(_REGISTRATION)
            self.instance.host.sockets.carried.add_exchange(_REGISTRATION.reversed)
        return registry

    async def _renew_registration(self, step: StartStep, every: float) -> None:
        while True:
            await self.process.sleep(every)
            registry = self._registry(step)
            if registry is not None:
                registry.register(*self._registration(step))

    def deregister(self) -> None:
        """Remove the registrations that a program removes when it is stopped."""
        for step in self.registered:
            registry = self._registry(step)
            if registry is not None:
                registry.deregister(*self._registration(step))


def _log_lines(text: str | list[str]) -> list[str]:
    return text if isinstance(text, list) else [text] if text else []


def bind_failed(trouble: Trouble, instance: Instance, port: int) -> int:
    """Log that a port is in use and return the exit status."""
    for line in _log_lines(trouble.log):
        instance.write_log(line, port=port, error="address already in use")
    return 1 if trouble.exit is None else trouble.exit
