"""Starting embedded clusters: the one place outside the simulator that knows it.

    from srearena.cluster import start_embedded

    with start_embedded(nodes=3, seed=7) as cluster:
        print(cluster.kubeconfig)
        cluster.wait(60)

By default the cluster gets a process of its own; `in_process=True` keeps it in a thread of the caller's.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
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
    Hurry,
    NodeAccess,
    NodeAccessError,
    TelemetryEndpoints,
)
from srearena.cluster.embedded.control import ControlError, ControlLine
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.hurrying import hurry_by

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
    name: str = "embedded",
    directory: Path | None = None,
    in_process: bool = False,
) -> Cluster:
    """A settled cluster with `nodes` workers beside its control plane.

    `behind` hands it over that many seconds in the past, with time standing still: deploy, wait, break something, then
    `catch_up`, and whoever looks then finds a history that ends now.
    `models` are folders of applications (`Application.folder`): what their images do is in a `model.yaml` there.
    `directory` is where its private files go (a temporary one by default). `secret` fixes keys and tokens, for runs
    that must repeat to the byte; leave it out everywhere else.
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
    )
    for folder in options.models:
        load_model(Path(folder))
    if in_process:
        from srearena.cluster.in_process import InProcessCluster

        return InProcessCluster(name, options, directory)
    return ChildCluster(name, options, directory)


def checked_options(**choices: Any) -> ClusterOptions:
    """Options for a cluster; ClusterError says what is wrong with them."""
    options = ClusterOptions(**choices)
    problems = options.problems()
    if problems:
        raise ClusterError("; ".join(problems))
    return options


class ChildCluster(Cluster):
    """An embedded cluster in a process of its own, which ends with this one, unless it is let go."""

    def __init__(
        self, name: str, options: ClusterOptions, directory: Path | None = None, *, detached: bool = False
    ) -> None:
        self._name = name
        self._own_directory = directory is None
        self._directory = directory or Path(tempfile.mkdtemp(prefix="srearena-"))
        self._process = launch(options, self._directory, detached=detached)
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
        _asked(self._control, "advance", seconds=seconds)

    @contextlib.contextmanager
    def hurrying(self, limit: float) -> Iterator[Hurry]:
        with hurry_by(lambda request: _asked(self._control, **request), limit) as hurry:
            yield hurry

    def catch_up(self) -> None:
        _asked(self._control, "catch-up")

    def pace(self, speed: float) -> None:
        _asked(self._control, "speed", value=speed)

    def wait_for_end(self) -> None:
        """Until the process of the cluster ends; ClusterError where it did not end well."""
        status = self._process.wait()
        if status:
            raise ClusterError(f"cluster {self._name!r} ended with status {status}")

    def let_go(self) -> None:
        """Leave a detached cluster to itself: it goes on when this process ends."""
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
        if self._own_directory:
            shutil.rmtree(self._directory, ignore_errors=True)


class _ControlledNodes(NodeAccess):
    def __init__(self, control: ControlLine) -> None:
        self._control = control

    def operations(self) -> tuple[str, ...]:
        return tuple(_asked(self._control, "node-operations"))

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        try:
            self._control.ask("node", name=node, do=operation, arguments=arguments)
        except ControlError as problem:
            raise NodeAccessError(str(problem)) from problem


def _asked(control: ControlLine, operation: str, **arguments: Any) -> Any:
    try:
        return control.ask(operation, **arguments)
    except ControlError as problem:
        raise ClusterUnavailable(str(problem)) from problem


def launch(options: ClusterOptions, directory: Path, *, detached: bool = False) -> subprocess.Popen[bytes]:
    """Start the process that serves a cluster; its options go over standard input, since they hold a secret."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "srearena.cluster.embedded", *(["--detached"] if detached else [])],
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
    """The URL of the API once it answers; ClusterUnavailable with what the process said if it never will."""
    assert process.stdout is not None
    with _alarm(process):
        line = process.stdout.readline()
    try:
        answer = json.loads(line)
    except ValueError:
        answer = {"error": f"its process ended with status {process.wait()} before the API answered"}
    if "error" in answer:
        raise ClusterUnavailable(f"the embedded cluster did not start: {answer['error']}")
    return str(answer["url"])


@contextlib.contextmanager
def _alarm(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a process that does not get ready in time, so that reading from it ends."""
    timer = threading.Timer(_START_TIMEOUT, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def advance(directory: Path, seconds: float) -> None:
    """Let time pass in a cluster whose files are in `directory`, whoever started it."""
    _asked(ControlLine(directory / "control"), "advance", seconds=seconds)


def telemetry_of(directory: Path) -> TelemetryEndpoints:
    """Where the telemetry of a cluster is read whose files are in `directory`, whoever started it."""
    return TelemetryEndpoints(**_asked(ControlLine(directory / "control"), "telemetry"))


def stop(pid: int) -> None:
    """Ask the process of a detached cluster to end."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
