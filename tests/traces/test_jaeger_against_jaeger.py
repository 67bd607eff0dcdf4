"""Answers of the Jaeger API compared with those a real Jaeger gave about the same traces (see `corpus`)."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.traces.corpus import questions, small_shop

GOLDEN = Path(__file__).parent / "golden" / "jaeger.json.gz"
MARK = {"key": "internal.span.format", "value": {"stringValue": "otlp"}}
"""Jaeger's own note in the attributes of OTLP, which ours hands on as they were."""


@cache
def answers() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gzip.decompress(GOLDEN.read_bytes()))
    return found


def unordered(value: Any) -> Any:
    """Without what a real Jaeger leaves to chance: the order of traces, spans and names, the numbers of processes."""
    if isinstance(value, dict):
        if "processes" in value and "spans" in value:
            spans = [{**span, "processID": value["processes"][span["processID"]]} for span in value["spans"]]
            value = {**value, "spans": spans, "processes": None}
        return {key: unordered(item) for key, item in value.items() if key != "tags"} | (
            {"tags": [unordered(tag) for tag in value["tags"]]} if "tags" in value else {}
        )
    if isinstance(value, list):
        return sorted(
            (unordered(item) for item in value if item != MARK), key=lambda item: json.dumps(item, sort_keys=True)
        )
    return value


@pytest.mark.parametrize("number", range(len(questions())))
def test_same_answer_as_jaeger(number: int) -> None:
    path, params = questions()[number]
    real = answers()[number]
    assert (real["path"], real["params"]) == (path, params)
    values = {name: [value] if isinstance(value, str) else value for name, value in params.items()}
    status, _, body = small_shop().handle("GET", path, values)
    assert (status, unordered(json.loads(body))) == (real["status"], unordered(real["body"])), path
