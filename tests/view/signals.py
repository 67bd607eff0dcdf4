"""Signals of a trial for tests, as `srearena.conductor.results.signals` writes them."""

from __future__ import annotations

from typing import Any

FIRST, STEP, POINTS = 1_767_225_000, 15, 80
FAULT, HANDED_OVER, ENDED = FIRST + 600, FIRST + 900, FIRST + 1_080


def signals() -> dict[str, Any]:
    """A front end that calls a service whose requests all fail from the fault on; a store behind it."""
    times = range(FIRST, FIRST + STEP * POINTS, STEP)
    broken = [FAULT < time <= ENDED for time in times]

    def series(*key: str, usual: float, later: float) -> dict[str, Any]:
        return {"key": list(key), "values": [later if bad else usual for bad in broken]}

    def span(service: str, name: str, kind: str, parent: int | None, **tags: str) -> dict[str, Any]:
        return {"service": service, "name": name, "kind": kind, "parent": parent, "tags": tags}

    call, query = ("shop", "web", "GET /user"), ("shop", "user-service", "find")
    shape = [
        span("web", "GET /", "server", None),
        span("web", "GET /user", "client", 0),
        span("user-service", "GET /user", "server", 1),
        span("user-service", "find", "client", 2, **{"db.system": "mongodb", "server.address": "user-mongodb"}),
    ]
    return {
        "schema": "srearena.signals/1",
        "first": FIRST,
        "step": STEP,
        "points": POINTS,
        "fault": FAULT,
        "handed_over": HANDED_OVER,
        "ended": ENDED,
        "measures": {
            "requests": [series("shop", name, usual=20, later=20) for name in ("web", "user-service")],
            "errors": [series("shop", "user-service", usual=0, later=20), series("shop", "web", usual=0, later=0)],
            "latency": [series("shop", name, usual=5, later=5) for name in ("web", "user-service")],
            "sent": [series(*call, usual=20, later=20), series(*query, usual=20, later=20)],
            "sent errors": [series(*call, usual=0, later=20)],
            "sent latency": [series(*call, usual=6, later=6)],
            "cpu": [series("shop", "user-service-7d-x2x", usual=0.5, later=0.5)],
            "memory": [],
        },
        "traces": [{"count": 12, "spans": shape}],
        "alerts": [
            {
                "name": "HighErrorRate",
                "severity": "critical",
                "labels": {"service_name": "user-service"},
                "first": FAULT + 60,
                "last": ENDED,
            }
        ],
    }
