"""Answers of the HTTP API compared with those a real Loki gave about the same lines (see `http_corpus`)."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi
from srearena.cluster.embedded.telemetry.logs.store import LogStore
from tests.logs.corpus import streams
from tests.logs.http_corpus import END, questions

GOLDEN = Path(__file__).parent / "golden" / "loki_http.json.gz"


@cache
def answers() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gzip.decompress(GOLDEN.read_bytes()))
    return found


@cache
def api() -> LokiApi:
    store = LogStore()
    for labels, entries in streams():
        for moment, text in entries:
            store.stream(labels).append(moment / 1e9, text.encode())
    return LokiApi(store, Clock(float(END)))


def unordered(value: Any, *, sorted_already: bool) -> Any:
    """Without statistics, and without the order of series where Loki leaves it to chance."""
    if isinstance(value, dict):
        return {key: unordered(item, sorted_already=sorted_already) for key, item in value.items() if key != "stats"}
    if isinstance(value, list) and not sorted_already and value and isinstance(value[0], dict):
        return sorted(value, key=lambda item: json.dumps(item, sort_keys=True))
    return value


@pytest.mark.parametrize("number", range(len(questions())))
def test_same_answer_as_loki(number: int) -> None:
    path, params = questions()[number]
    real = answers()[number]
    assert (real["path"], real["params"]) == (path, params)
    values = {name: [value] if isinstance(value, str) else value for name, value in params.items()}
    status, headers, body = api().handle("GET", f"/loki/api/v1/{path}", values)
    assert (status, headers["content-type"]) == (real["status"], real["type"]), body
    mine = json.loads(body) if headers["content-type"].startswith("application/json") else body.decode()
    ordered = "sort" in str(params.get("query")) or path == "index/volume"
    assert unordered(mine, sorted_already=ordered) == unordered(real["body"], sorted_already=ordered)
