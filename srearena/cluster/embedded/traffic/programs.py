"""Programs built from models: what a container of an application's image runs.

A program reads its settings, runs the steps of its startup, listens, takes part in the traffic until it is stopped or
killed, and serves requests that arrive over the network by walking them through the same fluid model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from signal import Signals
from typing import ClassVar

from srearena.application_model.schema import ApplicationModel, Operation, ProgramModel
from srearena.cluster.embedded.machine.images.catalogue import Catalogue
from srearena.cluster.embedded.machine.images.image_names import ImageReference
from srearena.cluster.embedded.machine.networking.sockets import (
    Connection,
    GrpcHealth,
    HttpRequest,
    HttpResponse,
    Listener,
)
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import Programs
from srearena.cluster.embedded.programs.serving import stop_signal
from srearena.cluster.embedded.programs.timestamps import stamp
from srearena.cluster.embedded.traffic.blueprint_workload import WorkloadGenerator
from srearena.cluster.embedded.traffic.data_handlers import StoreFailed, handler_for
from srearena.cluster.embedded.traffic.engine import Traffic
from srearena.cluster.embedded.traffic.locust import statistics
from srearena.cluster.embedded.traffic.routing import find_operation
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.settings import ConfigurationMissing, Settings, read_settings
from srearena.cluster.embedded.traffic.startup import StartFailed, Startup, bind_failed
from srearena.cluster.embedded.traffic.traffic_program import TrafficProgram
from srearena.cluster.embedded.traffic.wrk import Wrk

_IMAGE_SIZE = 45_000_000
"""Chosen: a typical compressed image of a service; it only sets how long a pull takes."""
LOAD_GENERATORS: dict[str, type[TrafficProgram]] = {
    "deathstarbench/wrk2-client": Wrk,
    "777lefty/wlgen-proc": WorkloadGenerator,
}
"""Programs that send load, by image."""


class ModelledProgram(TrafficProgram):
    """The programs of one image; the command selects one of them."""

    models: ClassVar[tuple[ProgramModel, ...]] = ()
    application: ClassVar[str] = ""

    def model_for(self, binary: str) -> ProgramModel | None:
        named = {model.command.rpartition("/")[2]: model for model in self.models if model.command}
        if binary in named:
            return named[binary]
        return next((model for model in self.models if not model.command), None)

    async def run(self, process: Process) -> int:
        model = self.model_for(process.binary)
        if model is None:
            await process.error(f"{process.binary}: unknown program\n")
            return 127
        return await ProgramRun(process, model, self.working_dir, self.traffic, self.application).run()


class ProgramRun:
    """One run of one program."""

    def __init__(self, process: Process, model: ProgramModel, workdir: str, traffic: Traffic, application: str) -> None:
        self.process = process
        self.model = model
        self.application = application
        self.workdir = workdir
        self.traffic = traffic

    async def run(self) -> int:
        process, model = self.process, self.model
        stop = stop_signal(process)
        process.set_memory(model.memory)
        host = self.traffic.network.fabric.hosts.pods[str(process.container.host.pod["metadata"]["uid"])]
        try:
            settings = read_settings(
                model.settings, model.config, process.env, process.argv, process.files, process.cwd or self.workdir
            )
        except ConfigurationMissing as problem:
            instance = Instance(process, host, model, Settings({}))
            instance.write_log((model.config.missing if model.config is not None else "") or "{error}", error=problem)
            return 1
        instance = Instance(process, host, model, settings, self.application)
        listeners: list[Listener] = []
        startup = Startup(instance, self.traffic.network)
        early = next((number for number, step in enumerate(model.start) if step.listen), len(model.start))
        try:
            await startup.run(model.start[:early])
            code = self._listen(instance, listeners)
            if code is not None:
                return code
            await startup.run(model.start[early:])
        except StartFailed as failed:
            return failed.code
        instance.ready = True
        self.traffic.add_instance(instance)
        await stop.wait()
        startup.deregister()
        for listener in listeners:
            listener.close()
        self.traffic.remove(process)
        for line in model.stop_log if isinstance(model.stop_log, list) else [model.stop_log]:
            instance.write_log(line)
        return 0 if stop.value == Signals.SIGTERM and model.runtime != "java" else 143

    def _listen(self, instance: Instance, listeners: list[Listener]) -> int | None:
        """Bind all ports; return an exit status where one is in use."""
        namespace = self.process.container.namespace
        for listening in self.model.listen:
            text = instance.settings.fill(str(listening.port)).rpartition(":")[2]
            if not text.isdigit():
                return bind_failed(self.model.bind_error, instance, 0)
            handler = RequestHandler(self.traffic, instance)
            try:
                listener = namespace.listen(
                    self.process,
                    int(text),
                    http=handler.http if listening.protocol == "http" else None,
                    grpc_health=handler.health if listening.protocol == "grpc" else None,
                    stream=handler.stream if listening.protocol in ("thrift", "tcp") else None,
                )
            except OSError:
                return bind_failed(self.model.bind_error, instance, int(text))
            listener.server = instance
            if instance.runtime == "go" and listening.protocol == "http":
                listener.on_starved = partial(_log_accept_error, instance, listener.port)
            listeners.append(listener)
        return None


def _log_accept_error(instance: Instance, port: int, retry: float) -> None:
    """Write the line of net/http, which accepts again after twice the time, up to a second."""
    text = f"http: Accept error: accept tcp [::]:{port}: accept4: too many open files; retrying in"
    wait = f"{round(retry * 1000)}ms" if retry < 1 else "1s"
    instance.write_log(f"{stamp(instance.process, '%Y/%m/%d %H:%M:%S')} {text} {wait}")


class RequestHandler:
    """Handler of requests from outside the load: probes, curl, an operator's port-forward, an oracle."""

    def __init__(self, traffic: Traffic, instance: Instance) -> None:
        self.traffic = traffic
        self.instance = instance

    async def http(self, request: HttpRequest) -> HttpResponse:
        instance, process = self.instance, self.instance.process
        await process.spend(0.0002)
        if not instance.ready:
            return HttpResponse.text("starting\n", 503)
        driver = self.traffic.drivers.get(process)
        if driver is not None and request.path == "/stats/requests":
            return HttpResponse(200, json.dumps(statistics(driver)).encode(), {"Content-Type": "application/json"})
        found = find_operation(instance.program, "http", f"{request.method} {request.path}")
        if found is not None and found[1].health and not found[1].does:
            # Probes are frequent and call nothing: no need to walk them.
            return self._healthy(found[1])
        response = self.traffic.request(instance, request.method, request.target)
        if response is None:
            return HttpResponse.text("404 page not found\n", 404)
        result, node, visits = response
        await process.sleep(result.seconds)
        operation = node.operation
        if operation is None:
            return HttpResponse(200)
        if self._unhealthy(operation.health):
            return HttpResponse.text("unhealthy\n", 503)
        if not result.ok:
            origin = result.origin.operation if result.origin is not None else None
            return self._failed(origin or operation, result.status, result.error)
        handler = handler_for(visits)
        if handler is not None:
            try:
                return self.traffic.requests_with_data.handle(handler, request, visits)
            except StoreFailed as problem:
                return self._failed(operation, operation.status, str(problem))
        body = operation.body if operation.body is not None else json.dumps({"status": "ok"})
        return HttpResponse(200, instance.fill(body).encode(), {"Content-Type": operation.content_type})

    def _failed(self, operation: Operation, status: int, error: str) -> HttpResponse:
        body = self.instance.fill(operation.failure_body, error=error)
        return HttpResponse(status, body.encode(), {"Content-Type": "text/plain; charset=utf-8"})

    def _healthy(self, operation: Operation) -> HttpResponse:
        if self._unhealthy(True):
            return HttpResponse.text("unhealthy\n", 503)
        body = operation.body if operation.body is not None else "ok"
        return HttpResponse(200, self.instance.fill(body).encode(), {"Content-Type": operation.content_type})

    def _unhealthy(self, is_health_check: bool) -> bool:
        return is_health_check and any(
            active.effect.unhealthy
            for node in (self.traffic.fluid.nodes_by_server.get(self.instance.index, ()) if self.traffic.fluid else ())
            for active in node.effects
        )

    async def health(self, service: str) -> GrpcHealth:
        await self.instance.process.spend(0.0002)
        if not self.instance.ready or self._unhealthy(True):
            return GrpcHealth.NOT_SERVING
        return GrpcHealth.SERVING

    async def stream(self, connection: Connection) -> None:
        while await connection.read():
            pass


