"""The schema of `model.yaml`.

A model describes the programs of an application's images: their startup, ports, operations with costs and calls, and
their behaviour when a dependency fails. It contains nothing about Kubernetes (see the manifests) and nothing about
faults: failures follow from the state of the cluster.

Texts may contain `${setting}` (resolved when the program starts) and, in log lines and error texts, `{time}`, `{error}`
and the other names in docs/model.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from srearena.application_model.amounts import Bytes, OpenNumber, OpenSeconds, Seconds, Share

Protocol = Literal["http", "grpc", "thrift", "tcp", "mongo", "redis", "memcached", "postgres", "mysql", "kafka", "amqp"]
Runtime = Literal["go", "java", "node", "python", "cpp", "dotnet", "ruby", "php", "rust", "nginx", "envoy", "lua"]


class Part(BaseModel):
    """Base of all parts; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Setting(Part):
    """A value of a program: from the first source that has it, else the default."""

    env: str | None = None
    config: str | None = None
    """A key of the program's configuration file, with dots for nesting."""
    argument: str | None = None
    """The value of a command-line flag."""
    file: str | None = None
    """The text of a file."""
    value: str | int | float | None = None
    default: str | int | float | None = None
    match: str | None = None
    """A regular expression with one group: the part of the value that is used."""


class Configuration(Part):
    """A file that the program reads at startup; the image contains `content`, a mounted file replaces it."""

    path: str
    format: Literal["json", "yaml", "env"] = "json"
    content: dict[str, Any] | str | None = None
    missing: str = ""
    """The message with which it exits when the file cannot be read."""


class Trouble(Part):
    """The reaction of a program to a failed startup step."""

    log: str | list[str] = ""
    exit: int | None = None
    """Exit with that status. Without this and `retry` it continues."""
    retry: Seconds | None = None
    """Retry after that long, for ever or `attempts` times."""
    attempts: int = 0


class StartStep(Part):
    """One step of the startup; it has exactly one of the first keys."""

    log: str | list[str] | None = None
    take: Seconds | None = None
    """Processing time (class loading, migrations)."""
    need: str | None = None
    """A setting that must have a value."""
    reach: str | None = None
    """A dependency that must accept a connection (and a login, where it has one)."""
    write: str | None = None
    """A directory that must be writable."""
    access: str | None = None
    """A dependency that must allow an action on a target (`action`, `target`)."""
    seed: str | None = None
    """A dependency to insert data into: `target` and `rows`."""
    register_in: str | None = Field(default=None, alias="register")
    """A service registry (a dependency) in which `name` is registered, with the pod's address and the first port."""
    listen: bool | None = None
    """Accept connections from here on rather than after the last step."""

    name: str = ""
    beat: Seconds | None = None
    """With `register`: renew the registration at this interval and remove it at shutdown; else register once."""
    stays: bool = False
    """With `beat`: do not remove the registration at shutdown."""
    action: Literal["read", "write", "create"] = "read"
    target: str = ""
    rows: int | str | list[dict[str, Any]] = 0
    """With `seed`: records, their number, or the name of a data set beside the application."""
    within: OpenSeconds = 10.0
    cpu: float = 0.3
    """Cores used while `take` lasts."""
    otherwise: Trouble = Field(default=Trouble(), alias="else")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = ("log", "take", "need", "reach", "write", "access", "seed", "register_in", "listen")
        present = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(present) != 1:
            raise ValueError(f"a step of the start is one of {', '.join(kinds)}: this has {present or 'none'}")
        return self


class LoginModel(Part):
    """Credentials for a dependency."""

    user: str = ""
    password: str = ""
    database: str = ""


class Backoff(Part):
    """The pause between attempts of a call."""

    initial: OpenSeconds = 0.0
    multiplier: OpenNumber = 1.0
    limit: Seconds = 60.0


