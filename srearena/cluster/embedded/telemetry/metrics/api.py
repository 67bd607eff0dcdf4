"""Prometheus' HTTP API over a metric store: parameters in, status, headers and body out.

Alerting and recording rules are evaluated lazily (see `alerts.evaluation`): before a query that can select recorded
series, and before rules or alerts are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import orjson

from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics import catalogue, parameters, status
from srearena.cluster.embedded.telemetry.metrics.blocks import milliseconds
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.promql.annotations import Annotations
from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine, steps
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery, QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Node, Selector, selectors
from srearena.cluster.embedded.telemetry.metrics.promql.printing import formatted
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Scalar, String, Value, Vector
from srearena.cluster.embedded.telemetry.metrics.rendering import (
    json_float,
    metric_json,
    point,
    points_json,
    rows_json,
    series_json,
    time_prefixes,
    time_text,
)
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.telemetry.query_api import JSON, TEXT, Params, Response, first, not_found, text_response

MAX_POINTS = 11_000
TRUNCATED = "results truncated due to limit"
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


class Answer(NamedTuple):
    """The data of a response, as JSON, with its warnings and infos."""

    data: bytes
    warnings: Sequence[str] = ()
    infos: Sequence[str] = ()


Handler = Callable[["PrometheusApi", Params], Answer]


class PrometheusApi:
    """Prometheus' API. `targets` lists the present scrape targets; `version` is the major version it behaves as."""

    def __init__(
        self,
        store: MetricStore,
        clock: Now,
        rules: RuleSource | None = None,
        targets: Callable[[], Iterable[Target]] = tuple,
        version: int = 3,
    ) -> None:
        self.store = store
        self.clock = clock
        self.rules = rules
        self.targets = targets
        self.engine = Engine(store, version=version)
        self.started = clock.now

    def handle(self, method: str, path: str, params: Params) -> Response:
        if path in ("/-/healthy", "/-/ready"):
            return text_response(f"Prometheus Server is {'Healthy' if path == '/-/healthy' else 'Ready'}.\n")
        if path in ("/", "/graph"):
            return 302, {**TEXT, "location": "/query"}, b""
        if path == "/query":
            return text_response("This Prometheus has no pages, only its API: see /api/v1/.\n")
        if path == "/version":
            return 200, TEXT, orjson.dumps(status.build(self.engine.version)) + b"\n"
        try:
            if path == "/metrics" and method == "GET":
                return 200, catalogue.TEXT_FORMAT, catalogue.own_metrics(self.store, self._now)
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
            return lambda api, params: api.label_values(name, params)
        return handler

    def _enveloped(self, answer: Answer) -> bytes:
        notice = self.store.notice()
        warnings = [*answer.warnings, *([notice] if notice else [])]
        noted = b',"warnings":' + orjson.dumps(warnings) if warnings else b""
        if answer.infos:
            noted += b',"infos":' + orjson.dumps(answer.infos)
        return b'{"status":"success","data":' + answer.data + noted + b"}"

    @property
    def _now(self) -> int:
        return milliseconds(self.clock.now)

    # Queries

    def query(self, params: Params) -> Answer:
        limit = parameters.limit(params)
        at = parameters.moment(params, "time", self._now)
        annotations = Annotations()
        with parameters.named("query"):
            value = self.engine.instant(self._parsed(params), at, annotations)
        return self._annotated(params, _result(value, at, limit), annotations, _is_longer(value, limit))

    def query_range(self, params: Params) -> Answer:
        limit = parameters.limit(params)
        start, end = parameters.moment(params, "start"), parameters.moment(params, "end")
        if end < start:
            raise parameters.invalid("end", "end timestamp must not be before start time")
        step = parameters.step(params)
        if (end - start) // step > MAX_POINTS:
            raise BadQuery(
                "exceeded maximum resolution of 11,000 points per timeseries. "
                "Try decreasing the query resolution (?step=XX)"
            )
        annotations = Annotations()
        with parameters.named("query") if self.engine.version > 2 else nullcontext():
            vector = self.engine.range(self._parsed(params), start, end, step, annotations)
        rows = rows_json(vector.series, steps(start, end, step), vector.values, vector.present, limit)
        data = f'{{"resultType":"matrix","result":[{",".join(rows)}]}}'.encode()
        return self._annotated(params, data, annotations, _is_longer(vector, limit))

    def format_query(self, params: Params) -> Answer:
        with parameters.named("query"):
            return _json(formatted(self.engine.parse(first(params, "query"))))

    def _parsed(self, params: Params) -> Node:
        node = self.engine.parse(first(params, "query"))
        self._evaluate_rules_for(selectors(node))
        return node

    def _annotated(self, params: Params, data: bytes, annotations: Annotations, truncated: bool) -> Answer:
        query = first(params, "query")
        warnings = [TRUNCATED] if truncated else []
        if self.engine.version == 2:
            return Answer(data, warnings)
        return Answer(data, [*annotations.warnings(query), *warnings], annotations.infos(query))

    def _evaluate_rules_for(self, chosen: Iterable[Selector]) -> None:
        """Evaluate rules where a selector can match series that they record."""
        if self.rules is None:
            return
        names = self.rules.recorded_names
        for selector in chosen:
            named = [matcher for matcher in selector.matchers if matcher.name == NAME]
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
        return catalogue.Choice([selector.matchers for selector in chosen], start, end)

    def series(self, params: Params) -> Answer:
        limit = parameters.limit(params)
        return _limited([dict(labels) for labels in self._chosen(params, required=True).labels(self.store)], limit)

    def labels(self, params: Params) -> Answer:
        limit = parameters.limit(params)
        return _limited(self._chosen(params).label_names(self.store), limit)

    def label_values(self, name: str, params: Params) -> Answer:
        if not name:
            raise BadQuery('invalid label name: ""')
        limit = parameters.limit(params)
        return _limited(self._chosen(params).label_values(self.store, name), limit)

    def metadata(self, params: Params) -> Answer:
        return _json(catalogue.metadata(self.store, params))

    def target_metadata(self, params: Params) -> Answer:
        return _json(catalogue.target_metadata(self.store, params, self.targets()))

    # Rules, alerts and targets

    def rule_groups(self, params: Params) -> Answer:
        kind = first(params, "type").lower()
        if kind not in ("", "alert", "record"):
            raise parameters.invalid("type", f'not supported value "{kind}"')
        groups = [] if self.rules is None else self.rules.groups_json(self.clock.now, kind)
        return _json({"groups": status.chosen_groups(groups, params)})

    def alerts(self, params: Params) -> Answer:
        alerts = [] if self.rules is None else self.rules.alerts_json(self.clock.now)
        return _json({"alerts": alerts})

    def target_list(self, params: Params) -> Answer:
        pool = first(params, "scrapePool")
        found = (target for target in self.targets() if pool in ("", target.job))
        return _json(status.targets(found, first(params, "state").lower()))

    def scrape_pools(self, params: Params) -> Answer:
        return _json({"scrapePools": sorted({target.job for target in self.targets()})})

    # Status

    def build_information(self, params: Params) -> Answer:
        return _json(status.build(self.engine.version))

    def configuration(self, params: Params) -> Answer:
        return _json({"yaml": status.configuration(self.targets())})

    def runtime_information(self, params: Params) -> Answer:
        return _json(status.runtime(self.store, format_time(self.started), format_time(self.clock.now)))