def register_model(model: ApplicationModel, catalogue: Catalogue, programs: Programs, traffic: Traffic) -> None:
    """Add an application's images and their programs to a cluster."""
    for image, kind in LOAD_GENERATORS.items():
        catalogue.register_images(image, tags=["latest"], size=_IMAGE_SIZE)
        programs.register(type(kind.__name__, (kind,), {"traffic": traffic}), image)
    by_image: dict[str, list[ProgramModel]] = {}
    for one in model.programs:
        for image in one.images:
            by_image.setdefault(image, []).append(one)
    for image, models in by_image.items():
        catalogue.register_images(image, tags=(tag for one in models for tag in one.tags), size=_IMAGE_SIZE)
        names = _repository_names(image)
        fallback = next((found for name in names if (found := programs.registered(name)) is not None), None)
        programs.register(_tagged(models, fallback, traffic, model.application), *names)


class TaggedPrograms(Program):
    """An image repository whose tags may be different programs; creates the program of the requested tag."""

    by_tag: ClassVar[dict[str, type[ModelledProgram]]] = {}
    fallback: ClassVar[type[Program] | None] = None
    """The program of tags that no model names."""

    def __new__(cls, reference: ImageReference) -> Program:  # type: ignore[misc]
        kind: type[Program] | None = cls.by_tag.get(reference.tag or "latest", cls.fallback)
        return (kind or next(iter(cls.by_tag.values())))(reference)