class Breaker(Part):
    """A circuit breaker: opens when too many calls of an interval fail, and admits a trial call after `open`."""

    errors: Share = 0.5
    minimum: float = 5.0
    """Calls per second below which it never opens."""
    open: Seconds = 5.0


class Pings(Part):
    """Pings of an idle gRPC connection, which a server with the default settings closes after the fourth.

    The client connects again, and from then on pings half as often.
    """

    every: Seconds
    closed: str = ""
    """What the client logs when its connection is closed; `{date}` is the moment as Go's log package writes it."""


class Dependency(Part):
    """A dependency of a program: a service or store that it calls."""

    address: str = ""
    """`host:port`."""
    discover: str = ""
    """Instead of an address: `<dependency>/<service>`, looked up in a registry."""
    protocol: Protocol = "http"
    login: LoginModel | None = None
    timeout: OpenSeconds | None = None
    connect_timeout: OpenSeconds | None = None
    attempts: OpenNumber = 1
    """The number of attempts of a call, the first included."""
    backoff: Backoff = Backoff()
    retry_on: Literal["any", "unavailable", "timeout"] = "any"
    pool: OpenNumber | None = None
    """The size of the connection pool."""
    pool_timeout: OpenSeconds | None = None
    breaker: Breaker | None = None
    pings: Pings | None = None
    peer: str = ""
    """The `peer.service` of its client spans."""

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if bool(self.address) == bool(self.discover):
            raise ValueError("a dependency has an address or is discovered: give exactly one of them")
        return self


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


class Condition(Part):
    """A condition on a program; all keys must hold."""

    flag: str | None = None
    """A feature flag, read from the dependency `flags`."""
    setting: str | None = None
    equals: Annotated[list[Any] | None, BeforeValidator(_as_list)] = Field(default=None, alias="is")
    """One of these values; without it, every value except empty, zero, false, off and no is true."""
    below: float | None = None
    above: float | None = None


class Step(Part):
    """A step of an operation: a call, parallel steps, a cache lookup, a published message."""

    call: str | None = None
    """`<dependency> <operation>`; for HTTP the operation is a route (`GET /path`), `same` passes the route on."""
    operation: str = ""
    """For HTTP: the callee's operation by name, where a header of the request selects it and not only the route."""
    parallel: list[Step] | None = None
    cache: str | None = None
    """`<dependency> <operation>`: look up `keys` keys out of `space`; a miss runs the steps `miss`."""
    publish: str | None = None
    """`<dependency> <topic>`."""
    when: Condition | None = None
    """The step runs only where this holds; with `do` it guards a list of steps."""
    do: list[Step] | None = None
    wait: Seconds | None = None
    """Idle time (a sleep in the code)."""

    times: OpenNumber = 1
    at_once: bool = False
    """The `times` calls run in parallel."""
    share: Share = 1.0
    """The share of requests that run this step."""
    target: str = ""
    """Table, collection or key prefix of a store."""
    statement: str = ""
    """For a store: the text of the statement, as its process list and logs show it; by default one is derived."""
    cpu: Seconds | None = None
    """For a store: the CPU time of the statement there, and its other time; by default those of the protocol's verb."""
    latency: Seconds | None = None
    keys: float = 1
    space: float = 100
    miss: list[Step] = []
    fill: bool = True
    """Write misses to the cache."""
    on_error: Literal["fail", "ignore", "crash"] = "fail"
    error: str = ""
    """The operation's error message; `{error}` is the error of the call."""
    log: str = ""
    """A log line when it fails."""
    crash_log: list[str] = []
    exit: int = 2
    """With `on_error: crash`: the exit status of the process."""
    span: str | None = None
    """The name of the client's span; empty for none; by default that of the protocol."""
    payload: Bytes = 512

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = ("call", "parallel", "cache", "publish", "do", "wait")
        present = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(present) != 1:
            raise ValueError(f"a step is one of {', '.join(kinds)}: this has {present or 'none'}")
        if self.call is not None and len(self.call.split(None, 1)) != 2:
            raise ValueError(f"call {self.call!r} must name a dependency and an operation")
        return self


