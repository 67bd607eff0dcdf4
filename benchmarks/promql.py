"""Range queries here and in the real Prometheus beside us, on the same samples, in one run.

Run it with `python -m benchmarks.promql [--pods N] [--hours H]`; figures belong in docs/benchmarks.md. Ours is asked
through the API's handler, the real one over loopback HTTP; both write their JSON, which is discarded. Where Prometheus
is not installed only our own times are shown.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from tests.promql.real_prometheus import BINARY, running
from tests.promql.samples import INTERVAL, START, SampleSeries, loaded

SERVICES = 20
BOUNDS = ("5", "10", "25", "50", "100", "250", "500", "1000", "2500", "5000", "+Inf")
QUERIES = {
    "one gauge": 'container_memory_working_set_bytes{pod="pod-7"}',
    "every gauge": "container_memory_working_set_bytes",
    "sum of rates": "sum(rate(container_cpu_usage_seconds_total[5m]))",
    "rates by service": "sum by (service) (rate(container_cpu_usage_seconds_total[5m]))",
    "error ratio": ('sum by (service) (rate(calls_total{code="500"}[2m])) / sum by (service) (rate(calls_total[2m]))'),
    "p95 by service": "histogram_quantile(0.95, sum by (service, le) (rate(duration_bucket[5m])))",
    "memory against limits": "container_memory_working_set_bytes / on(pod) group_left kube_pod_limit",
    "busiest ten": "topk(10, rate(container_cpu_usage_seconds_total[5m]))",
    "maximum over an hour": "max_over_time(container_memory_working_set_bytes[1h])",
    "quantile over time": "quantile_over_time(0.9, container_memory_working_set_bytes[10m])",
    "subquery": "max_over_time(sum by (service) (rate(container_cpu_usage_seconds_total[2m]))[10m:1m])",
    "regular expression": 'sum by (pod) (rate(container_cpu_usage_seconds_total{pod=~"pod-[0-9]*[13579]"}[5m]))',
}


def samples(pods: int, hours: float) -> list[SampleSeries]:
    chance = random.Random(1)
    times = [START + index * INTERVAL for index in range(round(hours * 3_600_000 / INTERVAL))]

    def counter(pace: float) -> list[tuple[int, float | None]]:
        total = 0.0
        return [(at, total := total + chance.random() * pace) for at in times]

    all_series = []
    for number in range(pods):
        labels = {"pod": f"pod-{number}", "service": f"service-{number % SERVICES}", "namespace": "shop"}
        all_series.append(SampleSeries({"__name__": "container_cpu_usage_seconds_total", **labels}, counter(3.0)))
        gauge: list[tuple[int, float | None]] = [(at, 1e8 + chance.random() * 1e7) for at in times]
        all_series.append(SampleSeries({"__name__": "container_memory_working_set_bytes", **labels}, gauge))
        all_series.append(
            SampleSeries({"__name__": "kube_pod_limit", "pod": f"pod-{number}"}, [(at, 2e8) for at in times])
        )
        for code in ("200", "500"):
            all_series.append(SampleSeries({"__name__": "calls_total", "code": code, **labels}, counter(20.0)))
    for number in range(SERVICES):
        for bound in BOUNDS:
            labels = {"__name__": "duration_bucket", "service": f"service-{number}", "le": bound}
            all_series.append(SampleSeries(labels, counter(5.0)))
    return all_series


def milliseconds(action: Callable[[], object]) -> float:
    """The best of five."""
    best = float("inf")
    for _ in range(5):
        started = perf_counter()
        action()
        best = min(best, perf_counter() - started)
    return best * 1000


class _Clock:
    def __init__(self, now: float) -> None:
        self.now = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--hours", type=float, default=1.0)
    arguments = parser.parse_args()
    all_series = samples(arguments.pods, arguments.hours)
    end = START / 1000 + arguments.hours * 3600
    api = PrometheusApi(loaded(all_series), _Clock(end))
    size = sum(len(series.samples) for series in all_series)
    print(f"{len(all_series)} series, {size} samples, {api.store.nbytes / 1e6:.1f} MB")
    window = {"start": str(START / 1000), "end": str(end), "step": "15"}

    def ours(query: str) -> float:
        params = {name: [value] for name, value in {**window, "query": query}.items()}
        return milliseconds(lambda: api.handle("GET", "/api/v1/query_range", params))

    if BINARY is None:
        for name, query in QUERIES.items():
            print(f"{name:24} {ours(query):9.1f} ms")
        return
    with tempfile.TemporaryDirectory() as directory, running(Path(directory)) as server:
        server.write(all_series)
        print(f"{'query':24} {'ours':>9} {'real':>9}    ratio")
        for name, query in QUERIES.items():
            url = f"{server.address}/api/v1/query_range?{urllib.parse.urlencode({**window, 'query': query})}"

            def ask(url: str = url) -> None:
                with urllib.request.urlopen(url) as answer:
                    answer.read()

            mine, theirs = ours(query), milliseconds(ask)
            print(f"{name:24} {mine:6.1f} ms {theirs:6.1f} ms {mine / theirs:7.2f}x")


if __name__ == "__main__":
    main()