_HANDLERS: dict[str, Handler] = {
    "/api/v1/query": PrometheusApi.query,
    "/api/v1/query_range": PrometheusApi.query_range,
    "/api/v1/format_query": PrometheusApi.format_query,
    "/api/v1/series": PrometheusApi.series,
    "/api/v1/labels": PrometheusApi.labels,
    "/api/v1/metadata": PrometheusApi.metadata,
    "/api/v1/rules": PrometheusApi.rule_groups,
    "/api/v1/alerts": PrometheusApi.alerts,
    "/api/v1/targets": PrometheusApi.target_list,
    "/api/v1/targets/metadata": PrometheusApi.target_metadata,
    "/api/v1/scrape_pools": PrometheusApi.scrape_pools,
    "/api/v1/status/buildinfo": PrometheusApi.build_information,
    "/api/v1/status/config": PrometheusApi.configuration,
    "/api/v1/status/runtimeinfo": PrometheusApi.runtime_information,
    "/api/v1/alertmanagers": lambda api, params: _json(status.ALERTMANAGERS),
    "/api/v1/query_exemplars": lambda api, params: _json([]),
    "/api/v1/status/flags": lambda api, params: _json(status.flags(api.engine.version)),
    "/api/v1/status/tsdb": lambda api, params: _json(status.tsdb(api.store)),
    "/api/v1/status/tsdb/blocks": lambda api, params: _json({"blocks": []}),
    "/api/v1/status/walreplay": lambda api, params: _json(status.WAL_REPLAY),
    "/api/v1/notifications": lambda api, params: _json([]),
}
_ALSO_POST = frozenset(
    f"/api/v1/{name}" for name in ("query", "query_range", "query_exemplars", "format_query", "series", "labels")
)


def _json(data: Any) -> Answer:
    return Answer(orjson.dumps(data))


def _limited(found: Sequence[Any], limit: int) -> Answer:
    if limit and len(found) > limit:
        return Answer(orjson.dumps(found[:limit]), [TRUNCATED])
    return _json(found)


def _is_longer(value: Value, limit: int) -> bool:
    if not limit:
        return False
    if isinstance(value, Matrix):
        return sum(len(group.series) for group in value.groups) > limit
    return isinstance(value, Vector) and len(value.series) > limit


def _result(value: Value, at: int, limit: int) -> bytes:
    match value:
        case Scalar():
            kind, result = "scalar", point(at, json_float(float(value.values[0])))
        case String():
            kind, result = "string", f"[{point(at, '')[1:-4]},{orjson.dumps(value.value).decode()}]"
        case Vector():
            kind, result = "vector", _vector(value, at, limit)
        case Matrix():
            kind, result = "matrix", _matrix(value, limit)
    return f'{{"resultType":"{kind}","result":{result}}}'.encode()


def _vector(vector: Vector, at: int, limit: int) -> str:
    moment = time_text(at)
    pairs = zip(vector.series[: limit or None], vector.values[:, 0].tolist(), strict=not limit)
    rows = [f'{{"metric":{metric_json(labels)},"value":[{moment},"{json_float(value)}"]}}' for labels, value in pairs]
    return f"[{','.join(rows)}]"


def _matrix(matrix: Matrix, limit: int) -> str:
    rows = []
    for group in matrix.groups:
        inside = slice(int(group.first[0]), int(group.last[0]))
        prefixes = time_prefixes(group.times[inside])
        if prefixes:
            rows += [
                (labels, points_json(prefixes, group.values[row, inside])) for row, labels in enumerate(group.series)
            ]
    chosen = sorted(rows)[: limit or None]
    return "[" + ",".join(series_json(labels, points, many=True) for labels, points in chosen) + "]"
