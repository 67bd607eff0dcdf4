"""Endpoints and EndpointSlices."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext


def _default_endpoints(obj: Obj) -> None:
    for subset in items(obj, "subsets"):
        for port in items(subset, "ports"):
            fill_empty(port, {"protocol": "TCP"})


def _default_slice(obj: Obj) -> None:
    for port in items(obj, "ports"):
        fill(port, {"name": "", "protocol": "TCP"})
    obj.setdefault("endpoints", None)
    obj.setdefault("ports", None)
    for endpoint in items(obj, "endpoints"):
        if endpoint.get("conditions") is None:
            endpoint["conditions"] = {}


def _prepare_slice_update(new: Obj, old: Obj, context: WriteContext) -> None:
    # A slice has no spec: its labels decide whose it is, so they count as a change as well.
    if (meta(new).get("labels") or {}) != (meta(old).get("labels") or {}):
        new["metadata"]["generation"] = meta(old).get("generation", 0) + 1


STRATEGIES = {
    "endpoints": Strategy(default=_default_endpoints),
    "endpointslices.discovery.k8s.io": Strategy(default=_default_slice, prepare_update=_prepare_slice_update),
}
