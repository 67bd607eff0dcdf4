"""Servers of requests: running programs with a model, and datastores. Both are a process that works at some speed.

A server exists as long as its process. State that lasts from one interval to the next (queued requests, leaked
memory, discovered addresses) is kept here, so that the arrays of a fluid model can be rebuilt at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import dig, labels_of, name_of, namespace_of, uid_of
from srearena.cluster.embedded.traffic.settings import Settings
from srearena.cluster.embedded.traffic.spans import Resource

if TYPE_CHECKING:
    from srearena.application_model.schema import ProgramModel
    from srearena.cluster.embedded.network.hosts import Host

_SINGLE_THREADED = frozenset(("node", "python", "ruby", "lua"))
"""Runtimes that use one processor, however many there are: an interpreter lock or an event loop."""
_LANGUAGES = {"cpp": "cpp", "node": "nodejs", "dotnet": "dotnet"}


class ServerKey(NamedTuple):
    """Identity of a server: one process of one container of one pod, the same in every replay of a world."""

    pod_uid: str
    container: str
    container_id: str
    """Differs between restarts of a container."""
    pid: int


class Server:
    """A process with queues of requests."""

    __slots__ = (
        "busy",
        "container",
        "host",
        "index",
        "key",
        "leaked_bytes",
        "meter",
        "name",
        "namespace",
        "node",
        "pod",
        "process",
        "resource",
    )

    def __init__(self, process: Process, host: Host, name: str) -> None:
        self.process = process
        self.container = process.container
        self.meter = process.container.meter
        pod = process.container.host.pod
        self.key = ServerKey(uid_of(pod), process.container.config.name, process.container.id, process.pid)
        self.pod = name_of(pod)
        self.namespace = namespace_of(pod)
        self.node = process.container.host.node_name
        self.host = host
        self.name = name
        self.index = -1
        self.leaked_bytes = 0.0
        self.busy = 0.0
        self.resource = self._resource(pod)

    @property
    def alive(self) -> bool:
        return not self.process.done.is_set

    @property
    def stopped(self) -> bool:
        """Whether the process is stopped (SIGSTOP, a frozen node)."""
        return self.process.stopped

    @property
    def single_threaded(self) -> bool:
        return False

    @property
    def runtime(self) -> str:
        return ""

    def _resource(self, pod: Any) -> Resource:
        labels = labels_of(pod)
        owners = dig(pod, "metadata", "ownerReferences", default=[]) or []
        deployment = next((str(o["name"]).rpartition("-")[0] for o in owners if o.get("kind") == "ReplicaSet"), "")
        attributes: list[tuple[str, str]] = [
            ("k8s.namespace.name", self.namespace),
            ("k8s.pod.name", self.pod),
            ("k8s.pod.uid", uid_of(pod)),
            ("k8s.pod.ip", self.host.address),
            ("k8s.node.name", self.node),
            ("k8s.container.name", self.container.config.name),
        ]
        if deployment:
            attributes.append(("k8s.deployment.name", deployment))
        if "app.kubernetes.io/version" in labels:
            attributes.append(("service.version", str(labels["app.kubernetes.io/version"])))
        if self.runtime:
            attributes.append(("service.instance.id", uid_of(pod)))
            attributes.append(("telemetry.sdk.name", "opentelemetry"))
            attributes.append(("telemetry.sdk.language", _LANGUAGES.get(self.runtime, self.runtime)))
        return Resource(self.name, tuple(attributes), self.host.sockets.carried)


_THREADS = {"go": 9, "java": 46, "node": 11, "python": 7, "cpp": 12, "dotnet": 23, "ruby": 9, "rust": 8, "envoy": 8}
"""Threads of a process by its runtime; those that serve requests are more under load. Chosen."""


class Store(Server):
    """A datastore behind a listening socket; `model` decides what it allows."""

    __slots__ = ("_losses", "long_work", "model", "protocol", "warm_shares")

    def __init__(self, process: Process, host: Host, model: object, protocol: str) -> None:
        super().__init__(process, host, process.container.config.name)
        self.model = model
        self.protocol = protocol
        self.warm_shares: dict[str, float] = {}
        """As a cache: per key space, the share of keys that it holds."""
        self.long_work: dict[str, float] = {}
        """Per long statement, the cores that it uses."""
        self._losses = int(getattr(model, "losses", 0))

    def forget_losses(self) -> None:
        """A cache that was emptied (FLUSHALL, flush_all) is cold again."""
        losses = int(getattr(self.model, "losses", 0))
        if losses != self._losses:
            self._losses = losses
            self.warm_shares.clear()


class Instance(Server):
    """A running program of an application."""

    __slots__ = (
        "allocated",
        "application",
        "collection_seconds",
        "collections",
        "crashed",
        "discovered_addresses",
        "in_flight",
        "loaded",
        "program",
        "ready",
        "served",
        "settings",
        "unsent",
    )

    def __init__(
        self, process: Process, host: Host, program: ProgramModel, settings: Settings, application: str = ""
    ) -> None:
        self.program = program
        self.application = application
        """The application whose model describes the program."""
        super().__init__(process, host, program.name)
        process.thread_count = _THREADS.get(program.runtime, 1)
        self.settings = settings
        self.ready = False
        """Whether it has started and serves."""
        self.discovered_addresses: dict[str, list[tuple[str, int]]] = {}
        """Addresses of discovered services, kept while the registry cannot be reached."""
        self.crashed = False
        self.in_flight = 0.0
        """Requests in progress in the last interval."""
        self.served = 0.0
        """Requests served since it started."""
        self.allocated = 0.0
        """Bytes allocated since it started."""
        self.collections = 0.0
        """Garbage collections since it started, and the processor seconds they took."""
        self.collection_seconds = 0.0
        self.loaded: dict[str, list[dict[str, Any]]] = {}
        """Per collection, the documents that were there when the program started; some serve from memory alone."""
        self.unsent: dict[str, float] = {}
        """Per publish operation, the fraction of a message left over from the last interval."""

    @property
    def single_threaded(self) -> bool:
        return self.program.runtime in _SINGLE_THREADED

    @property
    def runtime(self) -> str:
        return self.program.runtime

    def fill(self, text: str, **words: object) -> str:
        """Fill settings, words, the pod's name and the time, as the program formats it, into a line or message."""
        filled = self.settings.fill(text)
        if "{" not in filled:
            return filled
        for name, value in words.items():
            filled = filled.replace(f"{{{name}}}", str(value))
        if "{time}" in filled:
            filled = filled.replace("{time}", self.timestamp())
        return filled.replace("{pod}", self.pod)

    def timestamp(self) -> str:
        from srearena.cluster.embedded.programs.timestamps import stamp

        return stamp(self.process, self.program.time)

    def write_log(self, text: str, **words: object) -> None:
        """Write a line, or several, to the container's log."""
        if text and self.alive:
            stream = "stderr" if self.program.stderr else "stdout"
            self.container.log.write(stream, self.fill(text, **words).encode(errors="replace") + b"\n")
