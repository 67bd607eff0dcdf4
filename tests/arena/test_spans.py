"""The check on spans: the same operations, calls and workloads as on the healthy system."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.conductor.oracles.checks import spans
from srearena.conductor.oracles.checks.spans import Spans


def trace(*calls: tuple[str, str, str], number: int = 0, failed: bool = False) -> dict[str, Any]:
    """A trace whose spans are (service, operation, pod), each called by the one before."""
    processes = {
        f"p{place}": {"serviceName": service, "tags": [{"key": "k8s.pod.name", "value": pod}]}
        for place, (service, _, pod) in enumerate(calls)
    }
    documents = []
    for place, (_, operation, _) in enumerate(calls):
        parent = [{"refType": "CHILD_OF", "spanID": f"s{place - 1}"}] if place else []
        tags = [{"key": "error", "value": True}] if failed else []
        documents.append(
            {"spanID": f"s{place}", "processID": f"p{place}", "operationName": operation, "references": parent}
            | {"tags": tags}
        )
    return {"traceID": f"t{number}", "spans": documents, "processes": processes}


HEALTHY = [("web", "GET /", "web-1-a"), ("web", "api.Get", "web-1-a"), ("api", "Get", "api-1-a")]


class StubTelemetry:
    served: dict[str, float]
    traces: list[dict[str, Any]]

    def __init__(self, cluster: object) -> None: ...

    def values(self, query: str, label: str) -> dict[str, float]:
        return self.served

    def trace_documents(self, start: float, end: float, limit: int) -> list[dict[str, Any]]:
        return self.traces

    def close(self) -> None: ...


class StubCluster:
    waited = 0.0

    def wait(self, seconds: float) -> None:
        self.waited += seconds


class StubKubernetes:
    """A namespace with the Deployments web and api, a pod of each, and a pod of no workload."""

    def now(self) -> str:
        return "2026-01-01T00:00:00Z"

    def list(self, resource: str, namespace: str) -> list[dict[str, Any]]:
        names = ("web", "api")
        match resource:
            case "deployments.apps":
                return [self._object(name, f"d-{name}", None, name) for name in names]
            case "replicasets.apps":
                return [self._object(f"{name}-1", f"r-{name}", f"d-{name}", name) for name in names]
            case "pods":
                pods = [self._object(f"{name}-1-a", f"p-{name}", f"r-{name}", name) for name in names]
                return [*pods, self._object("stub", "p-stub", None, "stub")]
        return []

    def _object(self, name: str, uid: str, owner: str | None, app: str) -> dict[str, Any]:
        owners = [{"uid": owner, "controller": True}] if owner else []
        return {
            "metadata": {"name": name, "uid": uid, "labels": {"app": app}, "ownerReferences": owners},
            "spec": {"selector": {"matchLabels": {"app": app}}},
        }


class StubProblem:
    namespace = "shop"

    def __init__(self) -> None:
        self.cluster = StubCluster()
        self.kubernetes = StubKubernetes()
        self.app = type("App", (), {"namespaces": ("shop",)})()
        self.baseline: Any = type("Baseline", (), {"facts": {}})()


@pytest.fixture
def problem(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A problem whose healthy system was observed."""
    monkeypatch.setattr(spans, "Telemetry", StubTelemetry)
    StubTelemetry.served = {"web GET /": 5.0, "api Get": 5.0, "api Rare": 0.01}
    StubTelemetry.traces = [trace(*HEALTHY, number=number) for number in range(20)]
    found = StubProblem()
    found.baseline.facts["spans"] = Spans().record_baseline(found)  # type: ignore[arg-type]
    return found


def test_the_healthy_system_is_content(problem: Any) -> None:
    assert Spans().complaints(problem) == []
    assert problem.cluster.waited == 0


def test_rare_operations_and_calls_may_be_missing(problem: Any) -> None:
    StubTelemetry.served = {"web GET /": 5.0, "api Get": 5.0}
    StubTelemetry.traces = StubTelemetry.traces[:3]
    assert Spans().complaints(problem) == []


def test_an_operation_that_is_not_served_any_more(problem: Any) -> None:
    StubTelemetry.served = {"web GET /": 5.0, "api Get": 0.0}
    assert Spans().complaints(problem) == ["api Get is not served any more"]
    assert problem.cluster.waited >= 120


def test_a_server_that_only_answers_ends_the_traces(problem: Any) -> None:
    StubTelemetry.traces = [trace(*HEALTHY[:2], number=number) for number in range(20)]
    assert Spans().complaints(problem) == ["web api.Get does not call api Get any more"]


def test_calls_that_depend_on_a_cache_are_left_out(problem: Any) -> None:
    hits = [trace(*HEALTHY[:2], number=number) for number in range(10)]
    StubTelemetry.traces = [*hits, *(trace(*HEALTHY, number=10 + number) for number in range(10))]
    problem.baseline.facts["spans"] = Spans().record_baseline(problem)
    StubTelemetry.traces = hits * 2
    assert Spans().complaints(problem) == []


def test_failed_spans_are_not_expected_to_call(problem: Any) -> None:
    failed = [trace(*HEALTHY[:2], number=number, failed=True) for number in range(20)]
    StubTelemetry.traces = [*failed, *StubTelemetry.traces]
    assert Spans().complaints(problem) == []


def test_spans_of_a_pod_that_no_workload_owns(problem: Any) -> None:
    imitated = [*HEALTHY[:2], ("api", "Get", "stub")]
    StubTelemetry.traces = [*StubTelemetry.traces, trace(*imitated, number=99)]
    assert Spans().complaints(problem) == ["api runs in pods of no workload"]


def test_spans_of_another_workload(problem: Any) -> None:
    imitated = [*HEALTHY[:2], ("api", "Get", "web-1-a")]
    StubTelemetry.traces = [trace(*imitated, number=number) for number in range(20)]
    assert Spans().complaints(problem) == ["api runs in pods of web"]


def test_without_traces_nothing_is_expected(problem: Any) -> None:
    StubTelemetry.served, StubTelemetry.traces = {}, []
    problem.baseline.facts["spans"] = Spans().record_baseline(problem)
    assert Spans().complaints(problem) == []
