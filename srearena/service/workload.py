"""What drives an application: the seam between applications and the load generators above them.

An application names its driver and the driver's settings in `workload.yaml`; drivers are found by name, ours from the
table below and others' from the entry-point group `srearena.workloads`. So an application starts its load without
knowing any generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

import yaml

from srearena.service.errors import ApplicationError
from srearena.service.kubernetes import Kubernetes

ENTRY_POINTS = "srearena.workloads"
DRIVERS = {
    "wrk": "srearena.generators.workload.wrk:from_settings",
    "locust": "srearena.generators.workload.locust:from_settings",
    "bhotelwrk": "srearena.generators.workload.bhotelwrk:from_settings",
}
"""Our drivers: functions that make a Workload of an application's folder and settings."""


class Workload(Protocol):
    """Load on one application in one namespace."""

    def start(self, api: Kubernetes, namespace: str) -> None:
        """Begin to send requests, or go on doing so with other settings."""

    def stop(self, api: Kubernetes, namespace: str) -> None:
        """Send no more; not an error where nothing was sent."""

    def result(self, api: Kubernetes, namespace: str) -> Any:
        """What the generator has measured so far; None where it has not measured anything yet."""


Factory = Callable[[Path, Mapping[str, Any]], Workload]


def read_settings(path: Path) -> dict[str, Any]:
    """`workload.yaml`: a mapping with at least a `driver`."""
    try:
        settings = yaml.safe_load(path.read_text())
    except yaml.YAMLError as problem:
        raise ApplicationError(f"{path} is not YAML: {problem}") from problem
    if not isinstance(settings, dict) or not isinstance(settings.get("driver"), str):
        raise ApplicationError(f"{path}: a workload needs a driver: one of {', '.join(sorted(drivers()))}")
    return settings


def make_workload(folder: Path, settings: Mapping[str, Any]) -> Workload:
    """The workload that settings describe; ApplicationError where they are wrong."""
    options = dict(settings)
    name = options.pop("driver")
    known = drivers()
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"
        raise ApplicationError(f"there is no workload driver {name!r}{hint}")
    module, _, attribute = known[name].partition(":")
    factory: Factory = getattr(import_module(module), attribute)
    try:
        return factory(folder, options)
    except TypeError as problem:
        raise ApplicationError(f"{folder}: the workload's settings do not fit its driver {name!r}: {problem}") from None


def drivers() -> dict[str, str]:
    return {**{entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}, **DRIVERS}