def _tagged(
    models: Sequence[ProgramModel], fallback: type[Program] | None, traffic: Traffic, application: str
) -> type[TaggedPrograms]:
    tags = dict.fromkeys(tag for one in models for tag in one.tags)
    by_tag = {tag: _program_class([one for one in models if tag in one.tags], traffic, application) for tag in tags}
    return type("TaggedPrograms", (TaggedPrograms,), {"by_tag": by_tag, "fallback": fallback})


def _repository_names(image: str) -> tuple[str, ...]:
    """Return the names under which programs of a repository are registered: with and without the registry's host."""
    host, _, rest = image.partition("/")
    return (image, rest) if rest and ("." in host or ":" in host) else (image,)


def _program_class(models: Sequence[ProgramModel], traffic: Traffic, application: str) -> type[ModelledProgram]:
    first = models[0]
    binaries: list[str] = []
    files: dict[str, str] = {}
    for model in models:
        command = model.command or (model.entrypoint[0] if model.entrypoint else f"/app/{model.name}")
        name = command.rpartition("/")[2]
        binaries += [command] if command.startswith("/") else [f"/usr/local/bin/{name}", f"{model.workdir}/{name}"]
        files |= {
            path if path.startswith("/") else f"{model.workdir}/{path}": text for path, text in model.files.items()
        }
        if model.config is not None and model.config.content is not None:
            content = model.config.content
            path = model.config.path
            text = content if isinstance(content, str) else json.dumps(content, indent=2)
            files[path if path.startswith("/") else f"{model.workdir}/{path}"] = text
    entrypoint = tuple(first.entrypoint) or (binaries[0],)
    return type(
        "ApplicationProgram",
        (ModelledProgram,),
        {
            "models": tuple(models),
            "application": application,
            "traffic": traffic,
            "entrypoint": entrypoint,
            "cmd": tuple(first.arguments),
            "base": "scratch" if first.base == "distroless" else first.base,
            "user": first.user,
            "working_dir": first.workdir,
            "env": {**Program.env, **first.env},
            "binaries": tuple(dict.fromkeys(binaries)),
            "files": files,
            "idle_cpu": first.idle_cpu,
            "idle_memory": first.memory,
            "follows_tag": False,
        },
    )
