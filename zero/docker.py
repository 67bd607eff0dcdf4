"""The agent's sandbox in a Docker container, for machines without bubblewrap.

The container has no network: like in the bubblewrap sandbox, connections go through the sockets of `zero.relay`. The
image is only the base: the host's programs are mounted over it, read-only. Evidence is a copy without answer keys in
the workspace, since mounts of a container cannot exclude a file. Variables are passed by name, so that no secret is on
a command line. One socket has no target: its connection breaks when Zero is killed, and the container exits.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from srearena.bubblewrap import SYSTEM_DIRECTORIES, SYSTEM_FILES
from zero import gateway
from zero.relay import SOCKET_DIRECTORY, Relay
from zero.sandbox import exposed_paths, hidden_paths

IMAGE = "debian:stable-slim"
IMAGE_VARIABLE = "ZERO_DOCKER_IMAGE"
_TIMEOUT = 20.0  # seconds for one docker command
_MANAGED = frozenset({"/etc/hosts"})  # provided by Docker
_CLIENT_VARIABLES = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")


def image() -> str:
    return os.environ.get(IMAGE_VARIABLE) or IMAGE


def unavailable_reason() -> str | None:
    """Why containers cannot be used on this machine; None if they can."""
    if shutil.which("docker") is None:
        return "Docker is not installed"
    try:
        version = _docker("version", "--format", "{{.Server.Version}}")
        if version.returncode != 0:
            error = (version.stderr.strip().splitlines() or ["no error message"])[-1]
            return f"Docker does not work on this machine: {error}"
        if _docker("image", "inspect", "--format", "{{.Id}}", image()).returncode != 0:
            return f"the Docker image {image()} is not on this machine: docker pull {image()}"
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"Docker does not work on this machine: {problem}"
    return None


def _docker(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *words], capture_output=True, text=True, timeout=_TIMEOUT, check=False)


def _mount(kind: str, target: str | Path, source: str | Path | None = None, *, writable: bool = False) -> list[str]:
    """A `--mount` option; its value is CSV, since paths may contain commas and quotes."""
    fields = [f"type={kind}", *([f"source={source}"] if source else []), f"destination={target}"]
    if kind == "bind" and not writable:
        fields.append("readonly")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return ["--mount", line.getvalue()]


@dataclass(frozen=True, slots=True)
class Container:
    """The container of one attempt."""

    workspace: Path
    exposed: Sequence[Path]
    read_only: Sequence[Path]
    hidden: Sequence[Path]
    relay: Relay
    seconds: float | None = None  # remaining time of the run
    terminal: bool = False
    name: str = field(default_factory=lambda: f"zero-{secrets.token_hex(8)}")

    def _mounts(self) -> Iterator[list[str]]:
        for place in ("/tmp", "/run", "/var/tmp"):
            yield _mount("tmpfs", place)
        for place in SYSTEM_DIRECTORIES:
            if Path(place).is_dir() and not Path(place).is_symlink():
                yield _mount("bind", place, place)
        for place in SYSTEM_FILES:
            if Path(place).exists() and place not in _MANAGED:
                yield _mount("bind", place, Path(place).resolve())
        exposed = exposed_paths(self.exposed)
        for path in exposed:
            if not path.is_relative_to("/usr"):
                yield _mount("bind", path, path)
        for path in hidden_paths(exposed):
            yield _mount("tmpfs", path)
        yield _mount("bind", self.workspace, self.workspace, writable=True)
        for path in self.read_only:
            if path.exists():
                yield _mount("bind", path, path)
        for path in self.hidden:
            if path.exists():
                yield _mount("tmpfs", path)
        yield _mount("bind", SOCKET_DIRECTORY, self.relay.directory)

    def command(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The command line that runs a command in the container, as a child of the gateway."""
        base = ["docker", "run", "--rm", "--interactive", "--pull", "never", "--name", self.name, "--hostname", "zero"]
        base += ["--network", "none", "--sysctl", "net.ipv4.ip_unprivileged_port_start=0"]
        base += ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "2048"]
        base += ["--user", f"{os.getuid()}:{os.getgid()}", "--workdir", str(self.workspace)]
        base += ["--tty"] if self.terminal else []
        mounts = [word for words in self._mounts() for word in words]
        names = [word for name in sorted(environment) for word in ("--env", name)]
        limit = [] if self.seconds is None else ["timeout", "--kill-after=5", str(math.ceil(max(1.0, self.seconds)))]
        inside = [*limit, *gateway.wrap([self.relay.lifeline, *self.relay.forwards], command)]
        return [*base, *mounts, *names, image(), *inside]

    def client(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of the docker client, which passes variables to the container by name."""
        home = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
        docker_variables = {name: os.environ[name] for name in _CLIENT_VARIABLES if name in os.environ}
        return {**environment, **docker_variables, "DOCKER_CONFIG": home}

    def remove(self) -> None:
        """Remove the container if it still exists."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            _docker("rm", "--force", "--volumes", self.name)
