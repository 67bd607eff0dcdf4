"""LogQL answers compared with those that Loki's own engine gave for the same lines (see `corpus`)."""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from srearena.cluster.embedded.telemetry.logs.logql.engine import evaluate, find_lines
from srearena.cluster.embedded.telemetry.logs.logql.errors import QueryError
from srearena.cluster.embedded.telemetry.logs.logql.parser import parse
from srearena.cluster.embedded.telemetry.logs.logql.syntax import LogQuery
from srearena.cluster.embedded.telemetry.logs.store import LogStore, label_text
from tests.logs.corpus import requests, streams

GOLDEN = Path(__file__).parent / "golden" / "logql.jsonl.gz"


@cache
def store() -> LogStore:
    log_store = LogStore()
    for labels, entries in streams():
        stream = log_store.stream(labels)
        for moment, text in entries:
            stream.append(moment / 1e9, text.encode())
    return log_store


def answers() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(GOLDEN.read_bytes()).splitlines()]


CASES = list(zip(requests(), answers(), strict=True))


def ours(request: dict[str, Any]) -> dict[str, Any]:
    try:
        query = parse(request["query"])
        if isinstance(query, LogQuery):
            found = find_lines(
                store(), query, request["start"], request["end"], request["limit"], backward=request["backward"]
            )
            shown = [
                {
                    "stream": label_text(entries.labels),
                    "values": [[str(moment), text.decode()] for moment, text in entries.lines],
                }
                for entries in found
            ]
            return {"type": "streams", "result": sorted(shown, key=lambda entry: entry["stream"])}
        step = request["step"]
        steps = range(request["start"], request["end"] + 1, step) if step else [request["start"]]
        result = evaluate(store(), query, steps)
    except QueryError as problem:
        return {"error": str(problem)}
    if isinstance(result, float):
        return {"type": "scalar", "result": result}
    series = {
        tuple(sorted(one.labels.items())): {
            moment // 10**6: value
            for moment, value, present in zip(steps, one.values, one.present, strict=True)
            if present
        }
        for one in result
    }
    return {"type": "series", "result": {key: points for key, points in series.items() if points}}


def theirs(answer: dict[str, Any]) -> dict[str, Any]:
    """The recorded answer in the form of ours."""
    result = answer.get("result") or []
    if answer.get("type") == "streams":
        return {"type": "streams", "result": sorted(result, key=lambda entry: entry["stream"])}
    if answer.get("type") == "scalar":
        return {"type": "scalar", "result": float(answer["result"])}
    if answer.get("type") == "vector":
        points = {tuple(sorted(one["metric"].items())): {None: float(one["value"])} for one in result}
        return {"type": "series", "result": points}
    if answer.get("type") == "matrix":
        return {
            "type": "series",
            "result": {
                tuple(sorted(one["metric"].items())): {moment: float(value) for moment, value in one["values"]}
                for one in result
            },
        }
    return answer


def assert_close(mine: dict[Any, Any], real: dict[Any, Any]) -> None:
    assert set(mine) == set(real)
    for key, points in real.items():
        actual = dict(mine[key])
        if set(points) == {None}:
            (only,) = actual.values()
            actual = {None: only}
        assert set(actual) == set(points), key
        for moment, value in points.items():
            same = math.isclose(actual[moment], value, rel_tol=1e-5, abs_tol=1e-9)
            assert same or (math.isnan(value) and math.isnan(actual[moment])), (key, moment, actual[moment], value)


@pytest.mark.parametrize(
    ("request_", "answer"), CASES, ids=[f"{number}-{case[0]['query'][:60]}" for number, case in enumerate(CASES)]
)
def test_same_answer_as_loki(request_: dict[str, Any], answer: dict[str, Any]) -> None:
    mine, real = ours(request_), theirs(answer)
    if mine.get("type") == "series" and real.get("type") == "series":
        assert_close(mine["result"], real["result"])
    elif mine.get("type") == "scalar" and real.get("type") == "series":
        # Over a range, Loki's engine makes a number into one series without labels.
        ((key, points),) = real["result"].items()
        assert key == ()
        assert all(value == mine["result"] for value in points.values())
    else:
        assert mine == real
