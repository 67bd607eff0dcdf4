"""However large a snapshot is, a call reads a bounded part of it, and says so."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sre_tools.offline_incident_analysis import Workspace, call_tool, metric_series, trace_tree
from sre_tools.offline_incident_analysis.tools import metrics
from srearena.snapshots import Snapshot
from tests.snapshots import samples
from tests.sre_tools.conftest import Ask

BEFORE = {"end_time": "2025-06-01T10:05:00Z"}


def test_metric_analysis_without_arguments_reads_no_points(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: Any) -> None:
        raise AssertionError("points were read")

    monkeypatch.setattr(Snapshot, "arrays", refuse)
    reply = ask("metric_analysis")
    assert reply["total_count"] == 6
    assert reply["data"][0]["max"] == 2e8


def test_metric_analysis_over_a_time_range_looks_at_so_many_series(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ask("metric_analysis", **BEFORE)
    assert {row["count"] for row in whole["data"]} == {6} and whole["notes"] == []
    monkeypatch.setattr(metrics, "_MAX_SERIES", 2)
    part = ask("metric_analysis", **BEFORE)
    assert part["total_count"] == 2
    assert any("the first 2 were looked at" in note for note in part["notes"])


def test_pages_of_metric_analysis_are_the_whole(ask: Ask) -> None:
    whole = ask("metric_analysis")["data"]
    pages = [ask("metric_analysis", limit=2)]
    while pages[-1]["next_cursor"]:
        pages.append(ask("metric_analysis", limit=2, cursor=pages[-1]["next_cursor"]))
    assert [row for page in pages for row in page["data"]] == whole


def test_single_samples_are_of_so_many_series(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("metric_analysis", verbosity="raw")["total_count"] == 4 * 20 + 2 * 100
    assert ask("metric_analysis", verbosity="raw", **BEFORE)["total_count"] == 4 * 6 + 2 * 30
    monkeypatch.setattr(metrics, "_MAX_RAW_SERIES", 1)
    reply = ask("metric_analysis", verbosity="raw")
    assert reply["total_count"] == 20
    assert "narrow by object" in reply["notes"][0]


def test_anomalies_are_looked_for_in_so_many_points(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("get_metric_anomalies", k8_object_name="Deployment/payment")["summary"]["series"] == 2
    monkeypatch.setattr(metric_series, "MAX_POINTS", 25)
    reply = ask("get_metric_anomalies", k8_object_name="Deployment/payment")
    assert reply["summary"]["series"] == 1
    assert "1 more series match" in reply["notes"][0]


def test_of_too_many_traces_some_stand_for_all(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def payment(reply: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = next(r for r in reply["data"] if r["path"] == "frontend → checkout → payment")
        return found

    whole = ask("get_trace_error_tree", delta_time="1h")
    assert whole["notes"] == []
    monkeypatch.setattr(trace_tree, "MAX_SPANS", 30)
    part = ask("get_trace_error_tree", delta_time="1h")
    assert "1 in 2 traces" in part["notes"][0]
    assert 0 < payment(part)["post"]["spans"] < payment(whole)["post"]["spans"]
    assert payment(part)["post"]["error_pct"] == 100.0
    assert part["summary"]["root_cause_suspect"]["service"] == "payment"


# -- the tree of calls, against one that is worked out span by span ----------------------------------------------------

SPANS = st.lists(
    st.tuples(
        st.sampled_from("abc"),  # service
        st.integers(-1, 15),  # parent's number, or one that is not there
        st.booleans(),  # failed
        st.integers(1, 50),  # milliseconds
    ),
    min_size=1,
    max_size=14,
)


def _by_hand(spans: list[tuple[str, int, bool, int]]) -> dict[str, tuple[int, int, int, float]]:
    """Path to spans, errors, own errors and mean self time, by following each span to its root."""
    found: dict[str, list[tuple[bool, bool, float]]] = defaultdict(list)
    for number, (_, _, failed, millis) in enumerate(spans):
        path: list[str] = []
        seen: set[int] = set()
        current = number
        while 0 <= current < len(spans) and current not in seen:
            seen.add(current)
            path.insert(0, spans[current][0])
            current = spans[current][1]
        if current in seen:
            continue  # in a circle: no root leads there
        short = [service for index, service in enumerate(path) if index == 0 or path[index - 1] != service]
        children = [span for index, span in enumerate(spans) if span[1] == number and index != number]
        own = failed and not any(child[2] for child in children)
        found[" → ".join(short)].append((failed, own, max(millis - sum(child[3] for child in children), 0)))
    return {
        path: (len(rows), sum(r[0] for r in rows), sum(r[1] for r in rows), sum(r[2] for r in rows) / len(rows))
        for path, rows in found.items()
    }


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans=SPANS)
def test_the_call_tree_is_what_following_each_span_gives(tmp_path_factory: pytest.TempPathFactory, spans: Any) -> None:
    place: Path = tmp_path_factory.mktemp("tree")
    rows = [
        {
            "Timestamp": samples.nanos(0),
            "TraceId": "t",
            "SpanId": f"s{number}",
            "ParentSpanId": f"s{parent}" if parent >= 0 else "",
            "ServiceName": service,
            "SpanKind": "Server",
            "Duration": millis * 1_000_000,
            "StatusCode": "Error" if failed else "Unset",
        }
        for number, (service, parent, failed, millis) in enumerate(spans)
    ]
    samples.write_tsv(place / "otel_traces_raw.tsv", samples.RAW_SPAN, rows)
    with Workspace(place, cache=place / "cache") as workspace:
        reply = call_tool(workspace, "get_trace_error_tree", {"max_tokens": 50_000})
    got = {
        row["path"]: (
            row["post"]["spans"],
            round(row["post"]["error_pct"] * row["post"]["spans"] / 100),
            row["own_errors"],
            row["post"]["self_ms"],
        )
        for row in reply["data"]
    }
    expected = {path: (*facts[:3], round(facts[3], 2)) for path, facts in _by_hand(spans).items()}
    assert got == expected
