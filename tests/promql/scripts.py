"""Prometheus' own test scripts (`promql/promqltest/testdata/*.test`), run against our engine.

The scripts are not part of this repository: they are read from the module of the release, where it can be fetched. A
script loads series, then evaluates queries and compares results and annotations. Left out are cases that need what this
server does not have: native histograms, and features behind flags that it does not set.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import NAN_SAMPLE
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, labels_of
from srearena.cluster.embedded.telemetry.metrics.promql.annotations import Annotations
from srearena.cluster.embedded.telemetry.metrics.promql.durations import duration_ms
from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine, steps
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import selectors
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse, parse_selector
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Scalar, String, Value, Vector
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

MODULE = "github.com/prometheus/prometheus@v0.315.0"
"""Prometheus 3.15.0."""
FOLDER = "promql/promqltest/testdata"
OTHER_FEATURES = ("extended_vectors.test", "start_timestamps.test", "type_and_unit.test", "native_histograms.test")
"""Scripts about features that this server does not have: extended range selectors, start timestamps, labels for type
and unit, native histograms."""
_EVAL = re.compile(r"eval(?:_(?P<kind>fail|warn|info|ordered))?\s+(?P<mode>instant|range)\s+(?P<rest>.*)", re.DOTALL)
_INSTANT = re.compile(r"at\s+(\S+)\s+(.*)", re.DOTALL)
_RANGE = re.compile(r"from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)\s+(.*)", re.DOTALL)
_EXPECT = re.compile(
    r"expect\s+(fail|warn|no_warn|info|no_info|ordered|string|range vector)\s*(?:(msg|regex):\s*)?(.*)"
)
_ITEM = re.compile(r"(_|stale|[-+]?(?:Inf|NaN|[\d.]+(?:[eE][-+]?\d+)?))(?:([-+][\d.]+(?:[eE][-+]?\d+)?)?x(\d+))?", re.I)


@cache
def folder() -> Path | None:
    """Return the folder of the scripts; None where the module cannot be fetched."""
    if found := os.environ.get("PROMETHEUS_SOURCE"):
        return Path(found) / FOLDER
    go = shutil.which("go")
    if go is None:
        return None
    try:
        answer = subprocess.run(
            [go, "mod", "download", "-json", MODULE], capture_output=True, text=True, timeout=120, check=True, cwd="/"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return Path(json.loads(answer.stdout)["Dir"]) / FOLDER


@dataclass
class Case:
    line: int
    query: str
    times: tuple[int, ...]
    """An instant, or start, end and step of a range."""
    fails: bool = False
    message: str = ""
    pattern: str = ""
    ordered: bool = False
    text: str | None = None
    annotations: list[tuple[str, str, str]] = field(default_factory=list)
    """Expected annotations: kind, how the text is compared, text."""
    expected: list[str] = field(default_factory=list)


def read_points(text: str) -> list[float | None] | None:
    """Read values of a series: None for no sample, -0.0-signed NaN for the end; nothing where they are histograms."""
    if "{{" in text:
        return None
    points: list[float | None] = []
    for item in text.split():
        found = _ITEM.fullmatch(item)
        assert found is not None, item
        base, step, times = found.groups()
        count = int(times) if times else 0
        if base == "_":
            points += [None] * (count or 1)
            continue
        value = math.nan if base.lower() == "stale" else _with_nan(base)
        points += [value + float(step) * n if step else value for n in range(count + 1)]
    return points


def _with_nan(text: str) -> float:
    number = float(text)
    return NAN_SAMPLE if math.isnan(number) else number


def read_labels(text: str) -> Labels:
    """Read the labels of a series: a metric name, braces, or both."""
    text = text.strip()
    if text in ("", "{}"):
        return ()
    selector = parse_selector(text) if not text.startswith("{}") else None
    assert selector is not None
    return labels_of({matcher.name: matcher.value for matcher in selector.matchers})


def split_series(line: str) -> tuple[str, str]:
    """Split a line into the series and its points, at the first space outside of braces and quotes."""
    depth, quote = 0, ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[at - 1] != "\\" else quote
        elif char in "\"'`" and depth:
            quote = char
        elif char in "{}":
            depth += 1 if char == "{" else -1
        elif char.isspace() and not depth:
            return line[:at], line[at:].strip()
    return line, ""


class Script:
    """One script: its store, and the cases that can run here."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._clear()

    def _clear(self) -> None:
        self.store = MetricStore()
        self.native: list[Labels] = []

    def run(self) -> Iterator[tuple[Case, str]]:
        """Yield cases of floats, and what is wrong with each."""
        at = 0
        while at < len(self._lines):
            line = self._lines[at].strip()
            begin = at
            at += 1
            if not line or line.startswith("#"):
                continue
            body = []
            while at < len(self._lines) and self._lines[at].strip():
                if not self._lines[at].strip().startswith("#"):
                    body.append(self._lines[at].strip())
                at += 1
            if line.startswith("clear"):
                self._clear()
                at = begin + 1
            elif line.startswith("load"):
                self._load(line, body)
            elif line.startswith("eval"):
                case = _case(begin + 1, line, body)
                if not self._needs_histograms(case):
                    yield case, self.verdict(case)

    def _load(self, line: str, body: list[str]) -> None:
        interval = duration_ms(line.split()[1])
        assert interval is not None
        for entry in body:
            series, values = split_series(entry)
            labels = read_labels(series)
            points = None if line.startswith("load_with_nhcb") else read_points(values)
            if line.startswith("load_with_nhcb"):
                base = dict(labels)
                base[NAME] = re.sub(r"_(bucket|sum|count)$", "", base[NAME])
                self.native.append(labels_of({name: value for name, value in base.items() if name != "le"}))
                points = read_points(values)
            if points is None:
                self.native.append(labels)
                continue
            block = self.store.block([dict(labels)])
            for number, value in enumerate(points):
                if value is not None:
                    block.append(number * interval / 1000, (value,))

    def _needs_histograms(self, case: Case) -> bool:
        if any("{{" in line for line in case.expected):
            return True
        try:
            node = parse(case.query)
        except QueryError:
            return False
        chosen = list(selectors(node))
        for labels in self.native:
            known = dict(labels)
            for selector in chosen:
                if all(matcher.holds(known.get(matcher.name, "")) for matcher in selector.matchers):
                    return True
        return False

    def verdict(self, case: Case) -> str:
        """Return what differs; nothing where all is as expected."""
        engine, annotations = Engine(self.store), Annotations()
        try:
            if len(case.times) == 1:
                value = engine.instant(case.query, case.times[0], annotations)
            else:
                value = engine.range(case.query, *case.times, annotations)
        except QueryError as error:
            return "" if case.fails and _alike(str(error), case) else f"error: {error}"
        if case.fails:
            return f"no error, expected {case.message or case.pattern or 'one'}"
        return _annotation_difference(case, annotations) or _difference(case, value)


