"""The samples both engines are asked about: an hour of a small system with everything that makes queries hard.

Counters reset, targets come late, vanish with and without a staleness marker, scrapes jitter and go missing, gauges
are negative, infinite and NaN, and label sets overlap in part.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import NAN_SAMPLE
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

START = 1_704_103_200_000
"""2024-01-01 10:00:00 UTC, in milliseconds."""
INTERVAL = 15_000
COUNT = 240

Sample = tuple[int, float | None]
"""A time in milliseconds, and a value or, for the staleness marker, nothing."""


@dataclass(frozen=True)
class SampleSeries:
    labels: dict[str, str]
    samples: list[Sample]


def dataset() -> list[SampleSeries]:
    chance = random.Random(7)
    return list(_all(chance))


def _all(chance: random.Random) -> Iterator[SampleSeries]:
    for instance in ("a:80", "b:80", "c:80"):
        jitter = {"a:80": 0, "b:80": 37, "c:80": 4211}[instance]
        for code in ("200", "404", "500"):
            for method in ("GET", "POST"):
                labels = {"job": "api", "instance": instance, "code": code, "method": method}
                yield _sample_series(
                    "http_requests_total", labels, _counter(chance, jitter, 40 if code == "200" else 2)
                )
    yield _sample_series(
        "http_requests_total", {"job": "web", "instance": "w:80", "code": "200", "method": "GET"}, _late(chance)
    )
    for instance, gone in (("a:80", None), ("b:80", 130), ("c:80", 200)):
        yield _sample_series("up", {"job": "api", "instance": instance}, _up(gone))
    yield _sample_series("up", {"job": "web", "instance": "w:80"}, [(t, 1.0 if i % 20 else 0.0) for i, t in _ticks()])
    for number, pod in enumerate(("api-0", "api-1", "api-2", "db-0", "db-1")):
        labels = {"namespace": "shop", "pod": pod, "node": f"n{number % 2}"}
        wave = [(t, 1e8 * (number + 1) + 3e7 * math.sin(i / 9 + number) + 1e5 * i) for i, t in _ticks(number * 11)]
        yield _sample_series("memory_bytes", labels, wave)
        yield _sample_series(
            "memory_limit_bytes", {"namespace": "shop", "pod": pod}, [(t, 2e8 * (1 + number)) for _, t in _ticks()]
        )
        owner = {"namespace": "shop", "pod": pod, "owner": pod.split("-")[0], "tier": "back" if "db" in pod else ""}
        yield _sample_series("pod_info", owner, [(t, 1.0) for _, t in _ticks()])
    for node in ("n0", "n1"):
        yield _sample_series("node_info", {"node": node, "version": f"v1.{node[1]}"}, [(t, 1.0) for _, t in _ticks()])
        yield _sample_series(
            "temperature", {"node": node}, [(t, round(20 * math.sin(i / 30) - 3, 3)) for i, t in _ticks()]
        )
    yield _sample_series("temperature", {"node": "n2"}, [(t, float(i % 7)) for i, t in _ticks() if not 60 <= i < 100])
    for kind, values in (
        ("nan", [math.nan]),
        ("inf", [math.inf, 1.0]),
        ("ninf", [-math.inf]),
        ("mix", [1.0, math.nan, 3.0]),
    ):
        yield _sample_series("weird", {"kind": kind}, [(t, values[i % len(values)]) for i, t in _ticks()])
    yield _sample_series("flag", {"name": "x"}, [(t, float(i // 50 % 2)) for i, t in _ticks()])
    yield _sample_series("flag", {"name": "y"}, [(t, 0.0 if i % 3 else float(i)) for i, t in _ticks(500)])
    yield _sample_series("alternating", {"phase": "on"}, [(t, 1.0 if i // 40 % 2 else None) for i, t in _ticks()])
    yield _sample_series("alternating", {"phase": "off"}, [(t, None if i // 40 % 2 else 1.0) for i, t in _ticks()])
    yield _sample_series(
        "disk_free_bytes", {"device": "sda"}, [(t, 1e10 - 2e6 * i + 1e6 * chance.random()) for i, t in _ticks()]
    )
    yield _sample_series("disk_free_bytes", {"device": "sdb"}, [(t, 5e9) for _, t in _ticks()])
    yield _sample_series("lonely", {"a": "1", "b": "x y", "c": 'quote"d'}, [(t, 42.0) for _, t in _ticks()][:120])
    yield _sample_series("started_seconds", {"job": "api"}, [(t, 1.7040852e9) for _, t in _ticks()])
    yield from _histogram(chance, "request_duration_seconds", (0.1, 0.5, 1.0, 2.5))


def _sample_series(name: str, labels: dict[str, str], samples: list[Sample]) -> SampleSeries:
    return SampleSeries({"__name__": name, **{key: value for key, value in labels.items() if value}}, samples)


def _ticks(shift: int = 0) -> list[tuple[int, int]]:
    return [(index, START + index * INTERVAL + shift) for index in range(COUNT)]


def _counter(chance: random.Random, jitter: int, pace: int) -> list[Sample]:
    total, samples = float(chance.randrange(1000)), []
    for index, at in _ticks(jitter):
        total += chance.randrange(pace)
        if chance.random() < 0.01:
            total = float(chance.randrange(3))
        if jitter and 90 <= index < 93:
            continue
        samples.append((at + (chance.randrange(200) if jitter else 0), total))
    return samples


def _late(chance: random.Random) -> list[Sample]:
    """Starts after 20 minutes, misses ten of them, goes stale for good near the end."""
    samples: list[Sample] = [
        (at, float(index * 3)) for index, at in _ticks(9000) if index >= 80 and not 120 <= index < 160
    ]
    samples[-15] = (samples[-15][0], None)
    return samples[:-14]


def _up(gone: int | None) -> list[Sample]:
    samples: list[Sample] = [(at, 1.0 if gone is None or index < gone else None) for index, at in _ticks()]
    return samples if gone is None else samples[: gone + 1]


def _histogram(chance: random.Random, name: str, bounds: tuple[float, ...]) -> Iterator[SampleSeries]:
    for instance in ("a:80", "b:80"):
        counts = [0.0] * (len(bounds) + 1)
        rows: list[list[float]] = []
        for _ in range(COUNT):
            for _ in range(chance.randrange(20)):
                value = chance.expovariate(1.5 if instance == "a:80" else 0.9)
                for position, bound in enumerate((*bounds, math.inf)):
                    counts[position] += value <= bound
            rows.append(list(counts))
        for position, text in enumerate([*map(str, bounds), "+Inf"]):
            labels = {"instance": instance, "le": text, "job": "api"}
            yield _sample_series(f"{name}_bucket", labels, [(t, rows[i][position]) for i, t in _ticks()])
        yield _sample_series(
            f"{name}_count", {"instance": instance, "job": "api"}, [(t, rows[i][-1]) for i, t in _ticks()]
        )
        yield _sample_series(
            f"{name}_sum", {"instance": instance, "job": "api"}, [(t, rows[i][-1] * 0.8) for i, t in _ticks()]
        )


def loaded(series: list[SampleSeries]) -> MetricStore:
    """The same samples in our store, series with equal times in one block."""
    store = MetricStore()
    groups: dict[tuple[int, ...], list[SampleSeries]] = {}
    for one in series:
        groups.setdefault(tuple(at for at, _ in one.samples), []).append(one)
    for times, members in groups.items():
        block = store.block([one.labels for one in members])
        rows = np.array([[_cell(value) for _, value in one.samples] for one in members])
        for column, at in enumerate(times):
            block.append(at / 1000, rows[:, column])
    return store


def _cell(value: float | None) -> float:
    if value is None:
        return math.nan
    return NAN_SAMPLE if math.isnan(value) else value
