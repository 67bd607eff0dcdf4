"""The corpus of queries and the real server's answers to them, recorded in `answers.json.gz`.

Run as a program (`python -m tests.promql.corpus`) this queries an installed Prometheus again and rewrites the record.
"""

from __future__ import annotations

import gzip
import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.promql.real_prometheus import RealPrometheus, running
from tests.promql.samples import START, dataset

HERE = Path(__file__).parent
RECORD = HERE / "answers.json.gz"
MISTAKES = HERE / "mistakes.json"
"""Invalid queries, and the error messages of the real server."""
INSTANTS = (START + 31 * 60_000, START + 3_001_500)
RANGE = (START + 17 * 60_000, START + 62 * 60_000, 195_000)
"""Start, end and step of every range query; the step is no multiple of the scrape interval's minute."""

Response = dict[str, Any]
"""The data of an answer, or its error: {"type", "result"} or {"error"}. Numbers as strings, as on the wire."""


@dataclass(frozen=True)
class Question:
    query: str
    at: int | None
    """An instant, or none: over the range."""

    @property
    def is_ordered(self) -> bool:
        return self.at is not None and self.query.startswith(("sort", "topk", "bottomk"))

    @property
    def path(self) -> str:
        return "query_range" if self.at is None else "query"

    @property
    def parameters(self) -> dict[str, str]:
        if self.at is not None:
            return {"query": self.query, "time": f"{self.at / 1000:.3f}"}
        start, end, step = RANGE
        return {"query": self.query, "start": f"{start / 1000}", "end": f"{end / 1000}", "step": f"{step / 1000}"}


def queries() -> list[str]:
    lines = (HERE / "corpus.txt").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def questions() -> list[Question]:
    return [Question(query, at) for query in queries() for at in (*INSTANTS, None)]


def compact(answer: dict[str, Any], ordered: bool) -> Response:
    """What of an answer is worth recording. Only that of a sorting function has an order."""
    if answer["status"] == "error":
        return {"error": answer["error"]}
    data = answer["data"]
    if data["resultType"] in ("scalar", "string"):
        return {"type": data["resultType"], "result": _number(data["result"][1])}
    result = []
    for entry in data["result"]:
        points = entry.get("values") or [entry["value"]]
        result.append([entry["metric"], [[round(time * 1000), _number(value)] for time, value in points]])
    if not ordered:
        result.sort(key=lambda entry: json.dumps(entry[0], sort_keys=True))
    return {"type": data["resultType"], "result": result}


def _number(text: str) -> str:
    """Twelve digits are more than we compare."""
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text


def recorded() -> dict[str, list[Response]]:
    """Per query: the answers at the two instants and over the range."""
    with gzip.open(RECORD, "rt") as file:
        found: dict[str, list[Response]] = json.load(file)
    return found


def fetch(server: RealPrometheus, question: Question) -> Response:
    return compact(server.ask(question.path, **question.parameters), question.is_ordered)


def record() -> None:
    with tempfile.TemporaryDirectory() as directory, running(Path(directory)) as server:
        server.write(dataset())
        answers: dict[str, list[Response]] = {}
        for question in questions():
            answers.setdefault(question.query, []).append(fetch(server, question))
        found = {query: server.ask("query", query=query, time="1") for query in json.loads(MISTAKES.read_text())}
    mistakes = {query: answer["error"] for query, answer in found.items() if answer["status"] == "error"}
    MISTAKES.write_text(json.dumps(mistakes, indent=1, ensure_ascii=False) + "\n")
    with gzip.GzipFile(RECORD, "wb", mtime=0) as file:
        file.write(json.dumps(answers, separators=(",", ":"), sort_keys=True).encode())


def differences(ours: Response, real: Response) -> str:
    """What is not the same, in a line; nothing where all is."""
    if "error" in ours or "error" in real:
        ours_error, real_error = ours.get("error"), real.get("error")
        return "" if ours_error == real_error else f"error {ours_error!r}, real {real_error!r}"
    if ours["type"] != real["type"]:
        return f"type {ours['type']}, real {real['type']}"
    if isinstance(real["result"], str):
        return "" if close(ours["result"], real["result"]) else f"{ours['result']}, real {real['result']}"
    mine = {json.dumps(metric, sort_keys=True): points for metric, points in ours["result"]}
    theirs = {json.dumps(metric, sort_keys=True): points for metric, points in real["result"]}
    if mine.keys() == theirs.keys() and list(mine) != list(theirs) and list(mine.values()) != list(theirs.values()):
        return f"order {list(mine)}, real {list(theirs)}"  # equal values may come in any order
    if mine.keys() != theirs.keys():
        return f"series {sorted(mine.keys() - theirs.keys())} too many, {sorted(theirs.keys() - mine.keys())} missing"
    for metric, points in theirs.items():
        if [at for at, _ in points] != [at for at, _ in mine[metric]]:
            return f"{metric}: times {[p[0] for p in mine[metric]][:3]}, real {[p[0] for p in points][:3]}"
        for (at, expected), (_, found) in zip(points, mine[metric], strict=True):
            if not close(found, expected):
                return f"{metric} at {at}: {found}, real {expected}"
    return ""


def close(found: str, expected: str) -> bool:
    try:
        ours, real = float(found), float(expected)
    except ValueError:
        return found == expected
    if math.isnan(real):
        return math.isnan(ours)
    return math.isclose(ours, real, rel_tol=1e-9, abs_tol=1e-9)


if __name__ == "__main__":
    record()
