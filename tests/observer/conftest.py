from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from srearena.cluster import start_embedded
from srearena.cluster.embedded.traffic.spans import Resource, Span, exception
from srearena.cluster.in_process import InProcessCluster

START = 1_800_000_000.0
WINDOW_SECONDS = 300.0
FRONTEND = Resource("frontend", (("k8s.pod.name", "frontend-1"),))
CART = Resource("cart", (("k8s.pod.name", "cart-1"),))


@pytest.fixture(scope="session")
def cluster() -> Iterator[InProcessCluster]:
    """Five minutes of a quiet cluster, with a trace each second."""
    with start_embedded(in_process=True, speed=0, nodes=1, seed=4, start=START) as running:
        cluster = cast(InProcessCluster, running)
        cluster.wait(WINDOW_SECONDS)
        spans = cluster._thread.host.assembly.telemetry.spans
        for number in range(1, 251):
            moment = START + number
            failed = number % 10 == 0
            spans.add(
                [
                    Span(number, 2 * number, 0, FRONTEND, "GET /", "server", moment, 0.2),
                    Span(
                        number,
                        2 * number + 1,
                        2 * number,
                        CART,
                        "Cart/Get",
                        "server",
                        moment + 0.01,
                        0.1,
                        "error" if failed else "ok",
                        "boom" if failed else "",
                        (("rpc.grpc.status_code", 14 if failed else 0),),
                        (exception(moment + 0.05, "RedisError", "refused"),) if failed else (),
                    ),
                ]
            )
        yield cluster
