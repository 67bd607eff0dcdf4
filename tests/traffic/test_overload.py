"""A server above its capacity: what its clients, its metrics, its traces and its logs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from srearena.cluster.embedded.traffic.grpc_status import parse_status, returned_status
from srearena.cluster.embedded.traffic.load import Driver
from srearena.cluster.embedded.traffic.outcomes import REFUSAL_SECONDS
from srearena.cluster.embedded.traffic.spans import Span
from tests.traffic.small_applications import Lab, load, server

QUEUE = 20


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Twice the load that a server with a queue of twenty can take."""
    worker = server("worker", cpu="10ms", queue=QUEUE, queue_error="rpc error: code = ResourceExhausted desc = full")
    worker["operations"]["work"]["failure_log"] = "{time} refused: {error} span={span_id}"
    worker["operations"]["work"]["log"] = "{time} done span={span_id}"
    lab = Lab(tmp_path_factory.mktemp("lab"), [worker, load("worker", 200)])
    lab.run("worker", port=8080, resources={"limits": {"cpu": "1"}})
    lab.run("load")
    lab.wait(300)
    return lab


def spans_of(lab: Lab, service: str, kind: str) -> list[Span]:
    spans = [span for span in lab.assembly.telemetry.spans.all_spans() if (span.service, span.kind) == (service, kind)]
    assert len(spans) > 150
    return spans


@pytest.mark.parametrize(("service", "kind"), [("worker", "server"), ("load", "client")])
def test_a_refusal_takes_no_time_in_metrics_and_traces(refusing: Lab, service: str, kind: str) -> None:
    counters = refusing.traffic.counters
    (row,) = [row for row, key in enumerate(counters.keys) if (key.service, key.kind) == (service, kind)]
    assert counters.bad[row] == pytest.approx(counters.good[row], rel=0.15), "half of the load is too much"
    assert counters.bad_seconds[row] / counters.bad[row] < 0.003
    assert counters.seconds[row] / counters.good[row] == pytest.approx(QUEUE * 0.01, rel=0.2)
    spans = spans_of(refusing, service, kind)
    refused = [span.duration for span in spans if span.status == "error"]
    assert max(refused) < 0.005
    if kind == "server":
        assert all(seconds == pytest.approx(REFUSAL_SECONDS) for seconds in refused)
    assert len(refused) / len(spans) == pytest.approx(0.5, abs=0.1)


def test_no_request_waits_longer_than_the_queue_allows(refusing: Lab) -> None:
    # Twenty requests of ten milliseconds each, whose times vary.
    assert max(span.duration for span in spans_of(refusing, "worker", "server")) < 2 * QUEUE * 0.01


def test_statuses_are_those_of_the_server(refusing: Lab) -> None:
    for kind, service in (("server", "worker"), ("client", "load")):
        codes = {dict(span.attributes)["rpc.grpc.status_code"] for span in spans_of(refusing, service, kind)}
        assert codes == {0, 8}


def test_log_lines_lie_within_their_spans(refusing: Lab) -> None:
    spans = {f"{span.span_id:016x}": span for span in spans_of(refusing, "worker", "server")}
    times = {}
    for kubelet in refusing.assembly.nodes.kubelets.values():
        for sandbox in kubelet.machine.sandboxes.values():
            for records in sandbox.records.values():
                for record in records:
                    for line in record.log.lines():
                        found = re.search(rb"span=([0-9a-f]{16})", line.text)
                        if found is not None:
                            times[found[1].decode()] = line.time
    together = times.keys() & spans.keys()
    assert len(together) > 150
    for name in together:
        assert spans[name].start <= times[name] <= spans[name].end


def test_spans_do_not_end_in_the_future(tmp_path: Path) -> None:
    lab = Lab(tmp_path, [server("slow", operation={"latency": "5s"}), load("slow", 20)])
    lab.run("slow", port=8080)
    lab.run("load")
    lab.wait(60)
    for _ in range(10):
        lab.wait(0.7)
        spans = list(lab.assembly.telemetry.spans.all_spans())
        assert spans
        assert max(span.end for span in spans) <= lab.world.clock.now


@pytest.mark.parametrize("connections", [5, 100])
def test_a_client_has_no_more_requests_in_flight_than_connections(tmp_path: Path, connections: int) -> None:
    lab = Lab(tmp_path, [server("worker", cpu="10ms"), load("worker", 1000)])
    lab.run("worker", port=8080, resources={"limits": {"cpu": "1"}})
    lab.run("load", env=[{"name": "RATE", "value": "10"}])
    lab.wait(60)
    (driver,) = lab.traffic.drivers.values()
    driver.connections = connections
    driver.rate = 1000.0
    for second in range(30):
        lab.wait(1)
        assert in_flight(lab, driver) <= connections * 1.001
        assert second < 10 or in_flight(lab, driver) > connections * 0.9, "all connections are busy all the time"
    # A queue of n requests keeps its server busy for n/(n+1) of the time (M/M/1).
    throughput = 100 * connections / (connections + 1)
    assert lab.rate("worker", "work") == pytest.approx(throughput, rel=0.05)
    assert lab.response("worker", "work") == pytest.approx(connections / throughput, rel=0.1)


def in_flight(lab: Lab, driver: Driver) -> float:
    """The larger of two counts: the client's, and the server's queue."""
    queued = sum(float(lab.fluid.waiting[n.index]) for n in lab.fluid.graph.nodes if n.server.name == "worker")
    return max(sum(driver.in_flight), queued)


def test_users_wait_for_their_responses(tmp_path: Path) -> None:
    users = load("worker", 0)
    users["drives"] = {"users": 40, "wait": [0, 0.1], "tasks": users["drives"]["tasks"]}
    lab = Lab(tmp_path, [server("worker", cpu="10ms"), users])
    lab.run("worker", port=8080, resources={"limits": {"cpu": "1"}})
    lab.run("load")
    lab.wait(60)
    (driver,) = lab.traffic.drivers.values()
    for _ in range(20):
        lab.wait(1)
        assert in_flight(lab, driver) <= 40 * 1.001
    assert lab.rate("worker", "work") == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize(
    ("runtime", "error", "code", "message"),
    [
        ("go", "rpc error: code = Unavailable desc = down", 14, "down"),
        ("go", "no luck", 2, "no luck"),
        ("node", "14 UNAVAILABLE: down", 14, "down"),
        ("java", "java.lang.NullPointerException", 2, "Application error processing RPC"),
        ("java", "Status{code=UNAVAILABLE, description=null, cause=null}", 14, ""),
        ("dotnet", 'Status(StatusCode="FailedPrecondition", Detail="full")', 9, "full"),
        ("dotnet", "NullReferenceException", 2, "Exception was thrown by handler."),
        ("python", "boom", 2, "Exception calling application: boom"),
    ],
)
def test_servers_pass_statuses_on_as_their_libraries_do(runtime: str, error: str, code: int, message: str) -> None:
    status = returned_status(runtime, error)
    assert (status.code, status.message) == (code, message)
    for language in ("go", "node", "java", "dotnet", "python", "cpp"):
        assert parse_status(status.text(language)) == status
