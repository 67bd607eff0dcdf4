"""Random queries, generated from a grammar, over the metrics of `samples`.

Left out is what has no one right answer: which of equal elements topk takes, the digits count_values turns into a
label, the hour of infinity; and `@` inside functions of the time, which the recorded version evaluates wrongly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_METRICS = (
    "up",
    "http_requests_total",
    'http_requests_total{code="200"}',
    'http_requests_total{job="web"}',
    "memory_bytes",
    "memory_limit_bytes",
    "pod_info",
    "node_info",
    "temperature",
    "flag",
    "alternating",
    "disk_free_bytes",
    "lonely",
    "request_duration_seconds_bucket",
    "request_duration_seconds_count",
    '{job="api"}',
    "nothing",
)
_LABELS = ("job", "instance", "code", "method", "pod", "node", "namespace", "owner", "le", "name", "phase", "device")
_SPANS = ("15s", "30s", "1m", "90s", "2m", "5m", "10m", "17m", "30m", "1h")
_OVER_RANGES = (
    "rate increase delta irate idelta deriv changes resets avg_over_time min_over_time max_over_time sum_over_time "
    "count_over_time last_over_time present_over_time stddev_over_time stdvar_over_time absent_over_time"
).split()
_OVER_VECTORS = "abs ceil floor exp ln sqrt sgn absent sort sort_desc".split()
_AGGREGATIONS = "sum avg min max count group stddev stdvar quantile".split()
_WITH_SCALARS = ("+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<=", "> bool", "== bool")
_WITH_VECTORS = ("+", "-", "*", "/", "==", "!=", ">", "<", "> bool")
_SETS = ("and", "or", "unless")


class RandomQueries:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def one(self) -> str:
        return self._vector(self._chance.choice((1, 2, 2, 3, 3, 4)))

    def _any(self, choices: Sequence[str]) -> str:
        return self._chance.choice(choices)

    def _labels(self) -> str:
        return ", ".join(self._chance.sample(_LABELS, self._chance.randint(0, 3)))

    def _moment(self) -> str:
        chance = self._chance.random()
        if chance < 0.75:
            return ""
        offset = f" offset {self._any(('', '-'))}{self._any(_SPANS)}"
        at = f" @ {self._any(('start()', 'end()', '1704105000', '1704104000.5'))}"
        return offset if chance < 0.85 else at if chance < 0.92 else at + offset

    def _number(self, depth: int) -> str:
        chance = self._chance.random()
        if chance < 0.7 or depth <= 0:
            return self._any(("0", "1", "2", "0.5", "-1", "3", "100", "0.9", "1e6"))
        if chance < 0.8:
            return "time()"
        if chance < 0.9:
            return f"scalar({self._vector(depth - 1)})"
        return f"({self._number(depth - 1)} {self._any('+-*/%^')} {self._number(depth - 1)})"

    def _range(self, depth: int) -> str:
        if self._chance.random() < 0.7 or depth <= 0:
            return f"{self._any(_METRICS)}[{self._any(_SPANS)}]{self._moment()}"
        step = self._any(("", "15s", "1m", "37s", "2m"))
        return f"({self._vector(depth - 1)})[{self._any(_SPANS)}:{step}]{self._moment()}"

    def _vector(self, depth: int) -> str:
        if depth <= 0:
            return self._any(_METRICS) + self._moment()
        forms = (
            (0.12, lambda: self._any(_METRICS) + self._moment()),
            (0.35, lambda: f"{self._any(_OVER_RANGES)}({self._range(depth - 1)})"),
            (0.55, lambda: self._aggregation(depth)),
            (0.70, lambda: f"{self._any(_OVER_VECTORS)}({self._vector(depth - 1)})"),
            (0.76, lambda: self._label_replace(depth)),
            (0.80, lambda: f"histogram_quantile({self._number(depth - 1)}, {self._vector(depth - 1)})"),
            (0.88, lambda: f"({self._vector(depth - 1)} {self._any(_WITH_SCALARS)} {self._number(depth - 1)})"),
            (1.00, lambda: self._operation(depth)),
        )
        chance = self._chance.random()
        return next(form for bound, form in forms if chance <= bound)()

    def _aggregation(self, depth: int) -> str:
        operator = self._any(_AGGREGATIONS)
        parameter = f"{self._number(depth - 1)}, " if operator == "quantile" else ""
        group = self._any(("", f" by ({self._labels()}) ", f" without ({self._labels()}) "))
        return f"{operator}{group}({parameter}{self._vector(depth - 1)})"

    def _label_replace(self, depth: int) -> str:
        value, pattern = self._any(("$1", "x", "$1-y", "")), self._any(("(.*)", "(.).*", "", "a.*"))
        target, source = self._any(_LABELS), self._any(_LABELS)
        return f'label_replace({self._vector(depth - 1)}, "{target}", "{value}", "{source}", "{pattern}")'

    def _operation(self, depth: int) -> str:
        operator = self._any(_WITH_VECTORS + _SETS)
        matching = self._any(("", "", f"on({self._labels()}) ", f"ignoring({self._labels()}) "))
        if matching and operator not in _SETS and self._chance.random() < 0.4:
            matching += self._any(("group_left", "group_right")) + self._any(("", f"({self._any(_LABELS)})")) + " "
        return f"({self._vector(depth - 1)} {operator} {matching}{self._vector(depth - 1)})"