_USUAL_RESPONSE = 1024


class Operation(Part):
    """An operation that a program offers."""

    route: str | None = None
    """`METHOD /path/{part}`; `ANY /*` matches what no other route matches."""
    header: str = ""
    """A header that a request to this route must have; only steps that name the operation match."""
    span: str | None = None
    """Name of the server's span; empty for none."""
    span_kind: Literal["server", "internal", "consumer", "client"] = "server"
    cpu: OpenSeconds = 0.0005
    """Mean CPU time of its own."""
    latency: OpenSeconds = 0.0
    """Time of its own without CPU use."""
    spread: float = 0.5
    """Standard deviation of its own time, as a share of the mean."""
    payload: Bytes | None = None
    """Mean size of a response; by default that of its body, or 1 KiB without one."""
    memory: Bytes = 32 * 1024
    """Memory in use while the request is in progress."""
    allocates: Bytes = 64 * 1024
    """Memory allocated by one request, for garbage collection."""
    does: list[Step] = []
    fails: OpenNumber = 0.0
    """The share of requests that fail without an external cause."""
    error: str = ""
    """The error message; `{error}` is the error of the failed step."""
    status: int = 500
    """The HTTP status of a failure."""
    body: str | None = None
    """The body of a successful response."""
    failure_body: str = "{error}"
    content_type: str = "application/json"
    log: str = ""
    """A log line per request."""
    failure_log: str = ""
    """A log line per failed request."""
    log_share: Share = 1.0
    attributes: dict[str, str] = {}
    """Further attributes of its span."""
    health: bool = False
    """A health check: neither counted nor traced."""

    @property
    def response_bytes(self) -> int:
        if self.payload is not None:
            return self.payload
        return _USUAL_RESPONSE if self.body is None else len(self.body.encode())


class Effect(Part):
    """A conditional change of operations: the effect of a feature flag, an option, a build."""

    when: Condition
    operation: str = "*"
    fails: float | Literal["value"] | None = None
    """The share of requests that fail; `value` for the flag's value."""
    error: str = ""
    share: Share = 1.0
    """The share of requests that are affected (one product of ten)."""
    cpu: Seconds = 0.0
    latency: Seconds = 0.0
    cpu_factor: float = 1.0
    busy: float = 0.0
    """Cores that are used continuously."""
    leaks: Bytes = 0
    """Memory leaked per request."""
    leak_factor: Literal["value"] | None = None
    unhealthy: bool = False
    """Health checks fail."""
    log: str = ""
    """A log line per affected request."""


class Listening(Part):
    """A port that a program listens on."""

    port: str | int
    protocol: Protocol = "http"
    tls: bool = False


class Consumption(Part):
    """Messages that a program consumes from a broker and processes with one of its operations."""

    source: str = Field(alias="from")
    """The dependency."""
    topic: str
    group: str = ""
    operation: str
    parallel: OpenNumber = 1
    """The number of messages processed concurrently."""


class Task(Part):
    """A task of a simulated user: requests in sequence."""

    name: str = ""
    weight: float = 1
    when: Condition | None = None
    """A condition on a setting of the program; where it does not hold, the task does not exist."""
    requests: list[Step] = []

    @model_validator(mode="after")
    def _depends_on_setting_only(self) -> Self:
        if self.when is not None and (self.when.setting is None or self.when.flag is not None):
            raise ValueError(f"task {self.name!r}: whether a task is there can depend on a setting only")
        return self


