"""Two clusters with the same seed and the same past answer every question about it with the same bytes."""

from __future__ import annotations

import httpx
import pytest

from srearena.cluster import start_embedded

START = 1_800_000_000.0
QUESTIONS = [
    ("loki", "/loki/api/v1/query_range", {"query": '{job=~".+"}', "limit": "5000", "start": str(START - 600)}),
    ("loki", "/loki/api/v1/series", {}),
    ("prometheus", "/api/v1/query", {"query": '{__name__=~"kube_.+|container_.+|node_.+"}'}),
    ("prometheus", "/api/v1/query_range", {"query": "up", "start": str(START - 60), "end": str(START), "step": "15"}),
    ("jaeger", "/api/services", {}),
    ("alertmanager", "/api/v2/alerts", {}),
]  # fmt: skip


def answers(seed: int) -> list[bytes]:
    with start_embedded(
        in_process=True, speed=0, start=START, seed=seed, nodes=2, secret="the same every time"
    ) as cluster:
        cluster.wait(60)
        endpoints = cluster.telemetry
        auth = ("x", endpoints.token)
        found = [
            httpx.get(f"{getattr(endpoints, name)}{path}", params=params, auth=auth) for name, path, params in QUESTIONS
        ]
        assert [answer.status_code for answer in found] == [200] * len(found)
        return [answer.content for answer in found]


@pytest.fixture(scope="module")
def once() -> list[bytes]:
    return answers(11)


def test_the_same_seed_gives_the_same_bytes(once: list[bytes]) -> None:
    assert answers(11) == once


def test_another_seed_gives_another_past(once: list[bytes]) -> None:
    assert answers(12)[0] != once[0]
