"""Evaluation of queries: each part once, for all steps.

A step is a time at which the real server would evaluate the whole query; here every value has one column per step, so
the work in Python grows with the size of the query and the number of series, never with the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from srearena.cluster.embedded.go_text import float_text
from srearena.cluster.embedded.telemetry.metrics.blocks import Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, value_of
from srearena.cluster.embedded.telemetry.metrics.promql import histograms, label_functions, selection
from srearena.cluster.embedded.telemetry.metrics.promql.aggregations import aggregated
from srearena.cluster.embedded.telemetry.metrics.promql.annotations import Annotations
from srearena.cluster.embedded.telemetry.metrics.promql.durations import resolved
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery, QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.functions import CALENDAR, ELEMENTWISE
from srearena.cluster.embedded.telemetry.metrics.promql.info_function import enriched, reference_of
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    Aggregation,
    Call,
    Duration,
    Moment,
    Node,
    Number,
    Operation,
    Parenthesis,
    RangeSelector,
    Selector,
    Sign,
    Subquery,
    Text,
    unwrapped,
    value_type,
)
from srearena.cluster.embedded.telemetry.metrics.promql.operators import SETS, TRIMS, between_scalars, with_scalar
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse
from srearena.cluster.embedded.telemetry.metrics.promql.range_functions import RANGE_FUNCTIONS, computed, finished
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Scalar, String, Value, Vector
from srearena.cluster.embedded.telemetry.metrics.promql.vector_matching import set_operation, vector_operation
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

LOOKBACK = 300_000
SUBQUERY_STEP = 60_000
MAX_SAMPLES = 20_000_000
NO_NATIVE_HISTOGRAMS = "{} needs native histograms, which this server does not store"
EARLIEST, LATEST = -(2**53), 2**53
"""Bounds of times in milliseconds, so that sums of times and durations never overflow."""


def steps(start: int, end: int, step: int) -> Integers:
    """Return the times at which a range query is evaluated."""
    return np.arange(start, end + 1, step, dtype=np.int64)


class Engine:
    """Evaluates queries over a store, as the major version of Prometheus it is given. Times are in milliseconds.

    Version 2 differs in ranges and the lookback, which include their left end there.
    """

    def __init__(
        self,
        store: MetricStore,
        lookback: int = LOOKBACK,
        subquery_step: int = SUBQUERY_STEP,
        max_samples: int = MAX_SAMPLES,
        version: int = 3,
    ) -> None:
        self.store = store
        self.lookback = lookback
        self.subquery_step = subquery_step
        self.max_samples = max_samples
        self.version = version
        self.open = 1 if version > 2 else 0
        """Milliseconds by which a range begins after its left end."""

    def parse(self, query: str) -> Node:
        return parse(query, self.version)

    def instant(self, query: str | Node, at: int, annotations: Annotations | None = None) -> Value:
        node = self.parse(query) if isinstance(query, str) else query
        return self._evaluation(np.array([at], dtype=np.int64), at, 0, annotations).value(node)

    def range(
        self, query: str | Node, start: int, end: int, step: int, annotations: Annotations | None = None
    ) -> Vector:
        """Every step from start to end; a scalar becomes the one series without labels."""
        node = self.parse(query) if isinstance(query, str) else query
        kind = value_type(node)
        if kind not in ("scalar", "instant vector"):
            raise BadQuery(f'invalid expression type "{kind}" for range query, must be Scalar or instant Vector')
        times = steps(start, end, step)
        value = self._evaluation(times, end, step, annotations).value(node)
        if isinstance(value, Scalar):
            return Vector([()], value.values[None, :], np.ones((1, len(times)), dtype=bool))
        assert isinstance(value, Vector)
        return value

    def _evaluation(self, times: Integers, end: int, step: int, annotations: Annotations | None) -> Evaluation:
        budget = selection.Budget(self.max_samples)
        return Evaluation(self, times, int(times[0]), end, step, budget, annotations or Annotations())


@dataclass(slots=True)
class Evaluation:
    engine: Engine
    times: Integers
    start: int
    """Start, end and step of the whole query: the values of `@ start()`, `step()` ..., inside subqueries as well."""
    end: int
    step: int
    budget: selection.Budget
    annotations: Annotations = field(default_factory=Annotations)

    def value(self, node: Node) -> Value:
        match node:
            case Number():
                return Scalar(np.full(len(self.times), node.value))
            case Text():
                return String(node.value)
            case Parenthesis():
                return self.value(node.inner)
            case Selector():
                return self._selected(node)
            case RangeSelector() | Subquery():
                return self.matrix(node)
            case Sign():
                return self._signed(node)
            case Call():
                return self._called(node)
            case Aggregation():
                return self._aggregated(node)
            case Operation():
                return self._operated(node)

    def vector(self, node: Node) -> Vector:
        value = self.value(node)
        assert isinstance(value, Vector)
        return value

    def scalar(self, node: Node) -> Floats:
        value = self.value(node)
        assert isinstance(value, Scalar)
        return value.values

    # Samples

    def _resolved(self, duration: Duration, *, negative: bool = False) -> int:
        return resolved(duration, self.step, self.end - self.start, negative=negative)

    def _moments(self, moment: Moment) -> Integers:
        offset = self._resolved(moment.offset, negative=True)
        if moment.at is None:
            return self.times if not offset else np.clip(self.times - offset, EARLIEST, LATEST)
        fixed = {"start": self.start, "end": self.end}.get(moment.at) if isinstance(moment.at, str) else moment.at
        assert fixed is not None
        return np.full(len(self.times), min(max(fixed - offset, EARLIEST), LATEST), dtype=np.int64)

    def _selected(self, node: Selector, timestamps: bool = False) -> Vector:
        at = self._moments(node.moment)
        return self.selected_at(node, at, timestamps)

    def selected_at(self, node: Selector, at: Integers, timestamps: bool = False) -> Vector:
        """The latest sample of each series at some times, or the time of it."""
        lookback = self.engine.lookback - self.engine.open
        return selection.instant(self.engine.store, node, at, lookback, self.budget, timestamps)

    def matrix(self, node: Node) -> Matrix:
        node = unwrapped(node)
        if isinstance(node, RangeSelector):
            at = self._moments(node.selector.moment)
            span = self._resolved(node.span)
            opened = self.engine.open
            return selection.ranges(self.engine.store, node.selector, span, opened, at, self.times, self.budget)
        assert isinstance(node, Subquery)
        at = self._moments(node.moment)
        span = self._resolved(node.span)
        step = self.engine.subquery_step if node.step is None else self._resolved(node.step)
        begin = int(at.min()) - span
        first = -(-(begin + self.engine.open) // step) * step
        self.budget.spend((int(at.max()) + 1 - first) // step)  # before the array of all moments is made
        times = np.arange(first, int(at.max()) + 1, step, dtype=np.int64)
        if not len(times):
            return Matrix([], at - span, at, self.times, span, self.engine.version)
        inner = Evaluation(self.engine, times, self.start, self.end, self.step, self.budget, self.annotations).value(
            node.inner
        )
        if isinstance(inner, Scalar):
            inner = Vector([()], inner.values[None, :], np.ones((1, len(times)), dtype=bool))
        assert isinstance(inner, Vector)
        self.budget.spend(inner.values.size)
        opened = self.engine.open
        groups = selection.windows(inner.series, times, inner.values, inner.present, span, opened, at)
        return Matrix(groups if inner.series else [], at - span, at, self.times, span, self.engine.version)

    # Operators

    def _signed(self, node: Sign) -> Value:
        inner = self.value(node.inner)
        if node.operator == "+":
            return inner
        if isinstance(inner, Scalar):
            return Scalar(-inner.values)
        assert isinstance(inner, Vector)
        return Vector(inner.series, -inner.values, inner.present).nameless().unified()

    def _aggregated(self, node: Aggregation) -> Vector:
        parameter: Floats | str | None = None
        if node.parameter is not None:
            value = self.value(node.parameter)
            parameter = value.value if isinstance(value, String) else None
            if isinstance(value, Scalar):
                parameter = value.values
        vector = self.vector(node.inner)
        if node.parameter is not None and not isinstance(parameter, str) and parameter is not None and vector.series:
            self._check_parameter(node, parameter)
        return aggregated(node.operator, vector, node.labels, node.without, parameter)

    def _check_parameter(self, node: Aggregation, values: Floats) -> None:
        assert node.parameter is not None
        if node.operator == "quantile":
            self.annotations.invalid_quantile(values, node.parameter.at)
        elif node.operator == "limit_ratio":
            for value, bound in ((values.max(), 1.0), (values.min(), -1.0)):
                if abs(value) > 1 and np.sign(value) == bound:
                    capped = f"got {float_text(float(value))}, capping to {float_text(bound)}"
                    self.annotations.warn(f"ratio value should be between -1 and 1, {capped}", node.parameter.at)

    def _operated(self, node: Operation) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Scalar) and isinstance(right, Scalar):
            return between_scalars(node.operator, left, right)
        if isinstance(left, Vector) and isinstance(right, Scalar):
            return with_scalar(node.operator, left, right, False, node.return_bool, self.engine.version)
        if isinstance(left, Scalar) and isinstance(right, Vector):
            return with_scalar(node.operator, right, left, True, node.return_bool, self.engine.version)
        assert isinstance(left, Vector) and isinstance(right, Vector)
        if node.operator in TRIMS:
            raise QueryError(NO_NATIVE_HISTOGRAMS.format(f"the operator {node.operator}"))
        if node.operator in SETS:
            return set_operation(node.operator, left, right, node.matching)
        return vector_operation(node.operator, left, right, node.matching, node.return_bool, self.engine.version)

    # Functions

    def _called(self, node: Call) -> Value:
        name, arguments = node.function, tuple(unwrapped(argument) for argument in node.arguments)
        if name in RANGE_FUNCTIONS:
            return self._over_range(node, name, arguments)
        if name in ELEMENTWISE:
            return self._elementwise(name, arguments)
        if name in CONTEXT:
            return Scalar(np.full(len(self.times), CONTEXT[name](self)))
        match name:
            case "time":
                return Scalar(self.times / 1000)
            case "pi":
                return Scalar(np.full(len(self.times), np.pi))
            case "max_of" | "min_of":
                function = np.maximum if name == "max_of" else np.minimum
                return Scalar(function(self.scalar(arguments[0]), self.scalar(arguments[1])))
            case "vector":
                values = self.scalar(arguments[0])
                return Vector([()], values[None, :], np.ones((1, len(values)), dtype=bool))
            case "scalar":
                return self._single(self.vector(arguments[0]))
            case "timestamp":
                return self._timestamps(arguments[0])
            case "absent":
                return label_functions.absent(self.vector(arguments[0]), arguments[0])
            case "absent_over_time":
                present = computed(RANGE_FUNCTIONS["last_over_time"], self.matrix(arguments[0]), ())
                return label_functions.absent(present, arguments[0])
            case "info":
                return self._info(arguments)
            case "histogram_quantile" | "histogram_quantiles" | "histogram_fraction":
                return self._of_buckets(name, arguments)
            case "label_replace":
                return label_functions.label_replace(self.vector(arguments[0]), _texts(arguments[1:]))
            case "label_join":
                return label_functions.label_join(self.vector(arguments[0]), _texts(arguments[1:]))
            case "sort" | "sort_desc" | "sort_by_label" | "sort_by_label_desc":
                if len(self.times) > 1:
                    self.annotations.sort_in_range_query(node.at)
                vector, descending = self.vector(arguments[0]), name.endswith("_desc")
                if name in ("sort", "sort_desc"):
                    return label_functions.sorted_by_value(vector, descending)
                return label_functions.sorted_by_label(vector, _texts(arguments[1:]), descending)
            case "start_timestamp":
                self.vector(arguments[0])
                return Vector.empty(len(self.times))  # no series has a start time
            case _:
                raise QueryError(NO_NATIVE_HISTOGRAMS.format(f"{name}()"))

    def _over_range(self, node: Call, name: str, arguments: Sequence[Node]) -> Vector:
        scalars = [self.scalar(argument) for argument in arguments if value_type(argument) == "scalar"]
        argument = next(each for each in arguments if value_type(each) == "range vector")
        matrix = self.matrix(argument)
        function = RANGE_FUNCTIONS[name]
        self.budget.work(function.effort_for(matrix))
        vector = computed(function, matrix, scalars)
        if name in ("rate", "increase") and vector.series and self.engine.version > 2:
            known = argument.selector.name if isinstance(argument, RangeSelector) else ""
            names = [known] if known else dict.fromkeys(value_of(labels, NAME) for labels in vector.series)
            for metric in names:
                self.annotations.possible_non_counter(metric, argument.at)
        if name == "quantile_over_time" and vector.series:
            self.annotations.invalid_quantile(scalars[0], node.arguments[0].at)
        return finished(function, vector)

    def _of_buckets(self, name: str, arguments: Sequence[Node]) -> Vector:
        position = 0 if name == "histogram_quantiles" else len(arguments) - 1
        buckets = self.vector(arguments[position])
        scalars = [self.scalar(argument) for argument in arguments if value_type(argument) == "scalar"]
        groups = histograms.grouped(buckets, self.annotations, arguments[position].at)
        if name == "histogram_fraction":
            return histograms.fraction(scalars[0], scalars[1], groups).nameless().unified()
        noted = histograms.Noted(self.annotations, self.times, arguments[position].at)
        if name == "histogram_quantile":
            self.annotations.invalid_quantile(scalars[0], arguments[0].at)
            return histograms.quantile(scalars[0], groups, noted)
        for values, argument in zip(scalars, arguments[2:], strict=True):
            self.annotations.invalid_quantile(values, argument.at)
        return histograms.quantiles(scalars, _texts(arguments[1:2])[0], groups, noted)

    def _info(self, arguments: Sequence[Node]) -> Vector:
        base = self.vector(arguments[0])
        selector = arguments[1] if len(arguments) > 1 else None
        assert selector is None or isinstance(selector, Selector)
        moment = reference_of(arguments[0], self._resolved)
        return enriched(base, () if selector is None else selector.matchers, self, self._moments(moment))

    def _elementwise(self, name: str, arguments: Sequence[Node]) -> Vector:
        if not arguments and name in CALENDAR:
            vector = Vector([()], self.times[None, :] / 1000, np.ones((1, len(self.times)), dtype=bool))
        else:
            vector = self.vector(arguments[0])
        scalars = [self.scalar(argument) for argument in arguments[1:]]
        present = vector.present
        if name == "clamp":
            present = present & ~(scalars[1] < scalars[0])
        with np.errstate(all="ignore"):
            values = ELEMENTWISE[name](vector.values, scalars)
        return Vector(vector.series, np.asarray(values, dtype=np.float64), present).pruned().nameless().unified()

    def _single(self, vector: Vector) -> Scalar:
        """Return the value of the only element; NaN where there is none, or more than one."""
        alone = vector.present.sum(axis=0) == 1
        values = np.where(vector.present, vector.values, 0.0).sum(axis=0)
        return Scalar(np.where(alone, values, np.nan))

    def _timestamps(self, argument: Node) -> Vector:
        if isinstance(argument, Selector):
            vector = self._selected(argument, timestamps=True)
        else:
            vector = self.vector(argument)
            vector = Vector(vector.series, np.broadcast_to(self.times / 1000, vector.values.shape), vector.present)
        return vector.nameless().unified()


CONTEXT: dict[str, Callable[[Evaluation], float]] = {
    "start": lambda evaluation: evaluation.start / 1000,
    "end": lambda evaluation: evaluation.end / 1000,
    "step": lambda evaluation: evaluation.step / 1000,
    "range": lambda evaluation: (evaluation.end - evaluation.start) / 1000,
}
"""Functions of the query's own parameters."""


def _texts(arguments: Sequence[Node]) -> list[str]:
    return [argument.value for argument in arguments if isinstance(argument, Text)]
