"""Namespaces: each carries its own name as a label and leaves only when its content has."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, is_terminating, name_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
_STANDARD = (FINALIZER, "orphan", "foregroundDeletion")


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


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    if not (new.get("status") or {}).get("phase"):
        new["status"] = {**(new.get("status") or {}), "phase": "Active"}


def _finalizers(obj: Obj, path: str) -> Problems:
    problems: Problems = []
    for index, finalizer in enumerate(items(obj.get("spec"), "finalizers")):
        where = path.format(index)
        checks.qualified_name(problems, where, finalizer)
        if "/" not in finalizer and finalizer not in _STANDARD:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            problems.append(FieldError.invalid(where, finalizer, text))
    return problems


def _validate_create(obj: Obj) -> Problems:
    return _finalizers(obj, "spec.finalizers")


def _validate_finalize(obj: Obj) -> Problems:
    return _finalizers(obj, "spec.finalizers[{}]")


def _validate_status(new: Obj, old: Obj) -> Problems:
    phase, terminating = (new.get("status") or {}).get("phase", ""), is_terminating(new)
    wanted = "Terminating" if terminating else "Active"
    if phase == wanted:
        return []
    text = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' if terminating else ''}empty"
    return [FieldError.invalid("status.Phase", phase, text)]


STRATEGIES = {
    "namespaces": Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status=_prepare_status,
        validate_create=_validate_create,
        validate_status=_validate_status,
        name_errors=names.label_errors,
        subresources={
            "finalize": Strategy(
                default=_default,
                prepare_update=_prepare_finalize,
                validate=_validate_finalize,
                name_errors=names.label_errors,
            )
        },
    ),
}
