"""Deleting: grace periods, finalizers and what becomes of dependents.

An object leaves the store at once only when nothing holds it. A grace period, a finalizer or a foreground deletion
leave it there, marked with a deletionTimestamp, until its finalizers are removed.
"""

from __future__ import annotations

from srearena.cluster.embedded.durations import format_time, parse_time
from srearena.cluster.embedded.objects import Obj, is_terminating, meta
from srearena.cluster.embedded.registry.admission.chain import Attributes
from srearena.cluster.embedded.registry.errors import BadRequest, Conflict, FieldError, Invalid
from srearena.cluster.embedded.registry.registry import Registry, WriteOptions
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.strategy import WriteContext

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
POLICIES = ("Background", "Foreground", "Orphan")

# Resources whose dependents were orphaned by default in old API versions; none is left in the served ones but this.
_ORPHANED_BY_DEFAULT = frozenset({"replicationcontrollers"})


def delete(
    registry: Registry, row: Resource, namespace: str, name: str, wish: Obj, options: WriteOptions
) -> tuple[Obj, bool]:
    """Delete an object as DeleteOptions (`wish`) ask; returns it and whether it is gone already."""
    _check_options(wish)
    stored = registry.get(row, namespace, name)
    obj = registry.store.get(row.storage_key, namespace, name) or stored
    _check_preconditions(row, name, obj, wish.get("preconditions") or {})
    attributes = Attributes(
        "DELETE", row, namespace, name, options.user, None, obj, "", options.dry_run, wish, options.warnings
    )
    registry.admission.admit(attributes)
    registry.admission.validate(attributes)
    marked = _marked(registry, row, obj, wish, options)
    blocked = bool(marked["metadata"].get("finalizers") or marked["metadata"].get("deletionGracePeriodSeconds"))
    blocked = blocked or (row.group_resource == "namespaces" and bool(marked.get("spec", {}).get("finalizers")))
    if options.dry_run:
        return marked, not blocked
    if not blocked:
        return registry.vanish(row, obj, options), True
    if marked["metadata"] == obj["metadata"] and marked.get("status") == obj.get("status"):
        return obj, False
    return registry.store.put(row.storage_key, marked), False


def _check_options(wish: Obj) -> None:
    policy = wish.get("propagationPolicy")
    if policy is not None and wish.get("orphanDependents") is not None:
        problem = FieldError.invalid(
            "propagationPolicy",
            policy,
            "orphanDependents and deletionPropagation cannot be both set",
        )
        raise Invalid("DeleteOptions", "", [problem])
    if policy is not None and policy not in POLICIES:
        raise Invalid(
            "DeleteOptions",
            "",
            [FieldError.not_supported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"])],
        )
    grace = wish.get("gracePeriodSeconds")
    if grace is not None and not isinstance(grace, int):
        raise BadRequest("gracePeriodSeconds must be an integer")


def _check_preconditions(row: Resource, name: str, obj: Obj, conditions: Obj) -> None:
    recreated = "The object might have been deleted and then recreated"
    modified = "The object might have been modified"
    for key, label, hint in (("uid", "UID", recreated), ("resourceVersion", "ResourceVersion", modified)):
        wanted, found = conditions.get(key), meta(obj).get(key)
        if wanted is not None and wanted != found:
            why = f"the {label} in the precondition ({wanted}) does not match the {label} in record ({found}). {hint}"
            raise Conflict(row.group_kind, name, why)


def _marked(registry: Registry, row: Resource, obj: Obj, wish: Obj, options: WriteOptions) -> Obj:
    """The object with its deletion noted: timestamp, grace and the finalizers that the propagation calls for."""
    metadata = dict(meta(obj))
    finalizers = _finalizers(row, metadata.get("finalizers") or [], wish)
    if not is_terminating(obj):
        finalizers += [f for f in registry.strategy(row).deletion_finalizers if f not in finalizers]
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    grace = _grace(registry, row, obj, wish, options)
    now = registry.clock.now
    if not is_terminating(obj):
        metadata["deletionTimestamp"] = format_time(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if row.has_generation:
            metadata["generation"] = metadata.get("generation", 0) + 1
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        begun = parse_time(metadata["deletionTimestamp"]) - metadata["deletionGracePeriodSeconds"]
        metadata["deletionTimestamp"] = format_time(max(begun, now) + grace if grace else now)
        metadata["deletionGracePeriodSeconds"] = grace
    marked = {**obj, "metadata": metadata}
    if row.group_resource == "namespaces":
        marked["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return marked


def _grace(registry: Registry, row: Resource, obj: Obj, wish: Obj, options: WriteOptions) -> int:
    strategy = registry.strategy(row)
    if strategy.grace_seconds is None:
        return 0
    context = WriteContext(registry.clock, registry.store, registry.randomness, options.user, options.dry_run)
    return max(0, strategy.grace_seconds(obj, wish, context))


def _finalizers(row: Resource, present: list[str], wish: Obj) -> list[str]:
    kept = [finalizer for finalizer in present if finalizer not in (FOREGROUND, ORPHAN)]
    policy = wish.get("propagationPolicy")
    if policy is None and wish.get("orphanDependents") is not None:
        policy = "Orphan" if wish["orphanDependents"] else "Background"
    if policy is None:
        if FOREGROUND in present or ORPHAN in present:
            return list(present)
        policy = "Orphan" if row.group_resource in _ORPHANED_BY_DEFAULT else "Background"
    extra = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    return [*kept, *extra]
