"""Every layout gives the same view of the same incident."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from srearena.ground_truth.files import load_document
from srearena.ground_truth.parsing import parse_ground_truth
from srearena.snapshots import Snapshot, SnapshotError, find_snapshots, open_snapshot, scan
from srearena.snapshots.inspection import inspect
from tests.snapshots import samples

REAL = Path(__file__).parents[3] / "shared" / "data" / "itbench"


@pytest.fixture(params=sorted(samples.LAYOUTS))
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    directory = samples.LAYOUTS[request.param](tmp_path)
    opened = open_snapshot(directory, cache=tmp_path / "cache")
    request.addfinalizer(opened.close)
    return opened


def test_alerts_have_a_capture_time_and_an_entity(snapshot: Snapshot) -> None:
    alerts = [alert for alert in snapshot.alerts() if alert.alertname == "RequestErrorRate"]
    assert len(alerts) == samples.MINUTES - samples.FAILED - 1
    first = alerts[0]
    assert (first.observed_at, first.active_at) == (samples.at(12), samples.at(12))
    assert (first.entity, first.namespace, first.severity, first.value) == ("checkout", "shop", "critical", 0.5)


def test_events_name_the_object_they_are_about(snapshot: Snapshot) -> None:
    events = list(snapshot.events())
    assert [event.reason for event in events] == ["Started", "ScalingReplicaSet", "BackOff", "Unhealthy"]
    back_off = events[2]
    assert (back_off.kind, back_off.namespace, back_off.name) == ("Pod", "shop", samples.PAYMENT_POD)
    assert (back_off.type, back_off.count, back_off.time) == ("Warning", 3, samples.at(samples.FAILED))


def test_objects_have_a_new_version_only_when_more_than_bookkeeping_changed(snapshot: Snapshot) -> None:
    versions = [(v.kind, v.name, v.observations) for v in snapshot.objects() if v.kind == "Deployment"]
    assert versions == [("Deployment", "checkout", 4), ("Deployment", "payment", 2), ("Deployment", "payment", 2)]


def test_logs_keep_their_newlines_quotes_and_places(snapshot: Snapshot) -> None:
    logs = list(snapshot.logs())
    assert len(logs) == 29
    assert logs[0].body == 'order 1000 placed\nfor a "good" customer'
    assert (logs[0].service, logs[0].severity, logs[0].namespace) == ("checkout", "INFO", "shop")
    assert logs[0].pod == samples.CHECKOUT_POD


def test_spans_have_durations_in_nanoseconds_whatever_the_file_says(snapshot: Snapshot) -> None:
    spans = [span for span in snapshot.spans() if span.service == "payment"]
    assert [span.duration_ns for span in spans] == [50_000_000] * 11 + [500_000_000] * 9
    assert {(span.kind, span.status) for span in spans} == {("Server", "Unset"), ("Server", "Error")}


def test_metrics_belong_to_exactly_one_object(snapshot: Snapshot) -> None:
    objects = snapshot.rows("SELECT DISTINCT object_kind AS k, object_name AS n FROM metrics ORDER BY k, n")
    assert [(row["k"], row["n"]) for row in objects] == [
        ("pod", samples.CHECKOUT_POD),
        ("pod", samples.PAYMENT_POD),
        ("service", "checkout"),
        ("service", "checkout-proxy"),
    ]
    sample = next(snapshot.metrics())
    assert (sample.metric, sample.value, sample.time) == ("container_cpu_usage_seconds_total", 6.0, samples.at(0))


def test_the_answer_key_is_read_from_any_envelope(snapshot: Snapshot) -> None:
    key = snapshot.answer_key()
    assert key is not None
    assert [(group.kind, group.filters) for group in key.roots] == [("Deployment", ("payment",))]
    assert [(step.source, step.target) for step in key.propagations] == [("payment-1", "checkout-1")]


def test_inspection_finds_nothing_wrong(snapshot: Snapshot) -> None:
    found = inspect(snapshot)
    assert found.problems == []
    assert {facts.table: facts.rows for facts in found.tables}["spans"] == 60


def test_scenarios_are_found_however_deep_they_lie(tmp_path: Path) -> None:
    nested = samples.write_nested(tmp_path)
    flat = samples.write_raw(tmp_path / "sre" / "Scenario-9")
    assert find_snapshots(tmp_path) == sorted([nested, flat])


def test_entities_of_the_second_version_are_all_roots(tmp_path: Path) -> None:
    path = tmp_path / "groundtruth.yaml"
    entity = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flags", "namespace": "shop"}}
    path.write_text(json.dumps({"apiVersion": "itbench.io/v2", "spec": {"entities": [entity], "alerts": []}}))
    key = parse_ground_truth(load_document(path), default_id="1")
    assert (key.format, [group.id for group in key.roots]) == ("v2", ["shop/ConfigMap/flags"])


def test_real_answer_keys_are_read() -> None:
    if not REAL.is_dir():
        pytest.skip("the public ITBench files are not here")
    paths = sorted(REAL.glob("*/groundtruth*.yaml"))
    keys = [parse_ground_truth(load_document(path), default_id=path.parent.name) for path in paths]
    assert {"v1", "v2"} <= {key.format for key in keys}
    assert all(key.roots for key in keys if key.groups)


def test_links_out_of_the_snapshot_are_not_followed(tmp_path: Path) -> None:
    directory = samples.write_raw(tmp_path / "Scenario-7")
    secret = tmp_path / "elsewhere.tsv"
    (directory / "otel_logs_raw.tsv").rename(secret)
    (directory / "otel_logs_raw.tsv").symlink_to(secret)
    layout = scan(directory)
    assert layout.tables["logs"] == ()
    assert any("link out of the snapshot" in line for line in layout.oddities)


def test_a_directory_without_a_snapshot_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="no snapshot at"):
        open_snapshot(tmp_path / "nowhere")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SnapshotError, match="it is a file"):
        open_snapshot(file)
    with open_snapshot(tmp_path, cache=tmp_path / "cache") as empty:
        assert list(empty.alerts()) == []
        assert inspect(empty).problems


def test_a_directory_of_tables_stands_for_the_scenario_above_it(tmp_path: Path) -> None:
    scenario = samples.write_recorder(tmp_path / "Scenario-7")
    inside, outside = scan(scenario / "raw"), scan(scenario)
    assert inside == outside and inside.root == scenario
    assert find_snapshots(tmp_path) == [scenario]
    assert {path.parent.name for path in inside.metrics} == {"metrics_pod", "metrics_service"}
    short = scan(scenario / "lite")
    assert [path.parent.name for path in short.sources("events")] == ["lite"] and short.alerts == outside.alerts


def test_the_column_of_buckets_holds_a_status_below_a_foreign_header(tmp_path: Path) -> None:
    scenario = samples.write_recorder(tmp_path / "Scenario-7")
    with open_snapshot(scenario, cache=tmp_path / "cache") as snapshot:
        rows = snapshot.rows("SELECT DISTINCT metric, le, status_code FROM series WHERE object_kind = 'service'")
    calls = [row for row in rows if row["metric"] == "traces_span_metrics_calls_total"]
    assert [(row["le"], row["status_code"]) for row in calls] == [(None, "STATUS_CODE_ERROR")]
    assert {row["le"] for row in rows if row not in calls} == {"10", "100", "1000", "+Inf"}
