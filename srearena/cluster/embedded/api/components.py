"""componentstatuses: the health of the control plane, as the deprecated API of that name tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.presenting import show_computed, show_list
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.selection import selection_of
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import NotFound
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

_NAMES: Final = ("controller-manager", "etcd-0", "scheduler")


async def get(backend: Backend, request: Request, row: Resource) -> None:
    if request.info.name not in _NAMES:
        raise NotFound("componentstatuses", request.info.name)
    await show_computed(backend, request, row, _status(request.info.name))


async def list_(backend: Backend, request: Request, row: Resource) -> None:
    found = selection_of(request, row, backend.store).of([_status(name) for name in _NAMES])
    await show_list(backend, request, row, found, {}, computed=True)


def _status(name: str) -> Obj:
    return {
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": name, "creationTimestamp": None},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    }
