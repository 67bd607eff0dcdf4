"""The resource metrics API as an interface, which the nodes implement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from srearena.cluster.embedded.objects import Obj


class Usage(Protocol):
    """What one container used when it was last measured."""

    @property
    def cores(self) -> float: ...

    @property
    def working_set(self) -> int: ...

    @property
    def at(self) -> float: ...

    @property
    def window(self) -> float: ...


class PodMetrics(Protocol):
    def pod_usage(self, pod: Obj) -> Mapping[str, Usage] | None:
        """Usage by container; None where the pod has no metrics yet."""
        ...


class NoMetrics:
    """A cluster without an available metrics server."""

    def __init__(self, problem: str = "the server could not find the requested resource") -> None:
        self.problem = f"{problem} (get pods.metrics.k8s.io)"
        """The error of the resource metrics API."""

    def pod_usage(self, pod: Obj) -> Mapping[str, Usage] | None:
        return None
