"""The agent's room by Docker, for machines without bubblewrap: the same programs, files and doors, in a container.

The container has no network: its doors are the sockets of `zero.relay`, as in the other room. The image is only what
lies underneath: the machine's own programs are shown over it, read-only. Evidence is a copy without answer keys in the
workspace, since a container's mounts cannot be laid around a file. Variables are passed by name, so that no secret is
on a command line. One door leads nowhere: it breaks when Zero is killed outright, and the container ends with it.
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

from zero import gateway
from zero.relay import INSIDE, Relay
from zero.sandbox import SETTINGS, SYSTEM, shown_whole, withheld

IMAGE = "debian:stable-slim"
IMAGE_VARIABLE = "ZERO_DOCKER_IMAGE"
_PATIENCE = 20.0
_MANAGED = frozenset({"/etc/hosts"})  # Docker puts its own there
_CLIENT = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")


def image() -> str:
    return os.environ.get(IMAGE_VARIABLE) or IMAGE


def lacking() -> str | None:
    """Why there can be no container on this machine; None where there can."""
    if shutil.which("docker") is None:
        return "Docker is not installed"
    try:
        told = _docker("version", "--format", "{{.Server.Version}}")
        if told.returncode != 0:
            said = (told.stderr.strip().splitlines() or ["it says nothing"])[-1]
            return f"Docker does not work here: {said}"
        if _docker("image", "inspect", "--format", "{{.Id}}", image()).returncode != 0:
            return f"the Docker image {image()} is not here: docker pull {image()}"
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"Docker does not work here: {problem}"
    return None


def _docker(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *words], capture_output=True, text=True, timeout=_PATIENCE, check=False)


def _mount(kind: str, target: str | Path, source: str | Path | None = None, *, writable: bool = False) -> list[str]:
    """A `--mount`, whose value is a line of CSV: paths may hold commas and quotes."""
    fields = [f"type={kind}", *([f"source={source}"] if source else []), f"destination={target}"]
    if kind == "bind" and not writable:
        fields.append("readonly")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return ["--mount", line.getvalue()]


@dataclass(frozen=True, slots=True)
class Container:
    """One container for one attempt."""

    workspace: Path
    exposed: Sequence[Path]
    sealed: Sequence[Path]
    hidden: Sequence[Path]
    relay: Relay
    seconds: float | None = None  # what is left of the run
    terminal: bool = False
    name: str = field(default_factory=lambda: f"zero-{secrets.token_hex(8)}")

    def _mounts(self) -> Iterator[list[str]]:
        for place in ("/tmp", "/run", "/var/tmp"):
            yield _mount("tmpfs", place)
        for place in SYSTEM:
            if Path(place).is_dir() and not Path(place).is_symlink():
                yield _mount("bind", place, place)
        for place in SETTINGS:
            if Path(place).exists() and place not in _MANAGED:
                yield _mount("bind", place, Path(place).resolve())
        whole = shown_whole(self.exposed)
        for path in whole:
            if not path.is_relative_to("/usr"):
                yield _mount("bind", path, path)
        for path in withheld(whole):
            yield _mount("tmpfs", path)
        yield _mount("bind", self.workspace, self.workspace, writable=True)
        for path in self.sealed:
            if path.exists():
                yield _mount("bind", path, path)
        for path in self.hidden:
            if path.exists():
                yield _mount("tmpfs", path)
        yield _mount("bind", INSIDE, self.relay.directory)

    def command(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The command line that runs a command in the container, behind the gateway."""
        base = ["docker", "run", "--rm", "--interactive", "--pull", "never", "--name", self.name, "--hostname", "zero"]
        base += ["--network", "none", "--sysctl", "net.ipv4.ip_unprivileged_port_start=0"]
        base += ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "2048"]
        base += ["--user", f"{os.getuid()}:{os.getgid()}", "--workdir", str(self.workspace)]
        base += ["--tty"] if self.terminal else []
        mounts = [word for words in self._mounts() for word in words]
        names = [word for name in sorted(environment) for word in ("--env", name)]
        limit = [] if self.seconds is None else ["timeout", "--kill-after=5", str(math.ceil(max(1.0, self.seconds)))]
        inside = [*limit, *gateway.behind([self.relay.life, *self.relay.doors], command)]
        return [*base, *mounts, *names, image(), *inside]

    def client(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of Docker's own program, which the container gets by name only."""
        home = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
        own = {name: os.environ[name] for name in _CLIENT if name in os.environ}
        return {**environment, **own, "DOCKER_CONFIG": home}

    def remove(self) -> None:
        """End whatever is left of it."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            _docker("rm", "--force", "--volumes", self.name)
