"""metrics.k8s.io: usage of nodes and pods, computed on request, as metrics-server returns it.

A node or pod that has not been measured yet is not there, and so are pods that do not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.api.node_agent import Usage
from srearena.cluster.embedded.api.presenting import show_computed, show_list
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.selection import selection_of
from srearena.cluster.embedded.durations import format_duration, format_time
from srearena.cluster.embedded.objects import Obj, dig, labels_of, name_of, namespace_of
from srearena.cluster.embedded.registry.errors import NotFound
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend


async def get(backend: Backend, request: Request, row: Resource) -> None:
    namespace, name = request.info.namespace, request.info.name
    measured = backend.store.get(row.plural, namespace if row.namespaced else "", name)
    found = _metrics(backend, row, measured) if measured is not None else None
    if measured is None:
        raise NotFound("pods" if row.namespaced else "node", name)
    if found is None:
        place = f"{namespace}/{name}" if row.namespaced else name
        raise NotFound(f"{row.kind.lower()}.metrics.k8s.io", place)
    await show_computed(backend, request, row, found)


async def list_(backend: Backend, request: Request, row: Resource) -> None:
    selection = selection_of(request, row, backend.store)
    stored = selection.of(backend.store.objects(row.plural, selection.namespace))
    found = [metrics for obj in stored if (metrics := _metrics(backend, row, obj)) is not None]
    await show_list(backend, request, row, found, {}, computed=True)


def _metrics(backend: Backend, row: Resource, obj: Obj) -> Obj | None:
    agent = backend.agent
    if agent is None:
        return None
    if row.plural == "nodes":
        usage = agent.node_usage(name_of(obj))
        return _about(row, obj, backend, usage, {"usage": _amounts(usage)}) if usage is not None else None
    if dig(obj, "status", "phase") != "Running":
        return None
    by_container = agent.pod_usage(obj)
    if not by_container:
        return None
    containers = [{"name": name, "usage": _amounts(usage)} for name, usage in sorted(by_container.items())]
    latest = max(by_container.values(), key=lambda usage: usage.at)
    return _about(row, obj, backend, latest, {"containers": containers})


def _about(row: Resource, obj: Obj, backend: Backend, usage: Usage, measured: Obj) -> Obj:
    metadata: Obj = {"name": name_of(obj), "creationTimestamp": backend.world.clock.timestamp()}
    if row.namespaced:
        metadata["namespace"] = namespace_of(obj)
    if labels_of(obj):
        metadata["labels"] = labels_of(obj)
    return {
        "kind": row.kind,
        "apiVersion": row.api_version,
        "metadata": metadata,
        "timestamp": format_time(usage.at),
        "window": format_duration(usage.window),
        **measured,
    }


def _amounts(usage: Usage) -> Obj:
    nanocores = round(usage.cores * 1e9)
    return {"cpu": f"{nanocores}n" if nanocores else "0", "memory": f"{usage.working_set // 1024}Ki"}
