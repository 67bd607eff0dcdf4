"""Log lines and LogQL queries whose answers were recorded from Loki's own engine.

`python -m tests.logs.corpus` writes what the recorder reads; see `loki_recorder/main.go` for how to record anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

START = 1_800_000_000
NANOS = 10**9

Entry = tuple[int, str]


def _at(seconds: float) -> int:
    return (START * 1000 + round(seconds * 1000)) * 10**6


def streams() -> list[tuple[dict[str, str], list[Entry]]]:
    statuses = (200, 200, 200, 404, 200, 500, 200, 503)
    access = [
        (
            _at(3 * n + 0.25),
            f'10.244.{n % 3}.{n} - - [15/Jan/2027:08:00:{n:02d} +0000] "{"GET" if n % 4 else "POST"} '
            f'/api/{("cart", "search", "hotels")[n % 3]} HTTP/1.1" {statuses[n % 8]} {100 + 37 * n} {n * 0.013:.3f}',
        )
        for n in range(40)
    ]
    logfmt = [
        (
            _at(2 * n + 0.5),
            f'ts={n} level={("info", "warn", "error")[n % 3]} msg="request {n} served" duration={n * 7}ms '
            f"size={n}KB user=u{n % 4} code={statuses[n % 8]} empty= retries={n % 5}",
        )
        for n in range(50)
    ]
    structured = [
        (
            _at(4 * n + 0.75),
            json.dumps(
                {
                    "level": ("info", "error")[n % 2],
                    "message": f"charge {n}",
                    "amount": n * 1.5,
                    "ok": n % 2 == 0,
                    "pod": "inner",
                    "http": {"status": statuses[n % 8], "path": f"/pay/{n % 3}", "0day": "x", "a.b": n},
                    "tags": ["a", n],
                    "none": None,
                    "took": f"{n * 11}ms",
                }
            ),
        )
        for n in range(25)
    ]
    mixed = [
        (_at(1), "starting up"),
        (_at(2), '{"level":"info","n":1}'),
        (_at(3), '{"level":"info","n":'),
        (_at(4), "\x1b[31mred\x1b[0m alert"),
        (_at(5), "panic: runtime error: index out of range [5] with length 3"),
        (_at(6), 'level=info n=abc bare "odd" x="quoted \\"inner\\" text" y=1'),
        (_at(7), '{"_entry":"the real line","app":"packed","n":"4"}'),
        (_at(8), "client 192.168.1.77 connected"),
        (_at(9), "client 10.0.0.5 connected"),
        (_at(10), '["an","array"]'),
        (_at(11), ""),
        (_at(12), "größe=5 ünïcode"),
    ]
    counter = [(_at(5 * n), f"total={value}") for n, value in enumerate([0, 3, 9, 9, 2, 8, 20, 21, 5, 6])]
    return [
        ({"app": "frontend", "namespace": "shop", "pod": "frontend-1", "stream": "stdout"}, access[0::2]),
        ({"app": "frontend", "namespace": "shop", "pod": "frontend-2", "stream": "stdout"}, access[1::2]),
        ({"app": "search", "namespace": "hotel", "pod": "search-1", "stream": "stderr"}, logfmt),
        ({"app": "payment", "namespace": "shop", "pod": "payment-1", "stream": "stdout"}, structured),
        ({"app": "mixed", "namespace": "odd", "pod": "mixed-1", "stream": "stdout"}, mixed),
        ({"app": "counter", "namespace": "odd", "pod": "counter-1", "stream": "stdout"}, counter),
    ]


def queries(name: str) -> list[str]:
    """The queries of a file, one a line."""
    return (Path(__file__).parent / "queries" / f"{name}.logql").read_text().splitlines()


def requests() -> list[dict[str, object]]:
    """Return the queries for the recorder, in the order of its responses."""
    window = {"start": START * NANOS, "end": (START + 120) * NANOS}
    requested: list[dict[str, object]] = []
    for number, query in enumerate(queries("lines")):
        requested.append({"query": query, **window, "step": 0, "backward": number % 2 == 1, "limit": 7})
    for query in queries("series"):
        requested.append({"query": query, **window, "step": 20 * NANOS, "backward": True, "limit": 100})
        moment = (START + 60) * NANOS
        requested.append({"query": query, "start": moment, "end": moment, "step": 0, "backward": True, "limit": 100})
    for query in queries("mistakes"):
        requested.append({"query": query, **window, "step": 20 * NANOS, "backward": True, "limit": 7})
    return requested


def selector(labels: dict[str, str]) -> str:
    return "{" + ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items()) + "}"


if __name__ == "__main__":
    recorded = [{"labels": selector(labels), "entries": entries} for labels, entries in streams()]
    json.dump({"streams": recorded, "queries": requests()}, sys.stdout)