def _alike(error: str, case: Case) -> bool:
    if case.message:
        return case.message in error
    return re.search(case.pattern, error) is not None if case.pattern else True


def _case(number: int, line: str, body: list[str]) -> Case:
    found = _EVAL.fullmatch(line)
    assert found is not None, line
    if found["mode"] == "instant":
        moment, query = _INSTANT.fullmatch(found["rest"]).groups()  # type: ignore[union-attr]
        times: tuple[int, ...] = (_milliseconds(moment),)
    else:
        *moments, query = _RANGE.fullmatch(found["rest"]).groups()  # type: ignore[union-attr]
        times = tuple(_milliseconds(moment) for moment in moments)
    case = Case(number, query.strip(), times, fails=found["kind"] == "fail", ordered=found["kind"] == "ordered")
    if found["kind"] in ("warn", "info"):
        case.annotations.append((found["kind"], "", ""))
    for entry in body:
        if expect := _EXPECT.fullmatch(entry):
            kind, how, text = expect.groups()
            if kind == "fail":
                case.fails = True
                case.message, case.pattern = (text, "") if how == "msg" else ("", text if how == "regex" else "")
            elif kind == "ordered":
                case.ordered = True
            elif kind == "string":
                case.text = text.strip("\"`'")
            elif kind != "range vector":
                case.annotations.append((kind, how or "", text))
            else:
                case.expected.append("range vector")
        elif entry.startswith("expected_fail_message"):
            case.message = entry.partition(" ")[2]
        elif entry.startswith("expected_fail_regexp"):
            case.pattern = entry.partition(" ")[2]
        else:
            case.expected.append(entry)
    return case


