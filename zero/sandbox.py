"""A room for the agent, by bubblewrap: it sees the system's programs, its workspace and the evidence, and no more.

In the room there is no other home, no other process, a /tmp of its own and no network but the doors of `zero.relay`.
The harness's record of the run can be read there and not written. What the machine cannot give is said by `lacking`,
in words for the user.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zero import gateway
from zero.evidence import pieces
from zero.relay import INSIDE, Relay

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = (
    *("/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf"),
    *(
        "/etc/ld.so.conf.d",
        "/etc/localtime",
        "/etc/nsswitch.conf",
        "/etc/passwd",
        "/etc/pki",
        "/etc/ssl",
        "/etc/timezone",
    ),
)
# What our own tool servers need of us; the arena's problems and the judge stay outside.
_PACKAGES = (
    "sre_tools",
    *(f"srearena/{name}" for name in ("__init__.py", "closing.py", "errors.py", "ground_truth", "snapshots")),
)
_HIDDEN = ("srearena/conductor", "srearena/generators", "itbench_evaluations", "itbench_leaderboard")
_PROBE = (
    "--unshare-all",
    "--unshare-user",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
)


def lacking() -> str | None:
    """Why there can be no sandbox on this machine; None where there can."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed (Debian: apt install bubblewrap)"
    try:
        tried = subprocess.run([program, *_PROBE, "true"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"bubblewrap does not work here: {problem}"
    if tried.returncode != 0:
        said = (tried.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return f"bubblewrap does not work here: {said}"
    return None


def installation(program: Path) -> list[Path]:
    """What a program needs to run: itself, or all of its Node packages and the Node it runs on."""
    real = program.resolve()
    homes = [parent for parent in real.parents if parent.name == "node_modules"]
    found = [homes[-1] if homes else real]
    node = shutil.which("node")
    if homes and node:
        found.append(Path(node).resolve().parents[1])
    return found


def _own_packages() -> tuple[list[Path], list[Path]]:
    shown: list[Path] = []
    hidden: list[Path] = []
    for names, places in ((_PACKAGES, shown), (_HIDDEN, hidden)):
        for name in names:
            top, _, rest = name.partition("/")
            spec = importlib.util.find_spec(top)
            for location in (spec.submodule_search_locations or []) if spec else []:
                place = Path(location) / rest if rest else Path(location)
                if place.exists():
                    places.append(place)
    return shown, hidden


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Without what lies inside another, and without what does not exist."""
    existing = sorted({path for path in paths if path.exists()}, key=lambda path: len(path.parts))
    kept: list[Path] = []
    for path in existing:
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept


def shown_whole(exposed: Sequence[Path]) -> list[Path]:
    """What a room shows beside the system's programs: Python, our tool servers, and what was asked for."""
    programs = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]]
    return _outermost([*programs, *exposed, Path(gateway.__file__), *_own_packages()[0]])


def withheld(whole: Sequence[Path]) -> list[Path]:
    """What lies inside and is not for agents."""
    return [path for path in _own_packages()[1] if any(path.is_relative_to(other) for other in whole)]


def shows(path: Path, exposed: Sequence[Path]) -> bool:
    """Whether there is something at a path outside the workspace, in a room."""
    return any(path.is_relative_to(place) for place in [*map(Path, SYSTEM), *shown_whole(exposed)])


@dataclass(frozen=True, slots=True)
class Room:
    """What one run's sandbox holds."""

    workspace: Path
    evidence: Sequence[Path]
    exposed: Sequence[Path]  # further directories, read-only
    sealed: Sequence[Path]  # within the workspace: to be read, not written
    hidden: Sequence[Path]  # within the workspace: not to be seen
    relay: Relay

    def _mounts(self) -> Iterator[str]:
        yield from ("--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp", "--proc", "/proc", "--dev", "/dev")
        for place in SYSTEM:
            path = Path(place)
            if path.is_symlink():
                yield from ("--symlink", str(path.readlink()), place)
            elif path.exists():
                yield from ("--ro-bind", place, place)
        for place in SETTINGS:
            if Path(place).exists():
                yield from ("--ro-bind", place, place)
        whole = shown_whole(self.exposed)
        for path in whole:
            if not path.is_relative_to("/usr"):
                yield from ("--ro-bind", str(path), str(path))
        for path in withheld(whole):
            yield from ("--tmpfs", str(path))
        yield from ("--bind", str(self.workspace), str(self.workspace))
        for source in self.evidence:
            parts = [*pieces(source)]
            if parts == [source]:
                yield from ("--ro-bind", str(source), str(source))
                continue
            yield from ("--tmpfs", str(source))
            for part in parts:
                yield from ("--ro-bind", str(part), str(part))
            yield from ("--remount-ro", str(source))
        for path in self.sealed:
            if path.exists():
                yield from ("--ro-bind", str(path), str(path))
        for path in self.hidden:
            if path.exists():
                yield from ("--tmpfs", str(path))
        yield from ("--ro-bind", str(self.relay.directory), str(INSIDE))

    def arguments(self) -> list[str]:
        base = ["--unshare-all", "--unshare-user", "--die-with-parent", "--hostname", "zero"]
        # The one capability left is for doors to ports below 1024; it reaches no further than the room.
        base += ["--cap-drop", "ALL", "--cap-add", "CAP_NET_BIND_SERVICE"]
        return [*base, *self._mounts(), "--chdir", str(self.workspace)]

    def command(self, command: Sequence[str]) -> list[str]:
        """The command as the room runs it: behind the gateway."""
        return gateway.behind(self.relay.doors, command)
