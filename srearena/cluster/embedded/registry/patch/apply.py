"""Server-side apply: a manager says all it wants, and what it no longer says it gives up.

A field that others own and that would change is a conflict, unless the manager insists; a field both want the
same way they own together; a field the manager applied before, does not mention now and has no other owner, is removed.
Applying the same twice changes nothing. The rules and the messages are those of structured-merge-diff and of
k8s.io/apimachinery/pkg/util/managedfields.
"""

from __future__ import annotations

from typing import Final

import orjson

from srearena.cluster.embedded.go_text import json_text, quoted
from srearena.cluster.embedded.objects import Obj, annotations_of, copy_of, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.registry.errors import ApiError, ApplyConflict, BadRequest
from srearena.cluster.embedded.registry.json_values import owned
from srearena.cluster.embedded.registry.patch import field_sets, managed_fields
from srearena.cluster.embedded.registry.patch.applied_config import config_errors
from srearena.cluster.embedded.registry.patch.field_sets import FieldSet, path_text
from srearena.cluster.embedded.registry.patch.managed_fields import Owner, Owners
from srearena.cluster.embedded.registry.patch.typed_values import (
    UnkeyedItem,
    compare,
    field_set,
    merge,
    remove,
    with_structs,
)
from srearena.cluster.embedded.registry.schema import Schema

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_MAX_ANNOTATIONS: Final = 256 * 1024


class ApplyRejected(ApiError):
    """A configuration that does not fit the schema. The real server has no reason for it either."""

    code = 400


def server_side_apply(
    live: Obj | None,
    config: Obj,
    *,
    manager: str,
    force: bool,
    api_version: str,
    kind: str,
    time: str,
    schema: Schema,
    subresource: str = "",
    reset: FieldSet | None = None,
) -> Obj:
    """The object after `manager` has applied `config` to `live`, managedFields included.

    `live` is None where the object is to be created. `reset` names what this endpoint never writes (see
    `managed_fields.reset_fields`). Raises ApplyConflict where others own what would change and `force` is not set.
    """
    _check_config(config, api_version, kind)
    config = owned(config)
    if errors := config_errors(config, schema):
        text = errors[0] if len(errors) == 1 else "\n".join(["errors:", *(f"  {error}" for error in errors)])
        where = f"{namespace_of(config)}/{name_of(config)}; {_kind_text(api_version, kind)}"
        raise ApplyRejected(f"failed to create typed patch object ({where}): {text}")
    base: Obj = copy_of(live) if live is not None else {}
    owners = managed_fields.decode(meta(base).get("managedFields"), trusted=True)
    writer = Owner(manager, "Apply", api_version, subresource, time, {})
    if not owners and uid_of(base):
        earlier = Owner(_BEFORE_FIRST_APPLY, "Update", api_version, subresource, time, {})
        managed_fields.note_change(owners, None, base, earlier, schema, reset)
    meta(base).pop("managedFields", None)
    result = _applied(base, config, owners, writer, force, schema, reset)
    if manager == "kubectl" and annotations_of(result).get(LAST_APPLIED):
        _record_last_applied(result, config)
    entries = managed_fields.encode(owners)
    if entries:
        result.setdefault("metadata", {})["managedFields"] = entries
    return copy_of(result)


def _check_config(config: Obj, api_version: str, kind: str) -> None:
    declared_kind = (config.get("apiVersion") or "", config.get("kind") or "")
    if declared_kind != (api_version, kind):
        raise BadRequest(f"invalid object type: {_kind_text(*map(str, declared_kind))}")
    metadata = config.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadRequest("metadata must be an object")
    if metadata and metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")


def _kind_text(api_version: str, kind: str) -> str:
    """A group, version and kind as Go prints one: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`."""
    return f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"


