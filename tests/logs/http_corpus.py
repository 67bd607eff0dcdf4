"""Questions to Loki's HTTP API whose answers were recorded from a real Loki (3.5) that was pushed the corpus's lines.

`python -m tests.logs.http_corpus URL | gzip -9 -n > tests/logs/golden/loki_http.json.gz` pushes and records. The server
must accept lines of the future (`creation_grace_period`), have the index volume API on, and neither discover service
names or log levels nor split, align or cache queries.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import httpx

from tests.logs.corpus import START, streams

END = START + 120
WINDOW = {"start": str(START), "end": str(END)}
NOW = {"time": str(END)}
RATE = 'rate({app="frontend"}[1m])'
LINES = {"query": '{app="frontend"}'}

Question = tuple[str, dict[str, Any]]


def questions() -> list[Question]:
    about: list[Question] = [
        ("labels", {}),
        ("label", {}),
        ("labels", {"query": RATE}),
        ("label/app/values", {}),
        ("label/pod/values", LINES),
        ("label/nothing/values", {}),
        ("series", {"match[]": ['{app="search"}', '{app="counter"}']}),
        ("series", {"match": '{app="search"}'}),
        ("series", {"match[]": '{app="none"}'}),
        ("series", {}),
        ("series", {"match[]": "rate(x)"}),
        ("series", {"match[]": "{"}),
        ("index/stats", {"query": '{app="none"}'}),
        ("index/stats", {}),
        ("index/volume", {"query": '{namespace="shop"}', "targetLabels": "app"}),
        ("index/volume", {"query": '{namespace="shop"}'}),
        ("index/volume", {"query": '{namespace=~".+"}'}),
        ("index/volume", {"query": '{namespace=~".+"}', "limit": "1"}),
    ]
    ranges: list[dict[str, Any]] = [
        {"query": '{app="counter"}'},
        {"query": '{app="counter"}', "direction": "forward", "limit": "3"},
        {"query": '{app="frontend"} | pattern `<ip> <_>` | line_format "{{.ip}}"', "limit": "5"},
        *({**LINES, "limit": limit} for limit in ("x", "0", "-5", "6000")),
        *({**LINES, "step": step} for step in ("-1", "0", "abc")),
        {**LINES, "direction": "up"},
        {**LINES, "start": "soon"},
        {**LINES, "end": "x"},
        {**LINES, "start": "20", "end": "10"},
        {"query": RATE, "step": "0.001"},
        {},
        {"query": "{"},
        {"query": '{app="frontend"} |~ "("'},
        {"query": '{app="frontend"} != "a" !~ "x(" or "y"'},
        {"query": '{app="search"} | line_format "{{ .x"'},
        {"query": '{app="search"} | label_format a="{{ .x"'},
        {"query": 'sum by (app) (count_over_time({app="frontend"}[30s]))', "step": "30"},
        {"query": RATE, "step": "1m"},
        {"query": "1+1", "step": "60"},
        {"query": "vector(3)", "step": "60"},
        {"query": 'sum(rate({app="none"}[1m]))', "step": "60"},
        {"query": 'count_over_time({app="counter"}[20s])', "step": "30s", "start": f"{START}.5", "end": f"{END}.25"},
        {"query": '{app="counter"}', "start": "2027-01-15T08:00:00Z", "end": "2027-01-15T08:01:00Z"},
    ]
    instants: list[dict[str, Any]] = [
        LINES,
        {"query": 'sum(rate({app="frontend"}[1m]))'},
        {"query": 'sum(rate({app="none"}[1m]))'},
        {"query": 'topk(1, sum by (app) (bytes_over_time({namespace=~".+"}[2m])))'},
        {"query": "vector(1)"},
        {"query": 'sort_desc(sum by (app) (count_over_time({namespace="shop"}[2m])))'},
        {"query": "1", "time": "x"},
    ]
    return [
        *((path, {**WINDOW, **params}) for path, params in about),
        *(("query_range", {**WINDOW, **params}) for params in ranges),
        *(("query", {**NOW, **params}) for params in instants),
        ("nothing", {}),
    ]


def recorded(url: str) -> list[dict[str, Any]]:
    pushed = [
        {"stream": labels, "values": [[str(moment), line] for moment, line in entries]} for labels, entries in streams()
    ]
    httpx.post(f"{url}/loki/api/v1/push", json={"streams": pushed}).raise_for_status()
    answers = []
    for path, params in questions():
        answer = httpx.get(f"{url}/loki/api/v1/{path}", params=params)
        kind = answer.headers["content-type"]
        body = answer.json() if kind.startswith("application/json") else answer.text
        answers.append({"path": path, "params": params, "status": answer.status_code, "type": kind, "body": body})
    return answers


if __name__ == "__main__":
    json.dump(recorded(*sys.argv[1:]), sys.stdout)
