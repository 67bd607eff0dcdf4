"""The injector: injects faults by name and undoes them, as in the original project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from srearena.cluster import Cluster
from srearena.generators.fault.errors import FaultError
from srearena.generators.fault.registry import Fault, find_fault
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Kubernetes

__all__ = ["Fault", "FaultError", "FaultInjector"]

_injected: WeakKeyDictionary[Cluster, dict[tuple[str, str, str], Fault]] = WeakKeyDictionary()
"""The faults in place, by namespace, fault type and microservice: another injector may undo them."""


class FaultInjector:
    """Injects registered faults into one namespace, one microservice after the other."""

    def __init__(self, testbed: str, cluster: Cluster | None = None, kubernetes: Kubernetes | None = None) -> None:
        self.bed = Testbed.of(testbed, cluster, kubernetes)

    def create(self, fault_type: str, microservice: str, **options: Any) -> Fault:
        """Create the fault of that name for a microservice without injecting it."""
        return find_fault(fault_type)(self.bed, microservice, **options)

    def inject_fault(self, microservices: Sequence[str], fault_type: str, **options: Any) -> None:
        for name in _names(microservices):
            fault = self.create(fault_type, name, **options)
            fault.inject()
            _injected.setdefault(self.bed.cluster, {})[self.bed.namespace, fault_type, name] = fault

    def recover_fault(self, microservices: Sequence[str], fault_type: str) -> None:
        injected = _injected.get(self.bed.cluster, {})
        for name in _names(microservices):
            fault = injected.pop((self.bed.namespace, fault_type, name), None)
            if fault is None:
                raise FaultError(f"no {fault_type!r} was injected into {name!r} in {self.bed.namespace}")
            fault.recover()


def _names(microservices: Sequence[str]) -> Sequence[str]:
    return (microservices,) if isinstance(microservices, str) else microservices
