"""The registry of embedded clusters that run on this machine: files that every `srearena` command can read.

One directory per cluster under the user's state directory, readable by its owner only. `cluster.json` describes the
cluster, `kubeconfig` and `control` give access to it. An entry whose process has ended is deleted when it is read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from srearena.cluster.base import ClusterError
from srearena.paths import state_directory

_STARTING = "starting"
"""The file with the process that starts a cluster, until the cluster is registered."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(slots=True, frozen=True)
class RunningCluster:
    name: str
    pid: int
    url: str
    kubeconfig: str
    workers: int
    seed: int
    speed: float
    started: float

    @property
    def alive(self) -> bool:
        return is_alive(self.pid)


def is_alive(pid: int) -> bool:
    """Whether a process with that id exists, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def directory_of(name: str) -> Path:
    """The directory of a cluster; the name must be valid in a path and in a kubeconfig."""
    if not _NAME.fullmatch(name):
        raise ClusterError(
            f"{name!r} is not a valid name for a cluster: use at most 40 lower-case letters, digits and dashes"
        )
    return state_directory() / "clusters" / name


def make_directory(name: str) -> Path:
    """Create an empty private directory for a cluster; ClusterError while one of that name runs."""
    if find(name) is not None:
        raise ClusterError(
            f"a cluster named {name!r} is running: choose another --name, or `srearena cluster down {name}`"
        )
    directory = directory_of(name)
    for left in abandoned():
        shutil.rmtree(left, ignore_errors=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)
    (directory / _STARTING).write_text(f"{os.getpid()}\n")
    return directory


def abandoned() -> list[Path]:
    """Directories of clusters whose process has ended, or whose start was killed."""
    parent = state_directory() / "clusters"
    paths = sorted(parent.iterdir()) if parent.is_dir() else []
    return [path for path in paths if _NAME.fullmatch(path.name) and not is_alive(_owner(path))]


def _owner(directory: Path) -> int:
    """The process of a cluster, or the one that starts it; 0, the own process group, where neither can be read."""
    try:
        entry = directory / "cluster.json"
        return int(json.loads(entry.read_text())["pid"] if entry.exists() else (directory / _STARTING).read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def register(cluster: RunningCluster) -> None:
    """Write the entry of a cluster atomically."""
    directory = directory_of(cluster.name)
    draft = directory / "cluster.json.new"
    draft.write_text(json.dumps(asdict(cluster), indent=2) + "\n")
    draft.replace(directory / "cluster.json")


def unregister(name: str) -> None:
    shutil.rmtree(directory_of(name), ignore_errors=True)


def find(name: str) -> RunningCluster | None:
    directory = directory_of(name)
    try:
        entry = RunningCluster(**json.loads((directory / "cluster.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    if not entry.alive:
        unregister(name)
        return None
    return entry


def all_running() -> list[RunningCluster]:
    parent = state_directory() / "clusters"
    names = sorted(path.name for path in parent.iterdir() if _NAME.fullmatch(path.name)) if parent.is_dir() else []
    return [entry for name in names if (entry := find(name)) is not None]
