"""An engineer with questions to an application, who uses public interfaces: API, exec, metrics, logs and traces."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx

from srearena.cluster import Cluster
from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes


class Doubt(Exception):
    """An answer that does not fit a healthy system."""


Question = Callable[["Engineer"], None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of a query's result."""

    labels: dict[str, str]
    value: float


class Engineer:
    """Asks, and doubts where answers do not fit together. `minutes` is how long the application has had its load."""

    def __init__(self, cluster: Cluster, api: Kubernetes, application: Application, minutes: int) -> None:
        self.cluster = cluster
        self.api = api
        self.application = application
        self.namespace = application.namespace
        self.minutes = minutes
        self.window = f"{minutes}m"
        """A range of queries: the whole time under load, less a minute at its beginning."""
        endpoints = cluster.telemetry
        self._endpoints = endpoints
        headers = {"authorization": f"Bearer {endpoints.token}"} if endpoints.token else {}
        self._http = httpx.Client(headers=headers, timeout=120)
        self._marker = 0

    def close(self) -> None:
        self._http.close()

    def marker(self) -> int:
        """A number that marks what one question writes."""
        self._marker += 1
        return int(self.now) % 10**6 * 100 + self._marker

    @property
    def now(self) -> float:
        return self.query_one("time()")

    # Metrics

    def query(self, expression: str) -> list[Sample]:
        url = f"{self._endpoints.prometheus}/api/v1/query"
        answer = self._http.get(url, params={"query": expression}).json()
        if answer.get("status") != "success":
            raise Doubt(f"{expression}: {answer.get('error')}")
        data = answer["data"]
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(row["metric"], float(row["value"][1])) for row in data["result"]]

    def query_one(self, expression: str) -> float:
        """The only value of an expression; zero where there is none."""
        found = self.query(expression)
        if len(found) > 1:
            raise Doubt(f"{expression} gives {len(found)} series")
        return found[0].value if found else 0.0

    def total(self, expression: str) -> float:
        return self.query_one(f"sum({expression})")

    def rate(self, selector: str) -> float:
        return self.total(f"rate({selector}[{self.window}])")

    def calls(self, labels: str) -> float:
        """Calls a second of the spans with these labels."""
        return self.rate(f"traces_span_metrics_calls_total{{{labels}}}")

    # Logs and traces

    def log_counts(self, selector: str) -> list[Sample]:
        """Lines by pod in the time of `window`."""
        expression = f"sum by (pod) (count_over_time({selector}[{self.window}]))"
        url = f"{self._endpoints.loki}/loki/api/v1/query"
        answer = self._http.get(url, params={"query": expression}).json()
        return [Sample(row["metric"], float(row["value"][1])) for row in answer["data"]["result"]]

    def services(self) -> list[str]:
        return list(self._http.get(f"{self._endpoints.jaeger}/api/services").json()["data"])

    def traces(self, service: str, limit: int = 300) -> list[dict[str, Any]]:
        now = self.now
        parameters: dict[str, str | int] = {"service": service, "limit": limit, "lookback": "custom"}
        parameters |= {"start": int((now - 60 * self.minutes) * 1e6), "end": int(now * 1e6)}
        return list(self._http.get(f"{self._endpoints.jaeger}/api/traces", params=parameters).json()["data"])

    # The cluster

    def pods(self) -> list[dict[str, Any]]:
        return list(self.api.list("pods", self.namespace))

    def run(self, pod: str, *command: str, container: str = "", namespace: str = "") -> str:
        """The output of a command in the first pod whose name starts so."""
        place = namespace or self.namespace
        names = sorted(obj["metadata"]["name"] for obj in self.api.list("pods", place))
        name = next((name for name in names if name.startswith(pod)), "")
        if not name:
            raise Doubt(f"there is no pod {pod}")
        result = self.api.exec(name, list(command), place, container=container)
        if result.status != 0:
            raise Doubt(f"{' '.join(command)} in {name} ended with {result.status}: {result.errors.strip()}")
        return result.output.strip()

    def mongo(self, pod: str, database: str, script: str, shell: str = "mongo") -> Any:
        text = self.run(pod, shell, "--quiet", database, "--eval", f"JSON.stringify({script})")
        return json.loads(text)

    def send(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """Status and text of a request to the frontend: `query`, `form`, `body` (JSON) or `headers`."""
        frontend = self.application.frontend
        if frontend is None:
            raise Doubt("there is no frontend")
        headers = dict(options.get("headers") or {})
        data = b""
        if "form" in options:
            data = urlencode(options["form"]).encode()
            headers["content-type"] = "application/x-www-form-urlencoded"
        elif "body" in options:
            data = json.dumps(options["body"]).encode()
            headers["content-type"] = "application/json"
        target = f"{path}?{urlencode(options['query'])}" if "query" in options else path
        place = frontend.namespace or self.namespace
        reply = self.api.request_service(
            frontend.service, frontend.port, target, place, method=method, body=data or None, headers=headers
        )
        return reply.status, reply.text


def must(holds: bool, what: str) -> None:
    if not holds:
        raise Doubt(what)


def must_agree(first: float, second: float, what: str, *, share: float = 0.05, absolute: float = 0.0) -> None:
    """Two counts of the same thing are the same, but for a share of them."""
    if not math.isclose(first, second, rel_tol=share, abs_tol=absolute):
        raise Doubt(f"{what}: {first:g} and {second:g}")


def first_few(names: Iterable[object]) -> str:
    listed = [str(name) for name in names]
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
