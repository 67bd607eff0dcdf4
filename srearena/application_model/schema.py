"""The shape of `model.yaml`.

A model says what the programs behind an application's images do: what they read and need when they start, where they
listen, what their operations cost and call, and how they behave when something they call fails. It says nothing about
Kubernetes (the manifests do) and nothing about faults: what goes wrong follows from the state of the cluster.

Texts may hold `${setting}` (a program's settings, known when it starts) and, in log lines and error texts, `{time}`,
`{error}` and the other names that docs/model.md lists.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from srearena.application_model.amounts import Bytes, OpenNumber, OpenSeconds, Seconds, Share

Protocol = Literal["http", "grpc", "thrift", "tcp", "mongo", "redis", "memcached", "postgres", "mysql", "kafka", "amqp"]
Runtime = Literal["go", "java", "node", "python", "cpp", "dotnet", "ruby", "php", "rust", "nginx", "envoy", "lua"]


class Part(BaseModel):
    """Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Setting(Part):
    """Where a value comes from: the first of the sources that has it, else the default."""

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
    """A regular expression with one group: the part of the value that counts."""


class Configuration(Part):
    """A file the program reads at start; the image brings `content`, a mounted file hides it."""

    path: str
    format: Literal["json", "yaml", "env"] = "json"
    content: dict[str, Any] | str | None = None
    missing: str = ""
    """What it says before it exits when the file cannot be read."""


class Trouble(Part):
    """What a program does about a step of its start that failed."""

    log: str | list[str] = ""
    exit: int | None = None
    """End with that status. Without this and `retry` it goes on."""
    retry: Seconds | None = None
    """Try again after that long, forever or `attempts` times."""
    attempts: int = 0


class StartStep(Part):
    """One step of a start; exactly one of the first keys is given."""

    log: str | list[str] | None = None
    take: Seconds | None = None
    """Time at work (class loading, migrations)."""
    need: str | None = None
    """A setting that must have a value."""
    reach: str | None = None
    """A dependency that must accept a connection (and a login, where it has one)."""
    write: str | None = None
    """A directory that must be writable."""
    access: str | None = None
    """A dependency that must allow an action on a target (`action`, `target`)."""
    seed: str | None = None
    """A dependency to put data into: `target` and `rows`."""
    register_in: str | None = Field(default=None, alias="register")
    """A registry (a dependency) to register `name` in, with this pod's address and the first port."""
    listen: bool | None = None
    """Begin to accept connections here rather than at the end."""

    name: str = ""
    beat: Seconds | None = None
    """With `register`: say so again every so often, and leave when told to stop; without it, once and for ever."""
    action: Literal["read", "write", "create"] = "read"
    target: str = ""
    rows: int | list[dict[str, Any]] = 0
    within: OpenSeconds = 10.0
    cpu: float = 0.3
    """Cores used while `take` lasts."""
    otherwise: Trouble = Field(default=Trouble(), alias="else")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = ("log", "take", "need", "reach", "write", "access", "seed", "register_in", "listen")
        given = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"a step of the start is one of {', '.join(kinds)}: this has {given or 'none'}")
        return self


class LoginModel(Part):
    user: str = ""
    password: str = ""
    database: str = ""


class Backoff(Part):
    initial: OpenSeconds = 0.0
    multiplier: OpenNumber = 1.0
    limit: Seconds = 60.0


class Breaker(Part):
    """A circuit breaker: opens when too many calls of an interval fail, lets one through after a while."""

    errors: Share = 0.5
    minimum: float = 5.0
    """Calls per second below which it never opens."""
    open: Seconds = 5.0


class Dependency(Part):
    """Somebody a program calls."""

    address: str = ""
    """`host:port`."""
    discover: str = ""
    """Instead of an address: `<dependency>/<service>`, looked up in a registry."""
    protocol: Protocol = "http"
    login: LoginModel | None = None
    timeout: OpenSeconds | None = None
    connect_timeout: OpenSeconds | None = None
    attempts: OpenNumber = 1
    """How often a failed call is made in all."""
    backoff: Backoff = Backoff()
    retry_on: Literal["any", "unavailable", "timeout"] = "any"
    pool: OpenNumber | None = None
    """Connections it may have open at once."""
    pool_timeout: OpenSeconds | None = None
    breaker: Breaker | None = None
    peer: str = ""
    """The name its client spans give the other side."""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if bool(self.address) == bool(self.discover):
            raise ValueError("a dependency has an address or is discovered: give exactly one of them")
        return self


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


