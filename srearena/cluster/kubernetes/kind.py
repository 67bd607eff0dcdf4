"""Creating and deleting a kind cluster: Kubernetes in containers on this machine.

The configurations are in `kind/` of the repository, one per processor architecture, with an image built for it. The
`kind` tool does the work and needs a running container engine.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from srearena.cluster.base import ClusterError

NAME = "srearena"
_ARM = ("arm64", "aarch64")
_CONFIGURATIONS = (Path(__file__).parents[3] / "kind", Path(__file__).parent / "kind-configurations")
"""In the repository, and in an installed package (see pyproject.toml)."""
_ENGINES = ("docker", "podman", "nerdctl")


def configuration(machine: str = "") -> Path:
    """The configuration file for this machine's processor."""
    name = "arm" if (machine or platform.machine()).lower() in _ARM else "x86"
    places = [folder / f"kind-config-{name}.yaml" for folder in _CONFIGURATIONS]
    path = next((place for place in places if place.is_file()), places[0])
    if not path.is_file():
        raise ClusterError(f"{path.name} is not there: it is part of the repository; name a file with --config")
    return path


def up(name: str = NAME, config: Path | None = None, kubeconfig: Path | None = None) -> str:
    """Create a cluster and return the name of its context."""
    _check()
    if name in names():
        raise ClusterError(
            f"a kind cluster named {name!r} is there: use it with --context kind-{name}, or take it down"
        )
    arguments = ["create", "cluster", "--name", name, "--config", str(config or configuration()), "--wait", "180s"]
    if kubeconfig is not None:
        arguments += ["--kubeconfig", str(kubeconfig)]
    _kind(arguments, show_progress=True)
    return f"kind-{name}"


def down(name: str = NAME) -> None:
    """Delete a cluster; ClusterError where there is none of that name."""
    _check()
    if name not in names():
        raise ClusterError(f"there is no kind cluster named {name!r} (there are: {', '.join(names()) or 'none'})")
    _kind(["delete", "cluster", "--name", name], show_progress=True)


def names() -> list[str]:
    return _kind(["get", "clusters"]).split()


def _check() -> None:
    if shutil.which("kind") is None:
        raise ClusterError("kind is not installed: get it from https://kind.sigs.k8s.io, or use any other cluster")
    engine = next((tool for tool in _ENGINES if shutil.which(tool)), None)
    if engine is None:
        raise ClusterError("kind needs a container engine: install Docker (https://docs.docker.com/engine/install/)")
    info = subprocess.run([engine, "info"], capture_output=True, text=True, check=False)
    if info.returncode:
        error = (info.stderr or info.stdout).strip().splitlines()[-1:] or ["it does not answer"]
        raise ClusterError(f"{engine} is installed and does not run: {error[0]}")


def _kind(arguments: Sequence[str], *, show_progress: bool = False) -> str:
    """Run kind and return what it prints; with `show_progress` its error output goes to the terminal."""
    errors = None if show_progress else subprocess.PIPE
    done = subprocess.run(["kind", *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    if done.returncode:
        error = (done.stderr or "").strip().splitlines()[-1:] or ["see above"]
        raise ClusterError(f"kind {' '.join(arguments[:2])} failed: {error[0]}")
    return done.stdout