def _applied(
    live: Obj, config: Obj, owners: Owners, writer: Owner, force: bool, schema: Schema, reset: FieldSet | None
) -> Obj:
    """The merged and pruned object; `owners` is brought up to date."""
    previous = owners.pop(writer.identity, None)
    wanted = field_set(config, schema)
    if reset:
        wanted = field_sets.recursive_difference(wanted, reset)
    writer.fields = wanted
    try:
        merged: Obj = merge(live, config, schema)
        gone: FieldSet = {}
        if previous is not None:
            claims = [wanted, *(owner.fields for owner in owners.values())]
            gone = _given_up(merged, previous.fields, claims, schema)
        comparison = compare(live, remove(merged, gone, schema), schema, literal=True)
    except UnkeyedItem as problem:
        raise ApplyRejected(f"failed to merge config: {problem}") from None
    if reset:
        comparison.leave_out(reset)
    changed = comparison.changed
    conflicts = {
        identity: contested
        for identity, owner in owners.items()
        if changed and (contested := field_sets.intersection(owner.fields, changed))
    }
    if conflicts and not force:
        if writer.manager == "kubectl" and (allowed := _last_applied_fields(live, schema)):
            conflicts = {i: left for i, fields in conflicts.items() if (left := field_sets.difference(fields, allowed))}
        if conflicts:
            raise _conflict(owners, conflicts)
    managed_fields.take_away(owners, field_sets.union(changed, comparison.removed))
    writer.fields = field_sets.ordered(managed_fields.stripped(wanted))
    result = remove(merged, gone, schema, leave_null=False) or {}
    if live == result:
        # Nothing changed but perhaps who wants it; the time of the last real change stands.
        writer.time = previous.time if previous else ""
    if writer.fields:
        owners[writer.identity] = writer
    return result


def _given_up(merged: Obj, last: FieldSet, claims: list[FieldSet], schema: Schema) -> FieldSet:
    """What the manager applied last, does not apply now, and has no other owner."""
    last = with_structs(last, schema)
    claimed: FieldSet = {}
    for fields in claims:
        claimed = field_sets.union(claimed, fields)
    there = with_structs(field_set(merged, schema), schema)
    left = remove(merged, last, schema)
    kept = field_sets.union(with_structs(field_set(left, schema), schema), with_structs(claimed, schema))
    left = remove(merged, field_sets.difference(there, kept), schema)
    # Only what was applied last may go: the first removal may have taken along more than that.
    missing = field_sets.difference(there, with_structs(field_set(left, schema), schema))
    return field_sets.intersection(missing, last)


def _last_applied_fields(live: Obj, schema: Schema) -> FieldSet:
    """Fields of the last client-side apply that are unchanged since: kubectl may take ownership without force."""
    try:
        last = orjson.loads(annotations_of(live).get(LAST_APPLIED, ""))
        if (
            not isinstance(last, dict)
            or last.get("apiVersion") != live.get("apiVersion")
            or config_errors(last, schema)
        ):
            return {}
        comparison = compare(last, live, schema)
        moved = field_sets.union(comparison.changed, comparison.removed)
        return field_sets.difference(field_set(last, schema), moved)
    except ValueError:
        return {}


def _conflict(owners: Owners, conflicts: dict[managed_fields.Identity, FieldSet]) -> ApplyConflict:
    ranked = sorted(conflicts, key=lambda identity: managed_fields.printed_identity(owners[identity]))
    found = [
        (owners[identity], path_text(path)) for identity in ranked for path in field_sets.paths(conflicts[identity])
    ]
    causes: list[Obj] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_described(owner)}", "field": path}
        for owner, path in found
    ]
    if len(found) == 1:
        owner, path = found[0]
        return ApplyConflict(f"Apply failed with 1 conflict: conflict with {_described(owner)}: {path}", causes)
    lines: list[str] = []
    for identity in ranked:
        lines.append(f"conflicts with {_described(owners[identity])}:")
        lines.extend(f"- {path}" for owner, path in found if owner.identity == identity)
    return ApplyConflict(f"Apply failed with {len(found)} conflicts: " + "\n".join(lines), causes)


def _described(owner: Owner) -> str:
    text = quoted(owner.manager)
    if owner.subresource:
        text += f" with subresource {quoted(owner.subresource)}"
    if owner.operation == "Update":
        text += f" using {owner.api_version}"
    return text


def _record_last_applied(result: Obj, config: Obj) -> None:
    """Keep the annotation of client-side apply current, so that a user may go back to it."""
    annotations = dict(annotations_of(config))
    annotations.pop(LAST_APPLIED, None)
    metadata = {**meta(config), "annotations": annotations}
    if not annotations:
        del metadata["annotations"]
    text = json_text({**config, "metadata": metadata}, sort_keys=True) + "\n"
    target = dict(annotations_of(result))
    target[LAST_APPLIED] = text
    if sum(len(key.encode()) + len(value.encode()) for key, value in target.items()) > _MAX_ANNOTATIONS:
        del target[LAST_APPLIED]
    result["metadata"] = {**meta(result), "annotations": target}