class Condition(Part):
    """Whether something holds for a program: all keys given must."""

    flag: str | None = None
    """A feature flag, asked of the dependency `flags`."""
    setting: str | None = None
    equals: Annotated[list[Any] | None, BeforeValidator(_as_list)] = Field(default=None, alias="is")
    """One of these; without it anything but empty, zero, false, off and no counts as true."""
    below: float | None = None
    above: float | None = None


class Step(Part):
    """Something an operation does: a call, a set of steps at once, a look into a cache, a message sent."""

    call: str | None = None
    """`<dependency> <operation>`; for HTTP the operation is a route (`GET /path`), `same` passes the route on."""
    operation: str = ""
    """For HTTP: the callee's operation by name, where a header of the request chooses it and not the route alone."""
    parallel: list[Step] | None = None
    cache: str | None = None
    """`<dependency> <operation>`: look up `keys` keys of a space of `space`; what is missing costs `miss`."""
    publish: str | None = None
    """`<dependency> <topic>`."""
    when: Condition | None = None
    """The step is there only where this holds; alone with `do` it guards a list."""
    do: list[Step] | None = None
    wait: Seconds | None = None
    """Time in which nothing is done (a sleep in the code)."""

    times: OpenNumber = 1
    at_once: bool = False
    """The `times` calls run in parallel."""
    share: Share = 1.0
    """The share of requests that take this step."""
    target: str = ""
    """Table, collection or key prefix of a store."""
    keys: float = 1
    space: float = 100
    miss: list[Step] = []
    fill: bool = True
    """Misses are written to the cache afterwards."""
    on_error: Literal["fail", "ignore", "crash"] = "fail"
    error: str = ""
    """What the operation then says; `{error}` is what the call said."""
    log: str = ""
    """A log line when it fails."""
    crash_log: list[str] = []
    exit: int = 2
    """With `on_error: crash`: the status the process ends with."""
    span: str | None = None
    """Name of the client's span; empty for none; by default as the protocol has it."""
    payload: Bytes = 512

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = ("call", "parallel", "cache", "publish", "do", "wait")
        given = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"a step is one of {', '.join(kinds)}: this has {given or 'none'}")
        if self.call is not None and len(self.call.split(None, 1)) != 2:
            raise ValueError(f"call {self.call!r} must name a dependency and an operation")
        return self


class Operation(Part):
    """Something a program can be asked to do."""

    route: str | None = None
    """`METHOD /path/{part}`; `ANY /*` takes what no other route takes."""
    header: str = ""
    """A header without which it is not what serves its route: only steps that name the operation come here."""
    span: str | None = None
    """Name of the server's span; empty for none."""
    span_kind: Literal["server", "internal", "consumer", "client"] = "server"
    cpu: OpenSeconds = 0.0005
    """Processor time of its own, on average."""
    latency: OpenSeconds = 0.0
    """Time of its own in which no processor is used."""
    spread: float = 0.5
    """Standard deviation of its own time, as a share of the mean."""
    payload: Bytes = 1024
    memory: Bytes = 32 * 1024
    """Held while the request is in progress."""
    allocates: Bytes = 64 * 1024
    """Garbage made by one request."""
    does: list[Step] = []
    fails: OpenNumber = 0.0
    """Share of requests that fail by themselves."""
    error: str = ""
    """How it says so; `{error}` is what failed inside."""
    status: int = 500
    """The HTTP status of a failure."""
    body: str | None = None
    """What a successful answer holds."""
    failure_body: str = "{error}"
    content_type: str = "application/json"
    log: str = ""
    """A line per request."""
    failure_log: str = ""
    """A line per request that failed."""
    log_share: Share = 1.0
    attributes: dict[str, str] = {}
    """Further attributes of its span."""
    health: bool = False
    """A health check: neither counted nor traced."""


class Effect(Part):
    """How a condition changes operations: the effect of a feature flag, an option, a build."""

    when: Condition
    operation: str = "*"
    fails: float | Literal["value"] | None = None
    """`value`: the flag's own value is the share."""
    error: str = ""
    share: Share = 1.0
    """The share of requests it touches (one product of ten)."""
    cpu: Seconds = 0.0
    latency: Seconds = 0.0
    cpu_factor: float = 1.0
    busy: float = 0.0
    """Cores burnt all the time."""
    leaks: Bytes = 0
    """Memory never given back, per request."""
    leak_factor: Literal["value"] | None = None
    unhealthy: bool = False
    """Health checks fail."""
    log: str = ""
    """A line per request it touches."""


class Listening(Part):
    port: str | int
    protocol: Protocol = "http"
    tls: bool = False


