"""The parts of an incident's documents: deviations, topology, waterfalls, changes of objects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from srearena.cluster.base import TelemetryEndpoints
from srearena.conductor.actions.parsing import parse
from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.episode.addresses import watching
from srearena.conductor.episode.episode import Episode
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.session import Session
from srearena.snapshots.examples import unpack
from srearena.view.incidents import objects
from srearena.view.incidents.base import IncidentError, LogQuery
from srearena.view.incidents.recorded import RecordedIncident
from srearena.view.incidents.signals import STEP, Signals, error_reading, latency_reading, rate_reading
from srearena.view.incidents.spans import jaeger_spans, trace_row, waterfall
from srearena.view.incidents.summary import belongs, graph
from srearena.view.incidents.topology import STORE, Topology, TracedSpan
from srearena.view.playing import action_of
from tests.view.results import HOSTILE

SHOP, CART = ("shop", "shop"), ("shop", "cart")


def signals_of(rates: list[float], failed: list[float], latencies: list[float]) -> Signals:
    signals = Signals()
    times = range(0, len(rates) * STEP, STEP)
    measures = {"requests": rates, "errors": failed, "latency": latencies}
    signals.extend(times, {(name, SHOP): dict(zip(times, points, strict=True)) for name, points in measures.items()})
    return signals


def test_the_baseline_is_what_was_measured_first_and_stays() -> None:
    healthy = 40
    signals = signals_of([100.0] * healthy, [0.0] * healthy, [10.0] * healthy)
    assert graph(signals, Topology())["services"][0]["level"] == 0
    times = range(healthy * STEP, (healthy + 60) * STEP, STEP)
    incident = {("requests", SHOP): 100.0, ("errors", SHOP): 30.0, ("latency", SHOP): 90.0}
    signals.extend(times, {name: dict.fromkeys(times, value) for name, value in incident.items()})
    service = graph(signals, Topology())["services"][0]
    assert service["requests"] == {"now": 100.0, "usual": 100.0, "level": 0}
    assert service["errors"] == {"now": 0.3, "usual": 0.0, "level": 2}
    assert service["latency"] == {"now": 90.0, "usual": 10.0, "level": 2}
    assert len(service["series"]["requests"]) == len(signals.times) == healthy + 60


@pytest.mark.parametrize(
    ("now", "level"), [(100.0, 0), (103.0, 0), (70.0, 0), (55.0, 1), (200.0, 1), (5.0, 2), (None, 2)]
)
def test_requests_deviate_strongly_only_where_they_all_but_stop(now: float | None, level: int) -> None:
    assert rate_reading(now, [97.0, 99.0, 100.0, 101.0, 103.0]).level == level


def test_what_was_never_measured_does_not_deviate() -> None:
    assert rate_reading(50.0, []).level == latency_reading(5.0, []).level == 0
    assert error_reading(None, []).level == 0
    assert error_reading(0.5, []).level == 2
    assert latency_reading(4.0, [1.9] * 20).level == 0, "two milliseconds are no deviation"


def test_services_appear_and_old_points_are_forgotten() -> None:
    signals = Signals()
    for begin in range(0, 3000, 500):
        times = range(begin * STEP, (begin + 500) * STEP, STEP)
        name = SHOP if begin < 1000 else CART
        signals.extend(times, {("requests", name): dict.fromkeys(times, 1.0)})
    assert len(signals.times) == len(signals.series("requests", SHOP)) == len(signals.series("requests", CART)) == 960
    assert signals.now("requests", SHOP) is None and signals.now("requests", CART) == 1.0


def span(
    name: str, parent: str, service: str, operation: str, kind: str, tags: dict[str, str] | None = None
) -> TracedSpan:
    return TracedSpan(name, parent, service, operation, kind, tags or {})


def test_a_dependency_keeps_its_place_when_it_stops_answering() -> None:
    topology = Topology()
    call = span("2", "1", "shop", "GetCart", "client")
    store = span("4", "3", "cart", "get", "client", {"db.system": "redis", "server.address": "cart-db.shop.svc"})
    topology.learn([span("1", "", "shop", "GET /", "server"), call, span("3", "2", "cart", "GetCart", "server"), store])
    topology.learn([call])  # nobody answers any more
    assert topology.callees == {("shop", "GetCart"): ("cart", "service"), ("cart", "get"): ("cart-db", STORE)}
    signals = Signals()
    times = range(0, 40 * STEP, STEP)
    values = {("sent", (*SHOP, "GetCart")): 9.0, ("sent errors", (*SHOP, "GetCart")): 9.0, ("requests", SHOP): 9.0}
    signals.extend(times, {name: dict.fromkeys(times, value) for name, value in values.items()})
    document = graph(signals, topology)
    assert [(edge["from"], edge["to"], edge["errors"]["now"]) for edge in document["edges"]] == [("shop", "cart", 1.0)]
    assert [node["name"] for node in document["services"]] == ["shop", "cart"]


def test_calls_without_client_metrics_are_divided_by_the_sampled_traces() -> None:
    topology = Topology()
    for number in range(4):
        caller = "shop" if number else "admin"
        topology.learn([span("1", "", caller, "GET /", "server"), span("2", "1", "cart", "GetCart", "server")])
    signals = Signals()
    times = range(0, 40 * STEP, STEP)
    signals.extend(times, {("requests", CART): dict.fromkeys(times, 8.0)})
    edges = graph(signals, topology)["edges"]
    assert [(edge["from"], edge["requests"]["now"], edge["sampled"]) for edge in edges] == [
        ("admin", 2.0, True),
        ("shop", 6.0, True),
    ]


def test_pods_belong_to_the_workload_of_their_name() -> None:
    assert belongs("cart-6d4cf56db6-x2x9p", "cart") and belongs("cart-0", "cart") and belongs("cart", "cart")
    assert not belongs("cart-db-6d4cf56db6-x2x9p", "cart") and not belongs("mycart-0", "cart")


def jaeger(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"traceID": "a1", "spans": spans, "processes": {"p": {"serviceName": "shop"}, "q": {"serviceName": HOSTILE}}}


def test_a_waterfall_survives_spans_in_any_order_and_in_circles() -> None:
    def one(name: str, parent: str, start: int, process: str = "p") -> dict[str, Any]:
        references = [{"refType": "CHILD_OF", "spanID": parent}] if parent else []
        tags = [{"key": "error", "value": True}] if process == "q" else []
        common = {"spanID": name, "operationName": "GET", "references": references, "processID": process, "tags": tags}
        return {**common, "startTime": start, "duration": 1000}

    spans = jaeger_spans(
        jaeger(one("c", "b", 20, "q"), one("b", "a", 10), one("a", "", 0), one("x", "y", 5), one("y", "x", 6))
    )
    rows = waterfall("a1", spans)["spans"]
    assert [(row["id"], row["depth"]) for row in rows] == [("a", 0), ("b", 1), ("c", 2)]
    row = trace_row("a1", spans)
    assert (row["spans"], row["failed"], row["milliseconds"]) == (5, 1, 1.02)
    assert row["services"] == sorted([HOSTILE, "shop"])


def test_changes_of_objects_are_more_than_their_bookkeeping() -> None:
    def deployment(name: str, replicas: int, version: str = "1") -> dict[str, Any]:
        metadata = {"namespace": "shop", "name": name, "resourceVersion": version, "managedFields": [{}]}
        return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}

    before = {
        objects.identity(one): one for one in (deployment("same", 1), deployment("scaled", 1), deployment("gone", 1))
    }
    after = [deployment("same", 1, "9"), deployment("scaled", 0), deployment("new", 1)]
    found = objects.changes("deployments", before, after)
    assert [(row["name"], row["change"], row["fields"]) for row in found] == [
        ("gone", "deleted", ""),
        ("new", "created", ""),
        ("scaled", "changed", "spec.replicas"),
    ]
    described = objects.described(before["shop", "scaled"], after[1])
    assert described["state"] == "changed" and "managedFields" not in described["yaml"]
    assert "secrets" not in objects.KINDS


def test_pods_and_nodes_are_listed_as_kubectl_does() -> None:
    waiting = {"ready": False, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{}, {}]}, "status": {"phase": "Running"}}
    pod["status"]["containerStatuses"] = [{"ready": True, "state": {"running": {}}}, waiting]
    row = objects.pod_row(pod)
    assert (row["ready"], row["status"], row["restarts"], row["level"]) == ("1/2", "CrashLoopBackOff", 4, 2)
    conditions = [{"type": "Ready", "status": "Unknown"}, {"type": "MemoryPressure", "status": "False"}]
    node = objects.node_row({"spec": {"unschedulable": True}, "status": {"conditions": conditions}})
    assert (node["status"], node["level"]) == ("NotReady, SchedulingDisabled", 2)


def test_what_is_published_of_an_episode_ends_with_its_log(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.publish({"application": "Hotel"})
    (document,) = tmp_path.glob("*.json")
    assert json.loads(document.read_text()) == {"application": "Hotel"}
    assert document.stat().st_mode & 0o777 == 0o600
    session.move(tmp_path / "kept" / "session.jsonl")
    assert not document.exists()


def test_what_killed_processes_have_published_is_swept(tmp_path: Path) -> None:
    (tmp_path / "killed.jsonl").touch()
    (tmp_path / "killed.json").write_text("{}")
    for path in tmp_path.iterdir():  # what is older than a log without its lock can be
        os.utime(path, (0, 0))
    first, second = Session(tmp_path), Session(tmp_path)
    first.publish({"number": 1})
    second.publish({"number": 2})
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted((first.session_id, second.session_id))
    for session in (first, second):
        session.close()


def test_what_is_published_names_nothing_of_the_problem(tmp_path: Path) -> None:
    problem = ProblemRegistry().get_problem("k8s_target_port-misconfig", None)
    episode = SimpleNamespace(
        problem=problem,
        kubeconfig=tmp_path / "kubeconfig",
        cluster=SimpleNamespace(telemetry=TelemetryEndpoints("http://p")),
    )
    document = watching(cast(Episode, episode))
    assert sorted(document) == ["application", "kubeconfig", "telemetry"]
    assert document["application"] == problem.app.name and problem.id not in json.dumps(document)


def test_a_recording_answers_as_a_running_system_does(tmp_path: Path) -> None:
    (directory, *_) = unpack(tmp_path)
    recording = RecordedIncident("recording:0", directory)
    try:
        check_state(recording)
        check_searches(recording)
        check_truth(recording)
    finally:
        recording.close()


def check_state(recording: RecordedIncident) -> None:
    overview = recording.overview()
    services = {service["name"]: service for service in overview["services"]}
    assert (services["cart"]["level"], services["cart"]["errors"]["level"]) == (2, 2)
    assert services["product-catalog"]["level"] == 0
    assert services["valkey-cart"]["kind"] == STORE
    calls = {(edge["from"], edge["to"]): edge["level"] for edge in overview["edges"]}
    assert calls["cart", "valkey-cart"] == 2 and calls["frontend-proxy", "frontend"] > 0
    assert overview["alerts"][0]["name"] == "HighRequestErrorRate"
    assert len(overview["times"]) == len(services["cart"]["series"]["errors"])
    cluster = recording.cluster()
    assert len(cluster["nodes"]) == 4 and {pod["level"] for pod in cluster["pods"]} == {0}
    assert cluster["events"][0]["at"] > cluster["events"][-1]["at"]
    (change,) = recording.objects("")["changes"]
    assert (change["name"], change["change"]) == ("flagd-config", "changed")
    assert recording.object("configmaps", "astronomy-shop", "flagd-config")["differences"]


def check_searches(recording: RecordedIncident) -> None:
    lines = recording.logs(LogQuery(text="CARTSTORE", workload="cart"))["lines"]
    assert lines and all("cartstore" in line["line"].lower() and line["pod"].startswith("cart") for line in lines)
    assert recording.logs(LogQuery(text="' OR 1=1 --"))["lines"] == []
    failed = recording.traces("cart", failed=True)["traces"]
    assert failed and all(row["failed"] and "cart" in row["services"] for row in failed)
    spans = recording.trace(failed[0]["id"])["spans"]
    assert len(spans) == failed[0]["spans"] and any(span["failed"] for span in spans)
    with pytest.raises(IncidentError, match="no trace"):
        recording.trace("'; DROP TABLE spans; --")
    with pytest.raises(IncidentError, match="is not one of"):
        recording.object("secrets", "", "a")


def check_truth(recording: RecordedIncident) -> None:
    answers = recording.overview(), recording.objects("deployments"), recording.row()
    assert "cartFailure" not in json.dumps(answers, default=str)
    truth = recording.truth()
    assert truth["roots"] == ["ConfigMap/flagd-config"] and "cartFailure" in truth["faults"][0]


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("kubectl get pods -l 'app=\"x\"'", 'kubectl("get pods -l \'app=\\"x\\"\'")'),
        ("  kubectl   ", 'kubectl("")'),
        ("get_alerts()", "get_alerts()"),
        ("kubectl_x", "kubectl_x"),
    ],
)
def test_a_line_of_the_terminal_is_an_action_of_an_agent(line: str, action: str) -> None:
    assert action_of(line) == f"```\n{action}\n```"
    if action.startswith(("kubectl(", "get")):
        call = parse(action_of(line), Toolbox.names())
        assert call.name == action.partition("(")[0]
