"""Bodies of events and objects in the notations that recorders use, and those that cannot be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sre_tools.offline_incident_analysis import Workspace, call_tool
from srearena.snapshots import open_snapshot
from tests.snapshots import samples

_EVENT: dict[str, Any] = {
    "involvedObject": {"kind": "Pod", "name": "cart-1", "namespace": "shop"},
    "reason": "BackOff",
    "message": 'it\'s "down"',
    "type": "Warning",
    "count": 2,
}


def _write(directory: Path, table: str, bodies: list[str]) -> Path:
    directory.mkdir()
    rows = [{"Timestamp": samples.nanos(minute), "Body": body} for minute, body in enumerate(bodies)]
    samples.write_tsv(directory / table, samples.RAW_LOG, rows)
    return directory


def test_events_are_read_in_every_envelope(tmp_path: Path) -> None:
    newer = {
        "regarding": {"kind": "Pod", "name": "cart-1", "namespace": "shop"},
        "reason": "BackOff",
        "note": "x",
        "type": "Warning",
        "deprecatedFirstTimestamp": samples.stamp(3),
        "deprecatedLastTimestamp": samples.stamp(9),
        "deprecatedCount": 4,
        "deprecatedSource": {"component": "kubelet"},
    }
    bodies = [
        json.dumps({"type": "ADDED", "object": _EVENT}),  # an object without metadata
        repr({"type": "MODIFIED", "object": {**_EVENT, "metadata": {"name": "e", "uid": "u"}, "series": None}}),
        repr(_EVENT),
        json.dumps(newer),
        "not an event",
        json.dumps({"something": "else"}),
    ]
    directory = _write(tmp_path / "data", "k8s_events_raw.tsv", bodies)
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        reply = call_tool(workspace, "event_analysis", {"filters": {"reason": "BackOff"}})
        snapshot = workspace.snapshot()
        rows = snapshot.rows("SELECT * FROM events WHERE name = 'cart-1' ORDER BY observed_at")
    assert reply["total_count"] == 4
    assert reply["notes"] == [
        "2 of 6 events could not be read: their body is no Kubernetes event in JSON or Python notation"
    ]
    assert [row["watch_type"] for row in rows] == ["ADDED", "MODIFIED", None, None]
    assert {(row["kind"], row["namespace"], row["type"]) for row in rows} == {("Pod", "shop", "Warning")}
    assert rows[2]["message"] == 'it\'s "down"'
    last = rows[3]
    assert (last["count"], last["component"]) == (4, "kubelet")
    assert last["time"] == datetime(2025, 6, 1, 10, 9, tzinfo=UTC)
    assert last["first_time"] == datetime(2025, 6, 1, 10, 3, tzinfo=UTC)


def test_objects_are_read_in_python_notation(tmp_path: Path) -> None:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "n"}, "data": {"k": "it's"}}
    directory = _write(tmp_path / "data", "k8s_objects_raw.tsv", [repr(body), json.dumps(body)])
    with open_snapshot(directory, cache=tmp_path / "cache") as snapshot:
        [version] = snapshot.objects()
    assert (version.observations, version.body["data"]) == (2, {"k": "it's"})


def test_alerts_of_different_users_and_namespaces_stay_apart(tmp_path: Path) -> None:
    alerts = tmp_path / "data" / "alerts"
    alerts.mkdir(parents=True)
    labels = {"alertname": "SlowQueries", "service_name": "db", "severity": "warning"}
    each = [{"namespace": "a", "user": "ann"}, {"namespace": "a", "user": "bob"}, {"namespace": "b", "user": "ann"}]
    found = [{"labels": {**labels, **more}, "state": "firing", "activeAt": samples.stamp(1)} for more in each]
    for minute in (2, 3):
        name = samples.at(minute).strftime("alerts_at_%Y-%m-%dT%H-%M-%S.000000.json")
        (alerts / name).write_text(json.dumps(found))
    with Workspace(tmp_path / "data", cache=tmp_path / "cache") as workspace:
        rows = call_tool(workspace, "alert_summary", {})["data"]
    assert [(row["namespace"], row["labels"], row["occurrences"]) for row in rows] == [
        ("a", {"user": "ann"}, 2),
        ("a", {"user": "bob"}, 2),
        ("b", {"user": "ann"}, 2),
    ]
