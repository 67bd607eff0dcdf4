"""What traffic leaves behind: metrics, spans and logs that agree with each other."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from tests.traffic.small_applications import Lab, load, server


def latest(lab: Lab, name: str, **labels: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The youngest sample of every series of a metric."""
    matchers = [Matcher("__name__", "=", name), *(Matcher(key, "=", value) for key, value in labels.items())]
    now = lab.world.clock.now
    found = {}
    for series, times, values in lab.assembly.telemetry.metrics.select(matchers, now - 60, now):
        if len(times):
            found[tuple(series)] = float(values[-1])
    return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    front = server("front", dependencies={"back": {"address": "back:8080", "protocol": "grpc"}})
    front["operations"]["work"] |= {
        "span": "shop.Front/Work",
        "does": [{"call": "back work", "span": "shop.Back/Work"}],
        "log": "{time} work done trace_id={trace_id}",
        "failure_log": "{time} work failed: {error} trace_id={trace_id}",
    }
    back = server("back", operation={"span": "shop.Back/Work", "fails": 0.2, "error": "no luck"})
    lab = Lab(tmp_path_factory.mktemp("lab"), [front, back, load("front", 40)])
    lab.run("front", port=8080)
    lab.run("back", port=8080)
    lab.run("load")
    lab.wait(600)
    return lab


def test_span_metrics_count_calls_and_errors(lab: Lab) -> None:
    name = "traces_span_metrics_calls_total"
    (good,) = latest(lab, name, service_name="back", status_code="STATUS_CODE_UNSET").values()
    (bad,) = latest(lab, name, service_name="back", status_code="STATUS_CODE_ERROR").values()
    assert bad / (good + bad) == pytest.approx(0.2, abs=0.01)
    assert good == int(good), "a counter of calls counts whole calls"


def test_histograms_add_up(lab: Lab) -> None:
    name = "traces_span_metrics_duration_milliseconds"
    chosen = {"service_name": "front", "span_kind": "SPAN_KIND_SERVER", "status_code": "STATUS_CODE_UNSET"}
    (count,) = latest(lab, f"{name}_count", **chosen).values()
    buckets = latest(lab, f"{name}_bucket", **chosen)
    by_bound = {float(dict(key)["le"]): value for key, value in buckets.items()}
    ordered = [by_bound[bound] for bound in sorted(by_bound)]
    assert ordered == sorted(ordered)
    assert by_bound[float("inf")] == count


def test_spans_and_metrics_agree_on_errors(lab: Lab) -> None:
    spans = [span for span in lab.assembly.telemetry.spans.all_spans() if span.service == "back"]
    assert len(spans) > 300
    share = sum(span.status == "error" for span in spans) / len(spans)
    assert share == pytest.approx(0.2, abs=0.06)


def test_a_trace_hangs_together(lab: Lab) -> None:
    for _, trace in list(lab.assembly.telemetry.spans.latest_first())[:50]:
        by_id = {span.span_id: span for span in trace.spans}
        for span in trace.spans:
            parent = by_id.get(span.parent_id)
            if parent is not None:
                assert parent.start - 1e-9 <= span.start
                assert span.end <= parent.end + 1e-6


def test_log_lines_name_traces_that_exist(lab: Lab) -> None:
    lines = lab.logs("front").splitlines()
    named = [line.rpartition("trace_id=")[2] for line in lines if "trace_id=" in line]
    assert len(named) > 300
    discovered_addresses = {f"{trace.trace_id:032x}" for _, trace in lab.assembly.telemetry.spans.latest_first()}
    assert set(named) <= discovered_addresses
    assert any("work failed" in line and "no luck" in line for line in lines)


def test_processor_time_follows_the_load(lab: Lab) -> None:
    (used,) = (
        value
        for key, value in latest(lab, "container_cpu_usage_seconds_total", container="main").items()
        if dict(key)["pod"].startswith("back")
    )
    # Forty requests a second at a millisecond each, for some ten minutes.
    assert used == pytest.approx(0.04 * 580, rel=0.15)


def test_runtimes_tell_of_themselves(lab: Lab) -> None:
    assert len(latest(lab, "go_goroutine_count")) == 2
