"""What controllers may know of resource use: the resource metrics API, as a protocol the nodes fulfil."""

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
        """Use by container; None where nothing is known of the pod (yet)."""
        ...


class NoMetrics:
    """A cluster without a metrics server, or with one that is away."""

    def __init__(self, problem: str = "the server could not find the requested resource") -> None:
        self.problem = f"{problem} (get pods.metrics.k8s.io)"
        """What a client of the resource metrics API hears."""

    def pod_usage(self, pod: Obj) -> Mapping[str, Usage] | None:
        return None
