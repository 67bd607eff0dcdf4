"""Who was hit through whom, from spans made by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srearena.observer.recording.log_lines import severity, span_id, trace_id
from srearena.observer.recording.propagation import Propagation
from srearena.observer.tables import Row
from srearena.observer.window import format_timestamp

FAULT = 1_000_000.0


def _span(trace: int, span: str, parent: str, who: str, kind: str, at: float, **more: object) -> Row:
    return {
        "timestamp": format_timestamp(at),
        "trace_id": str(trace),
        "span_id": span,
        "parent_span_id": parent,
        "service": who,
        "operation": more.pop("operation", "call"),
        "kind": kind,
        "duration_us": more.pop("duration", 1000),
        "status": "ERROR" if more.pop("failed", False) else "UNSET",
        "tags": more.pop("tags", {}),
        "resource": {},
    }


def _traffic(after_fault: dict[str, object]) -> Iterator[Row]:
    """`web` calls `api`, `api` calls `store` (which sends no spans) once a second for a minute before and after."""
    for second in range(-60, 60):
        at, late = FAULT + second, second >= 0
        failed = bool(late and after_fault.get("fails"))
        slow = 500_000 if late and after_fault.get("slow") else 1000
        yield _span(second, "a", "", "web", "server", at, failed=failed, duration=slow)
        yield _span(second, "b", "a", "web", "client", at, failed=failed, duration=slow, tags={"peer.service": "api"})
        yield _span(second, "c", "b", "api", "server", at, failed=failed, duration=slow)
        tags = {"server.address": "store.shop.svc.cluster.local"}
        yield _span(second, "d", "c", "api", "client", at, failed=failed, duration=slow, tags=tags)
        if not failed:
            yield _span(second, "e", "c", "api", "client", at, tags={"peer.service": "mail"})
        yield _span(second, "f", "", "other", "server", at)


def _spread(**after_fault: object) -> Propagation:
    return Propagation(_traffic(after_fault), FAULT, FAULT - 60, FAULT + 60, lambda name: name)


def _edges(spread: Propagation, *roots: str) -> list[tuple[str, str]]:
    return [(step.source, step.target) for step in spread.steps_from(roots, "it broke")]


def test_failures_go_up_the_calls_and_starve_what_is_called_after() -> None:
    spread = _spread(fails=True)
    assert set(spread.affected) == {"web", "api", "store", "mail"}
    assert _edges(spread, "store") == [("store", "api"), ("api", "web"), ("api", "mail")]
    assert spread.origins() == ["store"]


def test_slowness_goes_up_the_calls() -> None:
    spread = _spread(slow=True)
    assert "slow" in spread.affected["web"]
    assert _edges(spread, "store") == [("store", "api"), ("api", "web")]


def test_where_nothing_happened_nothing_spread() -> None:
    spread = _spread()
    assert spread.affected == {}
    assert _edges(spread, "store") == []


def test_what_is_not_called_is_not_reached() -> None:
    assert _edges(_spread(fails=True), "other") == []


def test_calls_by_address_belong_to_who_usually_answers_them() -> None:
    def spans() -> Iterator[Row]:
        for second in range(-60, 60):
            at, failed = FAULT + second, second >= 0
            yield _span(second, "a", "", "web", "server", at, failed=failed)
            tags = {"server.address": "10.1.2.3"}
            yield _span(second, "b", "a", "web", "client", at, failed=failed, operation="/Rate/Get", tags=tags)
            if not failed:
                yield _span(second, "c", "b", "rate", "server", at)

    spread = Propagation(spans(), FAULT, FAULT - 60, FAULT + 60, lambda name: name)
    assert _edges(spread, "rate") == [("rate", "web")]


def test_pods_that_do_not_come_up_are_hit_by_what_their_logs_name() -> None:
    spread = Propagation(
        [], FAULT, FAULT - 60, FAULT + 60, lambda name: name, {"rate": "CrashLoopBackOff"}, {"db": ["rate"]}
    )
    assert _edges(spread, "db") == [("db", "rate")]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ('{"level":"error","msg":"x"}', "ERROR"),
        ("level=warning msg=x", "WARN"),
        ("E0105 09:00:00.1 1 x.go:1] failed", "ERROR"),
        ('{"t":{"$date":"2026"},"s":"W","c":"NETWORK"}', "WARN"),
        ("2026/01/05 09:00:00 [error] 7#7: refused", "ERROR"),
        ("2026-01-05T09:00:00Z PNC cmd/db.go:30 > no such host", "FATAL"),
        ("[2026-01-05] <error>: (ClientPool.h:114) Failed to connect", "ERROR"),
        ("panic: dial tcp", "FATAL"),
        ("INFO started", "INFO"),
        ("information about errors: none", ""),
        (" 99.900%    6.45ms", ""),
    ],
)
def test_lines_say_how_severe_they_are(line: str, level: str) -> None:
    assert severity(line) == level


def test_lines_say_which_trace_they_belong_to() -> None:
    assert trace_id('{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}') == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert trace_id("no trace here") == ""
    assert span_id("trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7 done") == "00f067aa0ba902b7"
    assert span_id("[trace_id=0 span_id=0]") == ""
