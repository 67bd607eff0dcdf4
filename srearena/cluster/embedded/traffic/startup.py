"""How a program starts: its steps in order, each against the cluster as it is, and what it does when one fails."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.application_model.schema import Dependency, StartStep, Trouble
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.datastore import Datastore, Discovery, Login, joined
from srearena.cluster.embedded.traffic.failures import connect_failure
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.speaking import as_discovery


class StartFailed(Exception):
    """The program gives up; it has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Startup:
    """One start of one instance."""

    def __init__(self, instance: Instance, network: object) -> None:
        self.instance = instance
        self.process: Process = instance.process
        self._cluster = network
        self.registered: list[StartStep] = []

    async def run(self, steps: Iterable[StartStep]) -> None:
        """Go through the steps; StartFailed where one of them ends the program."""
        for step in steps:
            await self._take(step)

    async def _take(self, step: StartStep) -> None:
        tried = 0
        while True:
            error = await self._try(step)
            if error is None:
                return
            trouble = step.otherwise
            for line in _lines(trouble.log):
                self.instance.say(line, error=error)
            tried += 1
            if trouble.retry is None or (trouble.attempts and tried >= trouble.attempts):
                break
            await self.process.sleep(trouble.retry)
        if trouble.exit is not None:
            raise StartFailed(trouble.exit)

    async def _try(self, step: StartStep) -> str | None:
        """What went wrong, or None."""
        instance = self.instance
        if step.log is not None:
            for line in _lines(step.log):
                instance.say(line)
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
        # What needs more than the quota takes longer.
        longer = cpu / limit if limit is not None and limit < cpu else 1.0
        meter.load("start", cpu)
        try:
            await self.process.sleep(seconds * longer * self.instance.container.random.uniform(0.8, 1.2))
        finally:
            meter.load("start", 0.0)

    def _address(self, name: str) -> tuple[Dependency, str, int]:
        dependency = self.instance.program.dependencies[name]
        host, _, port = self.instance.settings.fill(dependency.address).rpartition(":")
        return dependency, host, int(port) if port.isdigit() else 0

    async def _connect(self, name: str, step: StartStep) -> tuple[object | None, str | None]:
        """The model behind a dependency's socket, or how the connection failed."""
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
        forecast = self._cluster.forecast(self.instance.station, host, port)  # type: ignore[attr-defined]
        return next((path.listener for path in forecast.paths if path.listener is not None), None)

    def _login(self, name: str) -> Login | None:
        given = self.instance.program.dependencies[name].login
        if given is None:
            return None
        fill = self.instance.settings.fill
        return Login(fill(given.user), fill(given.password), fill(given.database), "admin")

    async def _reach(self, name: str, step: StartStep, action: str = "", target: str = "") -> str | None:
        server, error = await self._connect(name, step)
        if error is not None:
            return error
        if isinstance(server, Datastore):
            login = self._login(name)
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
        login = self._login(step.seed)
        refusal = joined(server, self.process, login)
        database = login.database if login is not None else ""
        if refusal is None and server.count(database, step.target) == 0:
            refusal = server.refuses(login, "create", step.target)
            if refusal is not None:
                return refusal.message
            rows = step.rows if isinstance(step.rows, list) else [{"_id": str(n)} for n in range(1, step.rows + 1)]
            refusal = server.put(database, step.target, rows)
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
            self.process.spawn_thread(self._beats(step, step.beat))
            self.registered.append(step)
        return None

    def _registration(self, step: StartStep) -> tuple[str, str, int]:
        instance = self.instance
        port = int(instance.settings.fill(str(instance.program.listen[0].port)) or 0)
        return instance.settings.fill(step.name), instance.station.address, port

    def _registry(self, step: StartStep) -> Discovery | None:
        assert step.register_in is not None
        _, host, port = self._address(step.register_in)
        return as_discovery(self._listener(host, port))

    async def _beats(self, step: StartStep, every: float) -> None:
        while True:
            await self.process.sleep(every)
            registry = self._registry(step)
            if registry is not None:
                registry.register(*self._registration(step))

    def leave(self) -> None:
        """Take back what is taken back when a program is told to stop."""
        for step in self.registered:
            registry = self._registry(step)
            if registry is not None:
                registry.deregister(*self._registration(step))


def _lines(text: str | list[str]) -> list[str]:
    return text if isinstance(text, list) else [text] if text else []


def bind_trouble(trouble: Trouble, instance: Instance, port: int) -> int:
    """What the program does when its port is taken: the status it ends with."""
    for line in _lines(trouble.log):
        instance.say(line, port=port, error="address already in use")
    return 1 if trouble.exit is None else trouble.exit