def _milliseconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    found = duration_ms(text.lstrip("-+"))
    return sign * found if found is not None else round(float(text) * 1000)


def _annotation_difference(case: Case, annotations: Annotations) -> str:
    found = {"warn": annotations.warnings(case.query), "info": annotations.infos(case.query)}
    for kind, how, text in case.annotations:
        messages = found[kind.removeprefix("no_")]
        if kind.startswith("no_"):
            if messages:
                return f"unexpected {kind.removeprefix('no_')}: {messages}"
        elif not messages:
            return f"no {kind}, expected {text}"
        elif how == "msg" and not any(message.rpartition(" (")[0] == text or text in message for message in messages):
            return f"{kind} {messages}, expected {text}"
        elif how == "regex" and not any(re.search(text, message) for message in messages):
            return f"{kind} {messages}, expected /{text}/"
    return ""


def _difference(case: Case, value: Value) -> str:
    if isinstance(value, String):
        return "" if case.text is not None and value.value == case.text else f"string {value.value!r}"
    expected: list[tuple[Labels, list[float | None]]] = []
    for line in case.expected:
        if line == "range vector":
            continue
        series, points = split_series(line)
        if not points and len(case.expected) == 1 and not series.startswith("{") and _is_number(series):
            expected.append(((), read_points(series) or []))
        else:
            expected.append((read_labels(series), read_points(points) or []))
    found = _found(case, value)
    if case.ordered and [labels for labels, _ in found] != [labels for labels, _ in expected]:
        return f"order {found}"
    mine, theirs = dict(found), dict(expected)
    if mine.keys() != theirs.keys():
        return f"series {found}, expected {expected}"
    for labels, points in theirs.items():
        ours = mine[labels]
        if isinstance(value, Matrix):
            points = [point for point in points if point is not None]
        wanted = points + [None] * (len(ours) - len(points))
        if len(ours) < len(wanted) or not all(_close(one, other) for one, other in zip(ours, wanted, strict=True)):
            return f"{labels}: {ours}, expected {points}"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _found(case: Case, value: Value) -> list[tuple[Labels, list[float | None]]]:
    if isinstance(value, Scalar):
        return [((), value.values.tolist())]
    if isinstance(value, Matrix):
        rows = []
        for group in value.groups:
            inside = slice(int(group.first[0]), int(group.last[0]))
            rows += [(labels, group.values[row, inside].tolist()) for row, labels in enumerate(group.series)]
        return [row for row in rows if row[1]]
    assert isinstance(value, Vector)
    if len(case.times) > 1:
        assert value.values.shape[1] == len(steps(*case.times)), "one column per step"
    cells = np.where(value.present, value.values, 0.0).tolist()
    return [
        (labels, [cell if shown else None for cell, shown in zip(row, present.tolist(), strict=True)])
        for labels, row, present in zip(value.series, cells, value.present, strict=True)
    ]


def _close(ours: float | None, real: float | None) -> bool:
    """Compare as the real runner does: to six digits."""
    if ours is None or real is None:
        return ours is real
    if math.isnan(real) or math.isnan(ours):
        return math.isnan(real) and math.isnan(ours)
    return ours == real or math.isclose(ours, real, rel_tol=1e-6, abs_tol=5e-324)
