"""Locust: the statistics of its web interface, and the exporter that turns them into metrics.

Every modelled program that drives load with simulated users serves them; `containersol/locust_exporter` runs beside it
in the same pod and polls it over the pod's loopback interface.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from srearena.cluster.embedded.machine.exporter import Sample
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, stop_signal, until_stopped
from srearena.cluster.embedded.traffic.load import Driver, Tally

TOTAL = "Aggregated"
PORT = 9646
_POLL_SECONDS = 10.0
"""Chosen: shorter than the scrape interval, so that a scrape never sees statistics older than one interval."""


def statistics(driver: Driver) -> dict[str, Any]:
    """Return the document that `/stats/requests` serves."""
    rows = [
        _row(method, path, tally) for operation, tally in driver.by_task.items() for method, path in [_route(operation)]
    ]
    total = _row("", TOTAL, driver.tally)
    rows.append(total)
    failed = total["num_failures"] / total["num_requests"] if total["num_requests"] else 0.0
    median, slow = driver.tally.rough_quantiles((0.5, 0.95))
    return {
        "stats": rows,
        "errors": [
            {"method": method, "name": path, "error": error, "occurrences": int(count)}
            for operation, tally in driver.by_task.items()
            for method, path in [_route(operation)]
            for error, count in (
                ("HTTPError('500 Server Error')", tally.errors),
                ("ConnectionError", tally.connect_errors),
                ("ReadTimeout", tally.timeouts),
            )
            if count >= 1
        ],
        "total_rps": total["current_rps"],
        "fail_ratio": failed,
        "current_response_time_percentiles": {
            "response_time_percentile_0.5": median * 1000,
            "response_time_percentile_0.95": slow * 1000,
        },
        "user_count": round(driver.users()),
        "state": "running",
    }


def _route(operation: str) -> tuple[str, str]:
    method, _, path = operation.partition(" ")
    return method, path


def _row(method: str, name: str, tally: Tally) -> dict[str, Any]:
    mean, _ = tally.moments()
    least, median, most = tally.rough_quantiles((0.001, 0.5, 0.999))
    sent = tally.completed + tally.timeouts + tally.connect_errors
    failed = tally.errors + tally.timeouts + tally.connect_errors
    return {
        "method": method,
        "name": name,
        "safe_name": name,
        "num_requests": int(sent),
        "num_failures": int(failed),
        "median_response_time": round(median * 1000),
        "avg_response_time": mean * 1000,
        "min_response_time": least * 1000,
        "max_response_time": most * 1000,
        "current_rps": tally.recent_rate(),
        "current_fail_per_sec": tally.recent_rate() * failed / sent if sent else 0.0,
        "avg_content_length": tally.bytes_received / tally.completed if tally.completed else 0.0,
    }


@program("containersol/locust_exporter")
class LocustExporter(Program):
    entrypoint = ("/bin/locust_exporter",)
    base = "distroless"
    binaries = ("/bin/locust_exporter",)
    ports = (PORT,)
    idle_memory = 12 * 1024 * 1024

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        uri = process.env.get("LOCUST_EXPORTER_URI", flags.get("locust.uri", "http://localhost:8089"))
        exporter = Exporter(process, uri)
        stop = stop_signal(process)
        try:
            listener = process.container.namespace.listen(process, PORT, http=exporter.page)
        except OSError as error:
            await process.error(f"listen tcp :{PORT}: bind: {str(error.strerror).lower()}\n")
            return 1
        listener.server = exporter
        process.set_memory(self.idle_memory)
        process.spawn_thread(exporter.follow())
        await process.error('level=info msg="Listening on :9646" source="locust_exporter.go:423"\n')
        await until_stopped(process, stop, [listener], grace=0.0)
        return 0


class Exporter:
    """The last statistics of Locust as metrics; only `locust_up 0` while it does not respond."""

    def __init__(self, process: Process, uri: str) -> None:
        self._process = process
        host, _, port = uri.removeprefix("http://").rstrip("/").partition(":")
        self._host, self._port = host, int(port) if port.isdigit() else 80
        self._document: dict[str, Any] | None = None

    async def follow(self) -> None:
        while True:
            request = HttpRequest("GET", "/stats/requests", {"Host": self._host})
            result = await self._process.container.network.http(self._host, self._port, request, timeout=5.0)
            self._document = None
            if result.response is not None and result.response.status == 200:
                try:
                    self._document = json.loads(result.response.body)
                except ValueError:
                    self._document = None
            await self._process.sleep(_POLL_SECONDS)

    async def page(self, request: HttpRequest) -> HttpResponse:
        lines = [
            f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels.items())}}} {value:g}"
            for name, labels, value in self.metrics()
        ]
        return HttpResponse.text("\n".join(lines) + "\n")

    def metrics(self) -> Iterable[Sample]:
        document = self._document
        yield "locust_up", {}, float(document is not None)
        if document is None:
            return
        yield "locust_running", {}, 1.0
        yield "locust_users", {}, float(document["user_count"])
        yield "locust_requests_fail_ratio", {}, float(document["fail_ratio"])
        percentiles = document["current_response_time_percentiles"]
        yield "locust_requests_current_response_time_percentile_50", {}, percentiles["response_time_percentile_0.5"]
        yield "locust_requests_current_response_time_percentile_95", {}, percentiles["response_time_percentile_0.95"]
        for row in document["stats"]:
            labels = {"method": row["method"], "name": row["name"]}
            for name in _NUMBERS:
                yield f"locust_requests_{name}", labels, float(row[name])
        for row in document["errors"]:
            labels = {"method": row["method"], "name": row["name"], "error": row["error"]}
            yield "locust_errors", labels, float(row["occurrences"])


_NUMBERS = (
    "num_requests",
    "num_failures",
    "avg_response_time",
    "median_response_time",
    "min_response_time",
    "max_response_time",
    "current_rps",
    "current_fail_per_sec",
    "avg_content_length",
)
