"""Namespaces: each carries its own name as a label and leaves only when its content has."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.strategies.parts import items, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"


def _default(obj: Obj) -> None:
    name = name_of(obj)
    if name:
        labels = part(obj["metadata"], "labels")
        if labels.get(NAME_LABEL) != name:
            labels[NAME_LABEL] = name
    part(obj, "spec")


def _prepare_create(obj: Obj, context: WriteContext) -> None:
    obj["status"] = {"phase": "Active"}
    finalizers = items(obj["spec"], "finalizers")
    if FINALIZER not in finalizers:
        obj["spec"]["finalizers"] = [*finalizers, FINALIZER]
    # A generated name is known only now.
    _default(obj)


def _prepare_update(new: Obj, old: Obj, context: WriteContext) -> None:
    """Finalizers of the spec are taken off through the `finalize` subresource alone."""
    new["spec"] = old.get("spec") or {}


def _prepare_finalize(new: Obj, old: Obj, context: WriteContext) -> None:
    new["status"] = old.get("status") or {}


STRATEGIES = {
    "namespaces": Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        name_errors=names.label_errors,
        subresources={
            "finalize": Strategy(default=_default, prepare_update=_prepare_finalize, name_errors=names.label_errors)
        },
    ),
}
