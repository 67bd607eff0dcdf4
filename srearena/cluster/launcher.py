"""Starting embedded clusters: the factory, the only module that imports the simulator from outside.

    from srearena.cluster import start_embedded

    with start_embedded(nodes=3, seed=7) as cluster:
        print(cluster.kubeconfig)
        cluster.wait(60)

By default the cluster runs in a process of its own; with `in_process=True` it runs in a thread of the caller's.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from srearena.application_model import load_model
from srearena.cluster.base import (
    Cluster,
    ClusterError,
    ClusterUnavailable,
    FastForward,
    NodeAccess,
    NodeAccessError,
    TelemetryEndpoints,
    VirtualClock,
)
from srearena.cluster.embedded.control import ControlError, ControlLine
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.fast_forward import fast_forwarding
from srearena.interpreters import python_module
from srearena.temporary import make_folder

_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 10.0


def start_embedded(
    *,
    nodes: int = 3,
    seed: int = 0,
    speed: float = 1.0,
    port: int = 0,
    start: float | None = None,
    behind: float = 0.0,
    secret: str | None = None,
    models: Sequence[Path | str] = (),
    prometheus: int = 3,
    addons: bool = True,
    name: str = "embedded",
    directory: Path | None = None,
    in_process: bool = False,
) -> Cluster:
    """Start a cluster with `nodes` workers beside its control plane; returns when its own components are up.

    `behind` starts it that many seconds in the past with a stopped clock: deploy, wait, inject a fault, then
    `catch_up`; telemetry then has a history that ends now.
    `prometheus` is the major version of Prometheus (2 or 3) that queries are evaluated as.
    Without `addons` the cluster has no pods of a CNI plugin, a volume provisioner and node-exporter.
    `models` are folders of applications (`Application.folder`) whose `model.yaml` describes what their images do.
    `directory` is where its private files go (a temporary one by default). `secret` fixes keys and tokens, for runs
    that must be reproducible to the byte; leave it out otherwise.
    """
    options = checked_options(
        workers=nodes,
        seed=seed,
        speed=speed,
        port=port,
        start=start,
        behind=behind,
        secret=secret or token_hex(16),
        models=tuple(str(Path(folder).resolve()) for folder in models),
        prometheus=prometheus,
        addons=addons,
    )
    for folder in options.models:
        load_model(Path(folder))
    if in_process:
        from srearena.cluster.in_process import InProcessCluster

        return InProcessCluster(name, options, directory)
    return ChildCluster(name, options, directory)


def checked_options(**values: Any) -> ClusterOptions:
    """Validate the options of a cluster; ClusterError lists what is wrong."""
    options = ClusterOptions(**values)
    problems = options.problems()
    if problems:
        raise ClusterError("; ".join(problems))
    return options


class ChildCluster(Cluster):
    """An embedded cluster in a child process, which ends with this process unless `detach` is called."""

    def __init__(self, name: str, options: ClusterOptions, directory: Path | None = None) -> None:
        self._name = name
        self._is_temporary = directory is None
        self._directory = directory or make_folder("srearena")
        self._process = launch(options, self._directory)
        atexit.register(self.close)
        try:
            self.url = wait_until_ready(self._process)
        except BaseException:
            self.close()
            raise
        self._control = ControlLine(self._directory / "control")

    @property
    def name(self) -> str:
        return self._name

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def kubeconfig(self) -> Path:
        return self._directory / "kubeconfig"

    @property
    def nodes(self) -> NodeAccess:
        return _ControlledNodes(self._control)

    @property
    def telemetry(self) -> TelemetryEndpoints:
        return telemetry_of(self._directory)

    def wait(self, seconds: float) -> None:
        _request(self._control, "advance", seconds=seconds)

    @contextlib.contextmanager
    def fast_forward(self, limit: float) -> Iterator[FastForward]:
        with fast_forwarding(lambda request: _request(self._control, **request), limit) as skip:
            yield skip

    def catch_up(self) -> None:
        _request(self._control, "catch-up")

    def set_speed(self, speed: float, until: float | None = None) -> None:
        _request(self._control, "speed", value=speed, **({} if until is None else {"until": until}))

    def virtual_clock(self) -> VirtualClock:
        state = _request(self._control, "status")
        return VirtualClock(float(state["made_for"]), float(state["now"]))

    def close_agent_connections(self) -> None:
        _request(self._control, "end-accounts")

    def internal_errors(self) -> list[str]:
        return list(_request(self._control, "internal-errors"))

    def wait_for_end(self) -> None:
        """Block until the process of the cluster ends; ClusterError where it failed."""
        status = self._process.wait()
        if status:
            raise ClusterError(f"cluster {self._name!r} ended with status {status}")

    def detach(self) -> None:
        """Keep the cluster running when this process ends."""
        detach(self._directory)
        atexit.unregister(self.close)

    def close(self) -> None:
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)


class _ControlledNodes(NodeAccess):
    def __init__(self, control: ControlLine) -> None:
        self._control = control

    def operations(self) -> tuple[str, ...]:
        return tuple(_request(self._control, "node-operations"))

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        try:
            self._control.ask("node", name=node, do=operation, arguments=arguments)
        except ControlError as problem:
            raise NodeAccessError(str(problem)) from problem


def _request(control: ControlLine, operation: str, **arguments: Any) -> Any:
    try:
        return control.ask(operation, **arguments)
    except ControlError as problem:
        raise ClusterUnavailable(str(problem)) from problem


def launch(options: ClusterOptions, directory: Path) -> subprocess.Popen[bytes]:
    """Start the process that serves a cluster. Options are passed on standard input, since they hold a secret.

    It ends with this process, however that ends, until `detach` is called.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            python_module("srearena.cluster.embedded"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    assert process.stdin is not None
    request = {"directory": str(directory), "options": options.as_dict()}
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
    return process


def wait_until_ready(process: subprocess.Popen[bytes]) -> str:
    """Wait for the API and return its URL; ClusterUnavailable with the process's error where it does not start."""
    assert process.stdout is not None
    with _start_timeout(process):
        line = process.stdout.readline()
    try:
        reply = json.loads(line)
    except ValueError:
        reply = {"error": f"its process ended with status {process.wait()} before the API answered"}
    if "error" in reply:
        raise ClusterUnavailable(f"the embedded cluster did not start: {reply['error']}")
    return str(reply["url"])


@contextlib.contextmanager
def _start_timeout(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a process that does not become ready in time, so that reading from it ends."""
    timer = threading.Timer(_START_TIMEOUT, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def detach(directory: Path) -> None:
    """Keep the cluster whose files are in `directory` running when the process that started it ends."""
    _request(ControlLine(directory / "control"), "detach")


def advance(directory: Path, seconds: float) -> None:
    """Advance the clock of the cluster whose files are in `directory`, whichever process started it."""
    _request(ControlLine(directory / "control"), "advance", seconds=seconds)


def clock_of(directory: Path) -> dict[str, float]:
    """The instant (`now`) and the `speed` of the clock of the cluster whose files are in `directory`."""
    state = _request(ControlLine(directory / "control"), "status")
    return {"now": float(state["now"]), "speed": float(state["speed"])}


def set_speed(directory: Path, speed: float) -> None:
    """Set the speed of the clock of the cluster whose files are in `directory`; 0 stops it."""
    _request(ControlLine(directory / "control"), "speed", value=speed)


def telemetry_of(directory: Path) -> TelemetryEndpoints:
    """The telemetry endpoints of the cluster whose files are in `directory`, whichever process started it."""
    return TelemetryEndpoints(**_request(ControlLine(directory / "control"), "telemetry"))


def stop(pid: int) -> None:
    """Terminate the process of a detached cluster."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
