"""The agent's sandbox with bubblewrap: system programs, the workspace and the evidence are visible, nothing else.

The sandbox has no other home directory, no other processes, a private /tmp, and no network except the sockets of
`zero.relay`. The record of the run is read-only.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from srearena.bubblewrap import SYSTEM_DIRECTORIES, interpreter_paths, outermost, read_only, system_mounts
from zero import gateway
from zero.evidence import allowed_parts
from zero.relay import SOCKET_DIRECTORY, Relay

# Packages that the tool servers import; problems, faults and the judge stay hidden.
_PACKAGES = (
    "sre_tools",
    *(
        f"srearena/{name}"
        for name in (
            "__init__.py",
            "closeable.py",
            "errors.py",
            "ground_truth",
            "paths.py",
            "snapshots",
            "yaml_documents.py",
        )
    ),
)
_HIDDEN = ("srearena/conductor", "srearena/generators", "itbench_evaluations", "itbench_leaderboard")


def installation(program: Path) -> list[Path]:
    """The paths a program needs: itself, or all of its Node packages and the Node installation."""
    real = program.resolve()
    homes = [parent for parent in real.parents if parent.name == "node_modules"]
    paths = [homes[-1] if homes else real]
    node = shutil.which("node")
    if homes and node:
        paths.append(Path(node).resolve().parents[1])
    return paths


def _package_paths() -> tuple[list[Path], list[Path]]:
    """The paths of this project's packages: visible and hidden ones."""
    visible: list[Path] = []
    hidden: list[Path] = []
    for names, paths in ((_PACKAGES, visible), (_HIDDEN, hidden)):
        for name in names:
            top, _, inner = name.partition("/")
            spec = importlib.util.find_spec(top)
            for location in (spec.submodule_search_locations or []) if spec else []:
                path = Path(location) / inner if inner else Path(location)
                if path.exists():
                    paths.append(path)
    return visible, hidden


def exposed_paths(exposed: Sequence[Path]) -> list[Path]:
    """Paths visible besides the system directories: Python, the tool servers, and `exposed`."""
    return outermost([*interpreter_paths(), *exposed, Path(gateway.__file__), *_package_paths()[0]])


def hidden_paths(visible: Sequence[Path]) -> list[Path]:
    """Packages inside visible paths that agents may not read."""
    return [path for path in _package_paths()[1] if any(path.is_relative_to(other) for other in visible)]


def is_visible(path: Path, exposed: Sequence[Path]) -> bool:
    """Whether a path outside the workspace exists in the sandbox."""
    return any(path.is_relative_to(place) for place in [*map(Path, SYSTEM_DIRECTORIES), *exposed_paths(exposed)])


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The contents of one run's sandbox."""

    workspace: Path
    evidence: Sequence[Path]
    exposed: Sequence[Path]  # additional read-only directories
    read_only: Sequence[Path]  # in the workspace
    hidden: Sequence[Path]  # in the workspace
    relay: Relay

    def _mounts(self) -> Iterator[str]:
        yield from system_mounts()
        exposed = exposed_paths(self.exposed)
        yield from read_only(exposed)
        for path in hidden_paths(exposed):
            yield from ("--tmpfs", str(path))
        yield from ("--bind", str(self.workspace), str(self.workspace))
        for source in self.evidence:
            parts = [*allowed_parts(source)]
            if parts == [source]:
                yield from ("--ro-bind", str(source), str(source))
                continue
            yield from ("--tmpfs", str(source))
            for part in parts:
                yield from ("--ro-bind", str(part), str(part))
            yield from ("--remount-ro", str(source))
        for path in self.read_only:
            if path.exists():
                yield from ("--ro-bind", str(path), str(path))
        for path in self.hidden:
            if path.exists():
                yield from ("--tmpfs", str(path))
        yield from ("--ro-bind", str(self.relay.directory), str(SOCKET_DIRECTORY))

    def arguments(self) -> list[str]:
        base = ["--unshare-all", "--unshare-user", "--die-with-parent", "--hostname", "zero"]
        # The gateway may listen on ports below 1024, inside the sandbox only.
        base += ["--cap-drop", "ALL", "--cap-add", "CAP_NET_BIND_SERVICE"]
        return [*base, *self._mounts(), "--chdir", str(self.workspace)]

    def command(self, command: Sequence[str]) -> list[str]:
        """The command as a child of the gateway."""
        return gateway.wrap(self.relay.forwards, command)
