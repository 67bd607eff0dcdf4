"""Instant queries over HTTP, here and in the real Prometheus beside us, on the same samples, in turns.

Run it with `python -m benchmarks.prometheus_http [--pods N] [--rounds N]`; figures belong in docs/promql.md. Both
servers are processes of their own and are asked over one connection each; a figure is the median of all rounds. Times
on the wall depend on what else runs on the machine; the processor time of each server hardly does. The real one is
Debian's package, or the binary that `PROMETHEUS` names; without one only our own times are shown. `ALERTS` is evaluated
from the packaged rules here, and written as samples there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.promql import QUERIES, samples
from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from srearena.cluster.embedded.telemetry.server import TelemetryServer
from tests.promql.real_prometheus import BINARY, running
from tests.promql.samples import INTERVAL, START, SampleSeries, loaded

TOKEN = "benchmark"
HOURS = 1.0
TARGETS = 40
"""Targets of which every fourth is down, so that alerts fire."""
ADDED = {
    "up": "up",
    "alerts": "ALERTS",
    "firing alerts by name": 'count by (alertname) (ALERTS{alertstate="firing"})',
    "a constant": "vector(1)",
    "one metric of all": '{__name__="up", job="web"}',
    "topk of a gauge": "topk(5, container_memory_working_set_bytes)",
    "average by service": "avg by (service) (container_memory_working_set_bytes)",
}


def all_samples(pods: int) -> list[SampleSeries]:
    times = [START + index * INTERVAL for index in range(round(HOURS * 3_600_000 / INTERVAL))]
    up = [
        SampleSeries(
            {"__name__": "up", "job": "web", "instance": f"10.0.0.{number}:80", "namespace": "shop"},
            [(at, float(number % 4 > 0)) for at in times],
        )
        for number in range(TARGETS)
    ]
    return [*samples(pods, HOURS), *up]


class _Clock:
    now = START / 1000 + HOURS * 3600 - 1


def prepared(pods: int) -> PrometheusApi:
    store = loaded(all_samples(pods))
    return PrometheusApi(store, _Clock(), Rules(store))


async def serve(pods: int) -> None:
    """Serve our API until the input ends; print its port."""
    server = TelemetryServer({"prometheus": prepared(pods)}, TOKEN)
    await server.start()
    print(server.url("prometheus").rpartition(":")[2], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


@contextlib.contextmanager
def served(pods: int) -> Iterator[tuple[int, int]]:
    """Serve in another process; its port and process identifier."""
    command = [sys.executable, "-m", "benchmarks.prometheus_http", "--pods", str(pods), "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.communicate("")


def processor_milliseconds(pid: int) -> float:
    """The processor time that all threads of a process have used."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


class Client:
    def __init__(self, port: int, pid: int, token: str = "") -> None:
        self.pid = pid
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def ask(self, query: str) -> tuple[float, int]:
        """Return milliseconds and the number of results."""
        parameters = urllib.parse.urlencode({"query": query, "time": _Clock.now})
        begin = perf_counter()
        self._connection.request("GET", f"/api/v1/query?{parameters}", headers=self._headers)
        body = self._connection.getresponse().read()
        elapsed = perf_counter() - begin
        answer = json.loads(body)
        assert answer["status"] == "success", answer
        return elapsed * 1000, len(answer["data"]["result"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.pods))
        return
    queries = QUERIES | ADDED
    with contextlib.ExitStack() as stack:
        clients = [Client(*stack.enter_context(served(arguments.pods)), TOKEN)]
        if BINARY is not None:
            real = stack.enter_context(running(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
            real.write([*all_samples(arguments.pods), *_alerts(arguments.pods)])
            clients.append(Client(int(real.address.rpartition(":")[2]), real.pid))
        ratios, processor_ratios = [], []
        real_columns = f" {'real':>9}    ratio {'ours, CPU':>12} {'real, CPU':>12}    ratio"
        print(f"{'query':24} {'results':>8} {'ours':>9}" + (real_columns if len(clients) > 1 else ""))
        for name, query in queries.items():
            times: list[list[float]] = [[] for _ in clients]
            counts = [0 for _ in clients]
            used = [0.0 for _ in clients]
            for _ in range(arguments.rounds):
                for number, client in enumerate(clients):
                    before = processor_milliseconds(client.pid)
                    elapsed, counts[number] = client.ask(query)
                    used[number] += (processor_milliseconds(client.pid) - before) / arguments.rounds
                    times[number].append(elapsed)
            medians = [statistics.median(found) for found in times]
            line = f"{name:24} {counts[0]:8} {medians[0]:6.2f} ms"
            if len(clients) > 1:
                assert counts[0] == counts[1], f"{name}: {counts[0]} results here, {counts[1]} there"
                ratios.append(medians[0] / medians[1])
                processor_ratios.append(used[0] / used[1])
                line += f" {medians[1]:6.2f} ms {ratios[-1]:7.2f}x"
                line += f" {used[0]:9.2f} ms {used[1]:9.2f} ms {processor_ratios[-1]:7.2f}x"
            print(line)
        if ratios:
            print(
                f"median ratio: {statistics.median(ratios):.2f}x; of processor time: "
                f"{statistics.median(processor_ratios):.2f}x"
            )


def _alerts(pods: int) -> list[SampleSeries]:
    """Return what our rules record, as samples for the real server."""
    api = prepared(pods)
    assert api.rules is not None
    api.rules.catch_up(api.clock.now)
    found = []
    for name in ("ALERTS", "ALERTS_FOR_STATE"):
        selector = api.engine.parse(name)
        for labels, times, values in api.store.select(selector.matchers, 0, api.clock.now):  # type: ignore[union-attr]
            points = [(round(at * 1000), value) for at, value in zip(times.tolist(), values.tolist(), strict=True)]
            found.append(SampleSeries(dict(labels), points))
    return found


if __name__ == "__main__":
    main()
