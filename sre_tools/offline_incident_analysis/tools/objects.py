"""get_k8_spec and k8s_spec_change_analysis: manifests of objects and their changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import Arguments, PagedArguments, parse_time
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.identity import entity_id, nearest, parse_identifier
from sre_tools.offline_incident_analysis.object_versions import Change, all_changes, change_text, parse_body
from sre_tools.offline_incident_analysis.replies import Answer, reply_schema
from sre_tools.registry import tool

_NO_EFFECT = "taken for older prompts' sake, without effect: objects say themselves when they came and went"
_FILE = Field(None, description="the objects table; leave out for the server's snapshot")


class ChangeArguments(PagedArguments):
    k8s_objects_file: str | None = _FILE
    k8_object_name: str | None = Field(None, description="namespace/Kind/name, Kind/name or name; exact")
    max_changes_per_diff: int | None = Field(None, ge=1, description="items shown per change")
    include_reference_spec: bool = Field(False, description="add the object's first seen spec")
    include_flat_change_items: bool = Field(True, description="add path, old and new of what changed")
    include_no_change: bool = Field(False, description="also list objects that did not change")
    sort_by: Literal["time", "entity", "change_count"] = "time"
    time_basis: Literal["observation", "effective_update"] = Field(
        "effective_update", description="observation gives the look that first showed a change, not when it was made"
    )
    lifecycle_inference: Literal["none", "window", "k8s_metadata"] = Field(
        "k8s_metadata", description="none leaves out objects added and removed"
    )
    lifecycle_scope: Literal["global", "per_kind"] = Field("global", description=_NO_EFFECT)
    removal_grace_period_sec: float | None = Field(None, description=_NO_EFFECT)
    removal_min_cycles: int | None = Field(None, description=_NO_EFFECT)


@tool(
    title="What was changed",
    order=100,
    output_schema=reply_schema(
        {
            "entity": "namespace/Kind/name",
            "kind": "",
            "namespace": "",
            "name": "",
            "change": "in one line",
            "type": "modified, added or removed",
            "timestamp": "when; see time_exact",
            "from_timestamp": "the last look at the object before the change",
            "time_exact": "true if the object itself says when; else the time it was first seen changed",
            "changes": "path, type, old, new",
        }
    ),
)
def k8s_spec_change_analysis(call: Call, arguments: ChangeArguments) -> Answer:
    """Objects whose spec, data, labels or annotations changed, that were created or deleted. Status and resource
    versions are not changes. Example: k8s_spec_change_analysis(k8_object_name="Deployment/checkout")."""
    start, end = parse_time(arguments.start_time, "start_time"), parse_time(arguments.end_time, "end_time")
    target = parse_identifier(arguments.k8_object_name) if arguments.k8_object_name else None
    counts_row = call.snapshot.rows("SELECT count(*) AS n, count(DISTINCT (kind, namespace, name)) AS k FROM objects")[
        0
    ]
    changes = []
    for change in all_changes(call.snapshot):
        if arguments.time_basis == "observation":
            change = replace(change, time=change.observed_at, exact=False)
        time = change.time.replace(tzinfo=None)
        if (start and time < start) or (end and time > end):
            continue
        if target and not target.matches(change.namespace, change.kind, change.name):
            continue
        if change.type != "modified" and arguments.lifecycle_inference == "none":
            continue
        changes.append(change)
    # Edits come before the objects that controllers create and delete as a consequence.
    changes.sort(key=lambda c: (c.type != "modified", c.kind in ("Pod", "ReplicaSet"), c.time))
    rows = [_change_row(change, arguments) for change in changes]
    if arguments.include_reference_spec:
        for row in rows:
            row["reference_spec"] = _first_spec(call, row)
    if arguments.sort_by == "entity":
        rows.sort(key=lambda row: str(row["entity"]))
    if arguments.sort_by == "change_count":
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["entity"]] = counts.get(row["entity"], 0) + 1
        rows.sort(key=lambda row: -counts[row["entity"]])
    changed = {row["entity"] for row in rows}
    summary: dict[str, Any] = {
        "observations": counts_row["n"],
        "total_entities": counts_row["k"],
        "entities_with_changes": len(changed),
        "total_change_events": len(rows),
    }
    if target and not rows:
        _require(call, arguments.k8_object_name or "")
    if arguments.include_no_change:
        for row in call.snapshot.rows("SELECT DISTINCT kind, namespace, name FROM objects ORDER BY ALL"):
            entity = entity_id(row["namespace"], row["kind"], row["name"] or "")
            if entity not in changed and (target is None or target.matches(**row)):
                rows.append({"entity": entity, **row, "change": "none"})
    return Answer(rows, summary)


def _change_row(change: Change, arguments: ChangeArguments) -> dict[str, Any]:
    row: dict[str, Any] = {
        "entity": entity_id(change.namespace, change.kind, change.name),
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "type": change.type,
        "timestamp": change.time,
        "from_timestamp": change.not_before,
        "time_exact": change.exact,
        "change": change_text(change),
    }
    if change.type == "modified" and arguments.include_flat_change_items:
        most = arguments.max_changes_per_diff or 20
        row["changes"] = change.items[:most]
        row["change_item_count"] = len(change.items)
    return row


def _first_spec(call: Call, row: dict[str, Any]) -> Any:
    rows = call.snapshot.rows(
        """SELECT arg_min(body, observed_at) AS body FROM objects
           WHERE kind = ? AND name = ? AND namespace IS NOT DISTINCT FROM ?""",
        [row["kind"], row["name"], row["namespace"]],
    )
    body = parse_body(rows[0]["body"]) if rows else {}
    return body.get("spec", body.get("data"))


def matching(call: Call, text: str) -> list[dict[str, Any]]:
    """The objects that match an identifier, with their latest observation."""
    target = parse_identifier(text)
    clauses, values = ["lower(name) = lower(?)"], [target.name]
    if target.kind:
        clauses.append("lower(kind) = lower(?)")
        values.append(target.kind)
    if target.namespace:
        clauses.append("lower(namespace) = lower(?)")
        values.append(target.namespace)
    return call.snapshot.rows(
        f"""SELECT kind, namespace, name, count(*) AS observation_count, max(observed_at) AS timestamp,
            arg_max(body, observed_at) AS body FROM objects WHERE {" AND ".join(clauses)}
            GROUP BY kind, namespace, name ORDER BY kind, namespace, name""",
        values,
    )


def _require(call: Call, text: str) -> list[dict[str, Any]]:
    """The matching objects; ToolError with the nearest names if there are none."""
    objects = matching(call, text)
    if not objects:
        every = call.snapshot.rows("SELECT DISTINCT kind, name FROM objects WHERE name IS NOT NULL")
        target = parse_identifier(text)
        existing = [row for row in every if str(row["kind"]).lower() == (target.kind or "").lower()] or every
        names = nearest(target.name, (row["name"] for row in existing))
        near = [f"{row['kind']}/{row['name']}" for row in existing if row["name"] in names][:8]
        hint = f"did you mean {', '.join(sorted(near))}?" if near else "this snapshot has no objects"
        raise ToolError(f"no object {text!r} in this snapshot; {hint}")
    return objects


class SpecArguments(Arguments):
    k8s_objects_file: str | None = _FILE
    k8_object_name: str = Field(description="namespace/Kind/name, Kind/name or name; exact")
    return_all_observations: bool = Field(False, description="every look at the object instead of the last")
    include_metadata: bool = True


@tool(
    title="An object's manifest",
    order=110,
    output_schema=reply_schema(
        {
            "entity": "namespace/Kind/name",
            "kind": "",
            "namespace": "",
            "name": "",
            "timestamp": "when it was seen so",
            "observation_count": "looks there are in the recording",
            "spec": "the manifest",
        }
    ),
)
def get_k8_spec(call: Call, arguments: SpecArguments) -> Answer:
    """The manifest of an object as last seen. Example: get_k8_spec(k8_object_name="otel-demo/Deployment/checkout").
    For what changed about it use k8s_spec_change_analysis."""
    objects = _require(call, arguments.k8_object_name)
    notes = []
    if len(objects) > 1:
        notes.append("the name is ambiguous; say namespace/Kind/name to get one object")
    rows = []
    for item in objects:
        observations = [item]
        if arguments.return_all_observations:
            observations = call.snapshot.rows(
                """SELECT observed_at AS timestamp, body FROM objects WHERE kind = ? AND name = ?
                   AND namespace IS NOT DISTINCT FROM ? ORDER BY observed_at""",
                [item["kind"], item["name"], item["namespace"]],
            )
        for observation in observations:
            body = parse_body(observation["body"])
            metadata = body.get("metadata")
            if isinstance(metadata, dict):
                metadata.pop("managedFields", None)
            if not arguments.include_metadata:
                body.pop("metadata", None)
            rows.append(
                {
                    "entity": entity_id(item["namespace"], item["kind"], item["name"]),
                    "kind": item["kind"],
                    "namespace": item["namespace"],
                    "name": item["name"],
                    "timestamp": observation["timestamp"],
                    "observation_count": item["observation_count"],
                    "spec": body,
                }
            )
    return Answer(rows, {"found": True, "entity_count": len(objects)}, notes)
