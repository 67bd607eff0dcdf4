"""Evaluation of queries: each part once, for all steps.

A step is a time at which the real server would evaluate the whole query; here every value has one column per step, so
the work in Python grows with the size of the query and the number of series, never with the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.promql import label_functions, selection
from srearena.cluster.embedded.telemetry.metrics.promql.aggregations import aggregated
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery, QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.functions import CALENDAR, ELEMENTWISE
from srearena.cluster.embedded.telemetry.metrics.promql.histograms import histogram_quantile
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    Aggregation,
    Call,
    Moment,
    Negation,
    Node,
    Number,
    Operation,
    RangeSelector,
    Selector,
    Subquery,
    Text,
    value_type,
)
from srearena.cluster.embedded.telemetry.metrics.promql.operators import SETS, between_scalars, with_scalar
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse
from srearena.cluster.embedded.telemetry.metrics.promql.range_functions import RANGE_FUNCTIONS, applied
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Scalar, String, Value, Vector
from srearena.cluster.embedded.telemetry.metrics.promql.vector_matching import set_operation, vector_operation
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

LOOKBACK = 300_000
SUBQUERY_STEP = 60_000
MAX_SAMPLES = 20_000_000


def steps(start: int, end: int, step: int) -> Integers:
    """Return the times at which a range query is evaluated."""
    return np.arange(start, end + 1, step, dtype=np.int64)


class Engine:
    """Evaluates queries over a store. Times are in milliseconds."""

    def __init__(
        self,
        store: MetricStore,
        lookback: int = LOOKBACK,
        subquery_step: int = SUBQUERY_STEP,
        max_samples: int = MAX_SAMPLES,
    ) -> None:
        self.store = store
        self.lookback = lookback
        self.subquery_step = subquery_step
        self.max_samples = max_samples

    def instant(self, query: str | Node, at: int) -> Value:
        node = parse(query) if isinstance(query, str) else query
        return self._evaluation(np.array([at], dtype=np.int64), at).value(node)

    def range(self, query: str | Node, start: int, end: int, step: int) -> Vector:
        """Every step from start to end; a scalar becomes the one series without labels."""
        node = parse(query) if isinstance(query, str) else query
        kind = value_type(node)
        if kind not in ("scalar", "instant vector"):
            raise BadQuery(f'invalid expression type "{kind}" for range query, must be Scalar or instant Vector')
        times = steps(start, end, step)
        value = self._evaluation(times, end).value(node)
        if isinstance(value, Scalar):
            return Vector([()], value.values[None, :], np.ones((1, len(times)), dtype=bool))
        assert isinstance(value, Vector)
        return value

    def _evaluation(self, times: Integers, end: int) -> Evaluation:
        return Evaluation(self, times, int(times[0]), end, selection.Budget(self.max_samples))


@dataclass(slots=True)
class Evaluation:
    engine: Engine
    times: Integers
    start: int
    """Start and end of the whole query: the values of `@ start()` and `@ end()`, inside subqueries as well."""
    end: int
    budget: selection.Budget

    def value(self, node: Node) -> Value:
        match node:
            case Number():
                return Scalar(np.full(len(self.times), node.value))
            case Text():
                return String(node.value)
            case Selector():
                return self._selected(node)
            case RangeSelector() | Subquery():
                return self.matrix(node)
            case Negation():
                return self._negated(node)
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

    def _moments(self, moment: Moment) -> Integers:
        match moment.at:
            case None:
                times = self.times
            case "start":
                times = np.full(len(self.times), self.start, dtype=np.int64)
            case "end":
                times = np.full(len(self.times), self.end, dtype=np.int64)
            case fixed:
                times = np.full(len(self.times), fixed, dtype=np.int64)
        return times - moment.offset

    def _selected(self, node: Selector, timestamps: bool = False) -> Vector:
        at = self._moments(node.moment)
        return selection.instant(self.engine.store, node, at, self.engine.lookback, self.budget, timestamps)

    def matrix(self, node: Node) -> Matrix:
        if isinstance(node, RangeSelector):
            at = self._moments(node.selector.moment)
            return selection.ranges(self.engine.store, node.selector, node.span, at, self.times, self.budget)
        assert isinstance(node, Subquery)
        at = self._moments(node.moment)
        step = node.step or self.engine.subquery_step
        begin = int(at.min()) - node.span
        first = -(-begin // step) * step
        times = np.arange(first, int(at.max()) + 1, step, dtype=np.int64)
        if not len(times):
            return Matrix([], at - node.span, at, self.times, node.span)
        inner = Evaluation(self.engine, times, self.start, self.end, self.budget).value(node.inner)
        if isinstance(inner, Scalar):
            inner = Vector([()], inner.values[None, :], np.ones((1, len(times)), dtype=bool))
        assert isinstance(inner, Vector)
        self.budget.spend(inner.values.size)
        groups = selection.windows(inner.series, times, inner.values, inner.present, node.span, at)
        return Matrix(groups if inner.series else [], at - node.span, at, self.times, node.span)

    # Operators

    def _negated(self, node: Negation) -> Value:
        inner = self.value(node.inner)
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
        return aggregated(node.operator, self.vector(node.inner), node.labels, node.without, parameter)

    def _operated(self, node: Operation) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Scalar) and isinstance(right, Scalar):
            return between_scalars(node.operator, left, right)
        if isinstance(left, Vector) and isinstance(right, Scalar):
            return with_scalar(node.operator, left, right, False, node.return_bool)
        if isinstance(left, Scalar) and isinstance(right, Vector):
            return with_scalar(node.operator, right, left, True, node.return_bool)
        assert isinstance(left, Vector) and isinstance(right, Vector)
        if node.operator in SETS:
            return set_operation(node.operator, left, right, node.matching)
        return vector_operation(node.operator, left, right, node.matching, node.return_bool)

    # Functions

    def _called(self, node: Call) -> Value:
        name, arguments = node.function, node.arguments
        if name in RANGE_FUNCTIONS:
            scalars = [self.scalar(argument) for argument in arguments if value_type(argument) == "scalar"]
            matrix = self.matrix(next(each for each in arguments if value_type(each) == "range vector"))
            function = RANGE_FUNCTIONS[name]
            self.budget.work(function.effort_for(matrix))
            return applied(function, matrix, scalars)
        if name in ELEMENTWISE:
            return self._elementwise(name, arguments)
        match name:
            case "time":
                return Scalar(self.times / 1000)
            case "pi":
                return Scalar(np.full(len(self.times), np.pi))
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
                present = applied(RANGE_FUNCTIONS["last_over_time"], self.matrix(arguments[0]), ())
                return label_functions.absent(present, arguments[0])
            case "histogram_quantile":
                return histogram_quantile(self.scalar(arguments[0]), self.vector(arguments[1]))
            case "label_replace":
                return label_functions.label_replace(self.vector(arguments[0]), _texts(arguments[1:]))
            case "label_join":
                return label_functions.label_join(self.vector(arguments[0]), _texts(arguments[1:]))
            case "sort" | "sort_desc":
                return label_functions.sorted_by_value(self.vector(arguments[0]), name == "sort_desc")
            case "sort_by_label" | "sort_by_label_desc":
                descending = name == "sort_by_label_desc"
                return label_functions.sorted_by_label(self.vector(arguments[0]), _texts(arguments[1:]), descending)
            case _:
                raise QueryError(f"{name}() is not supported by this server")

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


def _texts(arguments: Sequence[Node]) -> list[str]:
    return [argument.value for argument in arguments if isinstance(argument, Text)]
