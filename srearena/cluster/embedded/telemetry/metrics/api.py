"""Prometheus' HTTP API over a metric store: parameters in, status, headers and body out.

Alerting and recording rules are evaluated lazily (see `alerts.evaluation`): before a query that can select recorded
series, and before rules or alerts are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import orjson

from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics import catalogue, parameters, status
from srearena.cluster.embedded.telemetry.metrics.blocks import milliseconds
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine, steps
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery, QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Node, Selector, selectors
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Scalar, String, Value, Vector
from srearena.cluster.embedded.telemetry.metrics.rendering import (
    json_float,
    point,
    points_json,
    rows_json,
    series_json,
    time_prefixes,
)
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.telemetry.query_api import JSON, TEXT, Params, Response, first, not_found, text_response

MAX_POINTS = 11_000
_STATUS = {"bad_data": 400, "execution": 422, "timeout": 503, "not_found": 404}


class Now(Protocol):
    """A clock: only its time is used."""

    @property
    def now(self) -> float: ...


class RuleSource(Protocol):
    """The rules, as the API lists them."""

    @property
    def recorded_names(self) -> frozenset[str]:
        """The metrics that rules record."""

    def catch_up(self, now: float) -> None: ...

    def groups_json(self, now: float, kind: str) -> list[dict[str, Any]]: ...

    def alerts_json(self, now: float) -> list[dict[str, Any]]: ...


Handler = Callable[["PrometheusApi", Params], bytes]


class PrometheusApi:
    """Prometheus' API. `targets` lists the present scrape targets."""

    def __init__(
        self,
        store: MetricStore,
        clock: Now,
        rules: RuleSource | None = None,
        targets: Callable[[], Iterable[Target]] = tuple,
    ) -> None:
        self.store = store
        self.clock = clock
        self.rules = rules
        self.targets = targets
        self.engine = Engine(store)
        self.started = clock.now

    def handle(self, method: str, path: str, params: Params) -> Response:
        if path in ("/-/healthy", "/-/ready"):
            return text_response(f"Prometheus Server is {'Healthy' if path == '/-/healthy' else 'Ready'}.\n")
        if path == "/":
            return 302, {**TEXT, "location": "graph"}, b""
        if path == "/graph":
            return text_response("This Prometheus has no pages, only its API: see /api/v1/.\n")
        try:
            if path == "/federate" and method == "GET":
                return 200, catalogue.TEXT_FORMAT, catalogue.federated(self.store, params, self._now)
            handler = self._handler(path)
            if handler is None:
                return not_found()
            if method not in ("GET", "POST") or (method == "POST" and path not in _ALSO_POST):
                return text_response("Method Not Allowed\n", 405)
            return 200, JSON, self._enveloped(handler(self, params))
        except QueryError as error:
            body = {"status": "error", "errorType": error.kind, "error": str(error)}
            return _STATUS[error.kind], JSON, orjson.dumps(body)

    def _handler(self, path: str) -> Handler | None:
        handler = _HANDLERS.get(path)
        if handler is None and path.startswith("/api/v1/label/") and path.endswith("/values"):
            name = path.removeprefix("/api/v1/label/").removesuffix("/values")
            return lambda api, params: orjson.dumps(api.label_values(name, params))
        return handler

    def _enveloped(self, data: bytes) -> bytes:
        notice = self.store.notice()
        warnings = b"" if notice is None else b',"warnings":' + orjson.dumps([notice])
        return b'{"status":"success","data":' + data + warnings + b"}"

    @property
    def _now(self) -> int:
        return milliseconds(self.clock.now)

    # Queries

    def query(self, params: Params) -> bytes:
        at = parameters.moment(params, "time", self._now)
        try:
            node = self._parsed(params)
        except BadQuery as error:
            raise parameters.invalid("query", str(error)) from None
        return _result(self.engine.instant(node, at), at)

    def query_range(self, params: Params) -> bytes:
        start, end = parameters.moment(params, "start"), parameters.moment(params, "end")
        if end < start:
            raise parameters.invalid("end", "end timestamp must not be before start time")
        step = parameters.step(params)
        if (end - start) // step > MAX_POINTS:
            raise BadQuery(
                "exceeded maximum resolution of 11,000 points per timeseries. "
                "Try decreasing the query resolution (?step=XX)"
            )
        node = self._parsed(params)
        vector = self.engine.range(node, start, end, step)
        rows = rows_json(vector.series, steps(start, end, step), vector.values, vector.present)
        return f'{{"resultType":"matrix","result":[{",".join(rows)}]}}'.encode()

    def _parsed(self, params: Params) -> Node:
        node = parse(first(params, "query"))
        self._evaluate_rules_for(selectors(node))
        return node

    def _evaluate_rules_for(self, chosen: Iterable[Selector]) -> None:
        """Evaluate rules where a selector can match series that they record."""
        if self.rules is None:
            return
        names = self.rules.recorded_names
        for selector in chosen:
            for matchers in selector.alternatives:
                named = [matcher for matcher in matchers if matcher.name == NAME]
                if any(all(matcher.holds(name) for matcher in named) for name in names):
                    self.rules.catch_up(self.clock.now)
                    return

    # Series, labels and metadata

    def _chosen(self, params: Params, required: bool = False) -> catalogue.Choice:
        chosen = parameters.selectors(params, required)
        if chosen:
            self._evaluate_rules_for(chosen)
        elif self.rules is not None:
            self.rules.catch_up(self.clock.now)
        start, end = parameters.moment(params, "start", -(2**53)), parameters.moment(params, "end", 2**53)
        return catalogue.Choice(parameters.alternatives(chosen), start, end)

    def series(self, params: Params) -> bytes:
        return orjson.dumps([dict(labels) for labels in self._chosen(params, required=True).labels(self.store)])

    def labels(self, params: Params) -> bytes:
        return orjson.dumps(self._chosen(params).label_names(self.store))

    def label_values(self, name: str, params: Params) -> Sequence[str]:
        if not catalogue.LABEL_NAME.fullmatch(name):
            raise BadQuery(f'invalid label name: "{name}"')
        return self._chosen(params).label_values(self.store, name)

    def metadata(self, params: Params) -> bytes:
        return orjson.dumps(catalogue.metadata(self.store, params))

    # Rules, alerts and targets

    def rule_groups(self, params: Params) -> bytes:
        kind = first(params, "type")
        if kind not in ("", "alert", "record"):
            raise BadQuery(f'not supported value "{kind}"')
        groups = [] if self.rules is None else self.rules.groups_json(self.clock.now, kind)
        return orjson.dumps({"groups": groups})

    def alerts(self, params: Params) -> bytes:
        alerts = [] if self.rules is None else self.rules.alerts_json(self.clock.now)
        return orjson.dumps({"alerts": alerts})

    def target_list(self, params: Params) -> bytes:
        return orjson.dumps(status.targets(self.targets(), first(params, "state")))

    # Status

    def build_information(self, params: Params) -> bytes:
        return orjson.dumps(status.BUILD)

    def configuration(self, params: Params) -> bytes:
        return orjson.dumps({"yaml": status.configuration(self.targets())})

    def runtime_information(self, params: Params) -> bytes:
        return orjson.dumps(status.runtime(self.store, format_time(self.started)))


