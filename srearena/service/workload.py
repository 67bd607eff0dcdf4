"""The interface between applications and the load generators that drive them.

An application names its driver and the driver's settings in `workload.yaml`. Drivers are found by name in the
entry-point group `srearena.workloads`, the built-in ones included (`pyproject.toml` declares them), so an application
starts its load without importing a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol

import yaml

from srearena.errors import one_line
from srearena.service.errors import ApplicationError
from srearena.service.kubernetes import Kubernetes

ENTRY_POINTS = "srearena.workloads"
_DISTRIBUTION = "srearena"


class Workload(Protocol):
    """Load on one application in one namespace."""

    def start(self, api: Kubernetes, namespace: str) -> None:
        """Start sending requests, or continue with new settings."""

    def stop(self, api: Kubernetes, namespace: str) -> None:
        """Stop sending requests; not an error where no load was running."""

    def result(self, api: Kubernetes, namespace: str) -> Any:
        """Return what the generator has measured so far; None where there is no measurement yet."""


Factory = Callable[[Path, Mapping[str, Any]], Workload]


def read_settings(path: Path) -> dict[str, Any]:
    """Read `workload.yaml`: a mapping with at least a `driver`."""
    try:
        settings = yaml.safe_load(path.read_text())
    except yaml.YAMLError as problem:
        raise ApplicationError(f"{path} is not YAML: {one_line(problem)}") from problem
    if not isinstance(settings, dict) or not isinstance(settings.get("driver"), str):
        raise ApplicationError(f"{path}: a workload needs a driver: one of {', '.join(sorted(drivers()))}")
    return settings


def make_workload(folder: Path, settings: Mapping[str, Any]) -> Workload:
    """Create the workload that settings describe; ApplicationError where they are wrong."""
    options = dict(settings)
    name = options.pop("driver")
    registered = drivers()
    if name not in registered:
        raise ApplicationError(f"there is no workload driver {name!r}{_hint(name, registered)}")
    factory: Factory = registered[name].load()
    try:
        return factory(folder, options)
    except TypeError as problem:
        raise ApplicationError(f"{folder}: the workload's settings do not fit its driver {name!r}: {problem}") from None


def drivers() -> dict[str, EntryPoint]:
    """All registered drivers by name; a built-in driver takes precedence over a plugin's of the same name."""
    registered = sorted(entry_points(group=ENTRY_POINTS), key=_is_built_in)
    return {entry.name: entry for entry in registered}


def _is_built_in(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == _DISTRIBUTION


def _hint(name: str, registered: Mapping[str, EntryPoint]) -> str:
    if not registered:
        return (
            ": no driver is registered; install the package again (pip install -e .) so that its entry points are found"
        )
    near = get_close_matches(name, registered, 1)
    return f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(registered))}"