class Consumption(Part):
    """Messages a program takes from a broker and works off with one of its operations."""

    source: str = Field(alias="from")
    """The dependency."""
    topic: str
    group: str = ""
    operation: str
    parallel: OpenNumber = 1
    """How many it works on at once."""


class Task(Part):
    """What a simulated user does, one request after the other."""

    name: str = ""
    weight: float = 1
    when: Condition | None = None
    """A setting of the program; where it does not say so, nobody has this task."""
    requests: list[Step] = []

    @model_validator(mode="after")
    def _asks_a_setting(self) -> Self:
        if self.when is not None and (self.when.setting is None or self.when.flag is not None):
            raise ValueError(f"task {self.name!r}: whether a task is there can depend on a setting only")
        return self


class Driving(Part):
    """The program sends requests by itself: a load generator, a scheduler inside an application."""

    users: OpenNumber | None = None
    """Closed loop: so many users, each waiting `wait` between tasks."""
    wait: tuple[float, float] = (1.0, 1.0)
    rate: OpenNumber | None = None
    """Open loop: so many tasks a second, whatever becomes of them."""
    ramp: OpenNumber | None = None
    """Users added per second at the start."""
    tasks: list[Task] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_loop(self) -> Self:
        if (self.users is None) == (self.rate is None):
            raise ValueError("load is driven by users or at a rate: give exactly one of them")
        return self


class Collection(Part):
    """Garbage collection: how much processor time it takes, and how long it stops everything."""

    percent: OpenNumber = 100
    """As GOGC: how much the heap may grow between collections, in percent."""
    live: Bytes = 20 * 1024**2
    """Heap that survives a collection."""
    speed: Bytes = 800 * 1024**2
    """Live heap it can mark per second of processor time."""
    pause: Share = 0.02
    """The share of that time in which everything stands still."""


class ProgramModel(Part):
    name: str
    """The name by which the rest of the world knows it: `service.name` of its telemetry."""
    images: list[str] = []
    tags: list[str] = ["latest"]
    command: str | None = None
    """The executable that is this program, where an image has several; else the image's only one."""
    entrypoint: list[str] = []
    arguments: list[str] = []
    base: Literal["debian", "alpine", "distroless", "busybox"] = "debian"
    runtime: Runtime = "go"
    user: str = ""
    workdir: str = "/app"
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    time: str = "%Y-%m-%dT%H:%M:%SZ"
    """How `{time}` is written in its log lines."""
    stderr: bool = False
    """It logs to standard error."""
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
    """Requests it works on at once; without it, as many as come."""
    paced: OpenNumber | None = None
    """Requests a second it works off at most, one after the other; the rest waits."""
    queue: OpenNumber | None = None
    """Requests that may wait; beyond it they are turned away."""
    queue_error: str = "too many requests"
    collects: Collection | None = None
    memory: Bytes = 30 * 1024**2
    idle_cpu: float = 0.001
    traced: bool = True
    namespace: str = ""
    """`service.namespace` of its telemetry."""
    reports: dict[str, str] = {}
    """Metrics of its own: name to what is counted; docs/model.md lists the quantities."""

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for where, step in self._all_steps():
            for text in (step.call, step.cache, step.publish):
                if text is not None and text.split(None, 1)[0] not in self.dependencies:
                    raise ValueError(
                        f"{where} names the dependency {text.split(None, 1)[0]!r}, which {self.name} does not have"
                    )
        known = {"*", *self.operations}
        for number, effect in enumerate(self.effects):
            if effect.operation not in known:
                raise ValueError(f"effects[{number}] names the operation {effect.operation!r}, which is not there")
        for consumption in self.consumes:
            if consumption.operation not in self.operations:
                raise ValueError(f"consumes names the operation {consumption.operation!r}, which is not there")
        return self

    def _all_steps(self) -> list[tuple[str, Step]]:
        found: list[tuple[str, Step]] = []

        def add(where: str, steps: list[Step]) -> None:
            for number, step in enumerate(steps):
                here = f"{where}[{number}]"
                found.append((here, step))
                add(f"{here}.parallel", step.parallel or [])
                add(f"{here}.do", step.do or [])
                add(f"{here}.miss", step.miss)

        for name, operation in self.operations.items():
            add(f"operations.{name}.does", operation.does)
        for number, task in enumerate(self.drives.tasks if self.drives is not None else ()):
            add(f"drives.tasks[{number}].requests", task.requests)
        return found


class ApplicationModel(Part):
    application: str
    programs: list[ProgramModel]