_HANDLERS: dict[str, Handler] = {
    "/api/v1/query": PrometheusApi.query,
    "/api/v1/query_range": PrometheusApi.query_range,
    "/api/v1/series": PrometheusApi.series,
    "/api/v1/labels": PrometheusApi.labels,
    "/api/v1/metadata": PrometheusApi.metadata,
    "/api/v1/rules": PrometheusApi.rule_groups,
    "/api/v1/alerts": PrometheusApi.alerts,
    "/api/v1/targets": PrometheusApi.target_list,
    "/api/v1/status/buildinfo": PrometheusApi.build_information,
    "/api/v1/status/config": PrometheusApi.configuration,
    "/api/v1/status/runtimeinfo": PrometheusApi.runtime_information,
    "/api/v1/alertmanagers": lambda api, params: orjson.dumps(status.ALERTMANAGERS),
    "/api/v1/query_exemplars": lambda api, params: b"[]",
    "/api/v1/status/flags": lambda api, params: orjson.dumps(status.FLAGS),
    "/api/v1/status/tsdb": lambda api, params: orjson.dumps(status.tsdb(api.store)),
}
_ALSO_POST = frozenset(f"/api/v1/{name}" for name in ("query", "query_range", "query_exemplars", "series", "labels"))


def _result(value: Value, at: int) -> bytes:
    match value:
        case Scalar():
            kind, result = "scalar", point(at, json_float(float(value.values[0])))
        case String():
            kind, result = "string", f"[{point(at, '')[1:-4]},{orjson.dumps(value.value).decode()}]"
        case Vector():
            kind, result = "vector", _vector(value, at)
        case Matrix():
            kind, result = "matrix", _matrix(value)
    return f'{{"resultType":"{kind}","result":{result}}}'.encode()


def _vector(vector: Vector, at: int) -> str:
    values = map(json_float, vector.values[:, 0].tolist())
    rows = [
        series_json(labels, point(at, value), many=False) for labels, value in zip(vector.series, values, strict=True)
    ]
    return f"[{','.join(rows)}]"


def _matrix(matrix: Matrix) -> str:
    rows = []
    for group in matrix.groups:
        inside = slice(int(group.first[0]), int(group.last[0]))
        prefixes = time_prefixes(group.times[inside])
        if prefixes:
            rows += [
                (labels, points_json(prefixes, group.values[row, inside])) for row, labels in enumerate(group.series)
            ]
    return "[" + ",".join(series_json(labels, points, many=True) for labels, points in sorted(rows)) + "]"