class Driving(Part):
    """Requests that a program sends by itself: a load generator, a scheduler inside an application."""

    users: OpenNumber | None = None
    """Closed loop: the number of users, each pausing `wait` between tasks."""
    wait: tuple[float, float] = (1.0, 1.0)
    rate: OpenNumber | None = None
    """Open loop: tasks per second, independent of their completion."""
    ramp: OpenNumber | None = None
    """Users added per second at the start."""
    tasks: list[Task] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_loop(self) -> Self:
        if (self.users is None) == (self.rate is None):
            raise ValueError("load is driven by users or at a rate: give exactly one of them")
        return self


class Collection(Part):
    """Garbage collection: its CPU time and pauses."""

    percent: OpenNumber = 100
    """The growth of the heap between collections in percent, as GOGC."""
    live: Bytes = 20 * 1024**2
    """Heap that survives a collection."""
    speed: Bytes = 800 * 1024**2
    """Live heap marked per second of CPU time."""
    pause: Share = 0.02
    """The share of that time in which the program is stopped."""


class ProgramModel(Part):
    """A program of the application."""

    name: str
    """The `service.name` of its telemetry."""
    images: list[str] = []
    tags: list[str] = ["latest"]
    command: str | None = None
    """The executable of this program, where an image has several."""
    entrypoint: list[str] = []
    arguments: list[str] = []
    base: Literal["debian", "alpine", "distroless", "busybox"] = "debian"
    runtime: Runtime = "go"
    user: str = ""
    workdir: str = "/app"
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    time: str = "%Y-%m-%dT%H:%M:%SZ"
    """The format of `{time}` in its log lines."""
    stderr: bool = False
    """Log to standard error."""
    config: Configuration | None = None
    settings: dict[str, Setting] = {}
    start: list[StartStep] = []
    stop_log: str | list[str] = ""
    listen: list[Listening] = []
    bind_error: Trouble = Trouble(log="listen tcp :{port}: bind: address already in use", exit=1)
    dependencies: dict[str, Dependency] = {}
    operations: dict[str, Operation] = {}
    effects: list[Effect] = []
    consumes: list[Consumption] = []
    drives: Driving | None = None
    threads: OpenNumber | None = None
    """The number of requests processed concurrently; unlimited without it."""
    paced: OpenNumber | None = None
    """The maximum number of requests per second, processed one at a time; others wait."""
    queue: OpenNumber | None = None
    """The length of the queue; further requests are rejected."""
    queue_error: str = "too many requests"
    collects: Collection | None = None
    memory: Bytes = 30 * 1024**2
    idle_cpu: float = 0.001
    traced: bool = True
    namespace: str = ""
    """`service.namespace` of its telemetry."""

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for where, step in self._all_steps():
            for text in (step.call, step.cache, step.publish):
                if text is not None and text.split(None, 1)[0] not in self.dependencies:
                    raise ValueError(
                        f"{where} names the dependency {text.split(None, 1)[0]!r}, which {self.name} does not have"
                    )
        operations = {"*", *self.operations}
        for number, effect in enumerate(self.effects):
            if effect.operation not in operations:
                raise ValueError(f"effects[{number}] names the operation {effect.operation!r}, which is not there")
        for consumption in self.consumes:
            if consumption.operation not in self.operations:
                raise ValueError(f"consumes names the operation {consumption.operation!r}, which is not there")
        return self

    def _all_steps(self) -> list[tuple[str, Step]]:
        all_steps: list[tuple[str, Step]] = []

        def add(where: str, steps: list[Step]) -> None:
            for number, step in enumerate(steps):
                path = f"{where}[{number}]"
                all_steps.append((path, step))
                add(f"{path}.parallel", step.parallel or [])
                add(f"{path}.do", step.do or [])
                add(f"{path}.miss", step.miss)

        for name, operation in self.operations.items():
            add(f"operations.{name}.does", operation.does)
        for number, task in enumerate(self.drives.tasks if self.drives is not None else ()):
            add(f"drives.tasks[{number}].requests", task.requests)
        return all_steps


class ApplicationModel(Part):
    """The content of a `model.yaml`."""

    application: str
    programs: list[ProgramModel]
