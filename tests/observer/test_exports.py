"""Telemetry of a window on disk: complete, whatever the format and the size of the pages."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from srearena.cluster.in_process import InProcessCluster
from srearena.observer import Format, LogApi, MetricApi, ObserverError, TraceApi, Window
from srearena.observer.source import Params
from tests.observer.conftest import START, WINDOW_SECONDS

WINDOW = Window(START, START + WINDOW_SECONDS)


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT * FROM '{path}'")
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def metrics(cluster: InProcessCluster) -> Any:
    with MetricApi(cluster.telemetry.prometheus, cluster.telemetry.token) as api:
        yield api


@pytest.fixture
def logs(cluster: InProcessCluster) -> Any:
    with LogApi(cluster.telemetry.loki, cluster.telemetry.token) as api:
        yield api


@pytest.fixture
def traces(cluster: InProcessCluster) -> Any:
    with TraceApi(cluster.telemetry.jaeger, cluster.telemetry.token) as api:
        yield api


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_metrics_are_the_samples_as_they_were_scraped(metrics: MetricApi, tmp_path: Path, format: Format) -> None:
    names = ["up", "kube_pod_info", "node_time_seconds"]
    export = metrics.export(WINDOW, tmp_path, format, names=names)
    rows = rows_of(export.path)
    assert export.path == tmp_path / f"metrics.{format}"
    assert export.rows == len(rows) > 100
    assert {row["metric"] for row in rows} == set(names)
    clocks = [row for row in rows if row["metric"] == "node_time_seconds" and "worker-1" in str(row["labels"])]
    assert len(clocks) == WINDOW_SECONDS / 15
    assert len({str(row["timestamp"]) for row in clocks}) == len(clocks)
    assert sorted(tmp_path.iterdir()) == [export.path]


def test_all_metrics_are_found_without_being_named(metrics: MetricApi, tmp_path: Path) -> None:
    export = metrics.export(Window.last(30, until=WINDOW.end), tmp_path)
    found = {row["metric"] for row in rows_of(export.path)}
    assert {"up", "container_memory_working_set_bytes", "kube_node_status_condition"} <= found
    assert found == set(metrics.names(Window.last(30, until=WINDOW.end)))


def test_slices_neither_lose_nor_repeat_samples(
    metrics: MetricApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [str(row) for row in metrics.samples(WINDOW, ["up"])]
    monkeypatch.setattr("srearena.observer.metric_api.SLICE_SECONDS", 45.0)
    assert sorted(str(row) for row in metrics.samples(WINDOW, ["up"])) == sorted(whole)
    points = [str(row) for row in metrics.results(WINDOW, "sum(up)", 15)]
    monkeypatch.setattr("srearena.observer.metric_api.MAX_POINTS", 3)
    assert [str(row) for row in metrics.results(WINDOW, "sum(up)", 15)] == points


def test_queries_become_tables(metrics: MetricApi, tmp_path: Path) -> None:
    queries = {"targets": "count(up)", "nothing": "absent(up)", "endless": "vector(1) / 0"}
    rows = rows_of(metrics.export_queries(WINDOW, queries, tmp_path, step=30).path)
    assert {row["metric"] for row in rows} == {"targets", "endless"}
    assert {row["value"] for row in rows if row["metric"] == "endless"} == {float("inf")}
    assert len([row for row in rows if row["metric"] == "targets"]) == 11


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("page", [3, 5000])
def test_logs_are_complete_and_in_order(cluster: InProcessCluster, tmp_path: Path, format: Format, page: int) -> None:
    endpoints = cluster.telemetry
    everything = Window(START - 600, START + WINDOW_SECONDS + 1)
    with LogApi(endpoints.loki, endpoints.token, page=page) as api:
        export = api.export(everything, tmp_path, format)
    rows = rows_of(export.path)
    assert export.rows == len(rows)
    total = httpx.get(
        f"{endpoints.loki}/loki/api/v1/index/stats",
        params={"query": '{job=~".+"}', "start": f"{everything.start}", "end": f"{everything.end}"},
        auth=("x", endpoints.token),
    ).json()["entries"]
    assert len(rows) == total > 50
    moments = [int(row["timestamp_ns"]) for row in rows]
    assert moments == sorted(moments)


@pytest.mark.parametrize("page", [7, 500])
def test_traces_are_complete_however_many_fit_an_answer(cluster: InProcessCluster, tmp_path: Path, page: int) -> None:
    with TraceApi(cluster.telemetry.jaeger, cluster.telemetry.token, page=page) as api:
        assert api.services() == ["cart", "frontend"]
        assert api.operations("cart") == ["Cart/Get"]
        rows = rows_of(api.export(WINDOW, tmp_path).path)
    assert len(rows) == 500
    assert len({row["trace_id"] for row in rows}) == 250
    failed = [row for row in rows if row["status"] == "ERROR"]
    assert len(failed) == 25
    one = failed[0]
    assert (one["service"], one["operation"], one["kind"]) == ("cart", "Cart/Get", "server")
    assert (one["status_message"], one["duration_us"]) == ("boom", 100_000)
    assert one["tags"]["rpc.grpc.status_code"] == "14"
    assert one["resource"] == {"k8s.pod.name": "cart-1"}
    assert json.loads(one["events"])[0]["exception.message"] == "refused"
    assert one["parent_span_id"] in {row["span_id"] for row in rows}


def test_a_window_in_which_nothing_happened_is_an_empty_table(
    metrics: MetricApi, logs: LogApi, traces: TraceApi, tmp_path: Path
) -> None:
    before = Window(START - 10_000, START - 9_000)
    for export in (metrics.export(before, tmp_path), logs.export(before, tmp_path), traces.export(before, tmp_path)):
        assert export.rows == 0
        assert rows_of(export.path) == []


def test_what_cannot_be_reached_is_said(cluster: InProcessCluster, tmp_path: Path) -> None:
    with pytest.raises(ObserverError, match=r"cannot reach Loki at http://127.0.0.1:9: .*is it running"):
        LogApi("http://127.0.0.1:9").export(WINDOW, tmp_path)
    with pytest.raises(ObserverError, match=r"Jaeger at .* rejects the token"):
        TraceApi(cluster.telemetry.jaeger, "wrong").export(WINDOW, tmp_path)
    with pytest.raises(ObserverError, match="is no address of Prometheus"):
        MetricApi("nonsense").export(WINDOW, tmp_path)
    with pytest.raises(ObserverError, match=r"Prometheus at .* refused /api/v1/label/__name__/values \(status 404\)"):
        MetricApi(cluster.telemetry.jaeger, cluster.telemetry.token).export(WINDOW, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_mistakes_in_queries_and_places_are_said(cluster: InProcessCluster, logs: LogApi, tmp_path: Path) -> None:
    with pytest.raises(ObserverError, match=r"refused /loki/api/v1/query_range .*parse error at line 1, col 2"):
        logs.export(WINDOW, tmp_path, query="{")
    with pytest.raises(ObserverError, match="'xml' is not a format"):
        logs.export(WINDOW, tmp_path, "xml")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(ObserverError, match="cannot write"):
        logs.export(WINDOW, tmp_path / "file")
    with pytest.raises(ObserverError, match="a window must end after it starts"):
        Window(10, 10)


class WrittenJaeger(TraceApi):
    """Responds with a text to every question about traces."""

    def __init__(self, text: str) -> None:
        super().__init__("http://127.0.0.1:1")
        self._text = text

    def services(self) -> list[str]:
        return ["frontend", "cart"]

    def body(self, path: str, params: Params) -> bytes:
        return self._text.encode()


def test_traces_are_read_once_however_their_response_is_written() -> None:
    misleading = '{"traceID":"ff","spans":['
    span = {"spanID": "b", "tags": [{"key": "body", "value": misleading}], "references": []}
    traces: list[dict[str, Any]] = [
        {"traceID": name, "spans": [span], "processes": {}, "warnings": None} for name in ("a1", "a2")
    ]
    traces.append({"traceID": "a3", "spans": None, "processes": {}, "warnings": None})
    rest = {"total": 0, "limit": 0, "offset": 0, "errors": None}
    jaegers = json.dumps({"data": traces, **rest}, separators=(",", ":"))
    indented = json.dumps({"data": traces, **rest}, indent=2)
    reordered = json.dumps({**rest, "data": [dict(sorted(trace.items())) for trace in traces]}, separators=(",", ":"))
    for text in (jaegers, indented, reordered):
        with WrittenJaeger(text) as api:
            assert list(api.traces(WINDOW)) == traces, "each trace once, though two services took part in it"
    with WrittenJaeger('{"data":null,"total":0}') as api:
        assert list(api.traces(WINDOW)) == []
