"""wrk2 as a Job in the application's namespace: an open loop at a fixed rate, in endless rounds.

    Wrk(url="http://frontend:5000", script=lua, rate=100).start(api, "hotel-reservation")

The Job `wrk2-job` runs `wrk2-workload.sh` from the ConfigMap `wrk2-payload-script` and logs its results. A changing
rate is approximated by rounds: each has the mean rate of its period.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srearena.generators.workload.jobs import LABELS, job_log, start_job, stop_job
from srearena.generators.workload.mix import Route, read_mix
from srearena.generators.workload.shapes import Constant, Shape, describe, mean_rate, parse_shape
from srearena.generators.workload.wrk_log import WrkResult, read_log
from srearena.service.errors import ApplicationError
from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
IMAGE = "deathstarbench/wrk2-client:latest"
JOB = "wrk2-job"
CONFIG = "wrk2-payload-script"
SHELL_SCRIPT = "wrk2-workload.sh"
_LONGEST_PLAN = 86_400.0
"""Seconds for which a changing load is planned; afterwards the last rate continues. Chosen: one day."""
_MOST_ROUNDS = 2000
"""Chosen: keeps the script well below the size limit of a ConfigMap (1 MiB)."""


@dataclass(frozen=True, slots=True)
class Wrk:
    """The settings of wrk2."""

    url: str
    script: str
    """Lua; its comments declare the routes (see `mix`)."""
    script_name: str = "workload.lua"
    load: Shape = field(default_factory=lambda: Constant(100.0))
    distribution: str = "exp"
    """The distribution of the time between requests: `exp`, `fixed`, `norm` or `zipf`."""
    connections: int = 100
    duration: int = 30
    """The duration of a round in seconds."""
    threads: int = 3
    lasting: float = 0.0
    """Seconds for which a changing load is planned; 0 for as long as its shape changes, at most a day."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ApplicationError(f"wrk needs an address that starts with http://, not {self.url!r}")
        if self.threads < 1 or self.connections < self.threads or self.duration < 1:
            raise ApplicationError("wrk needs at least one thread, a connection for each, and rounds of a second")
        read_mix(self.script)

    @property
    def routes(self) -> tuple[Route, ...]:
        return read_mix(self.script)

    def start(self, api: Kubernetes, namespace: str) -> None:
        start_job(api, namespace, self.config(), self.job())

    def stop(self, api: Kubernetes, namespace: str) -> None:
        stop_job(api, namespace, self.config(), self.job())

    def result(self, api: Kubernetes, namespace: str) -> WrkResult | None:
        return read_log(job_log(api, namespace, JOB))

    # Manifests

    def config(self) -> Obj:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG, "labels": dict(LABELS)},
            "data": {
                self.script_name: f"-- shape: {describe(self.load)}\n{self.script}",
                SHELL_SCRIPT: self.shell_script(),
            },
        }

    def job(self) -> Obj:
        container = {
            "name": "wrk2-client",
            "image": IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "args": ["/bin/bash", f"/scripts/{SHELL_SCRIPT}"],
            "volumeMounts": [{"name": "wrk2-scripts", "mountPath": "/scripts", "readOnly": True}],
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": JOB, "labels": dict(LABELS)},
            "spec": {
                "template": {
                    "metadata": {"labels": dict(LABELS)},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [container],
                        "volumes": [{"name": "wrk2-scripts", "configMap": {"name": CONFIG}}],
                    },
                }
            },
        }

    def shell_script(self) -> str:
        rates = self.rates()
        planned = f"for rate in {' '.join(rates)}; do\n  run_round\ndone\n" if len(rates) > 1 else ""
        return _SCRIPT.format(
            distribution=shlex.quote(self.distribution),
            threads=self.threads,
            connections=self.connections,
            duration=self.duration,
            script=shlex.quote(f"/scripts/{self.script_name}"),
            url=shlex.quote(self.url),
            planned=planned,
            rate=rates[-1],
        )

    def rates(self) -> list[str]:
        """The rate of each round; the last one continues for ever."""
        if isinstance(self.load, Constant):
            return [_rate(self.load.rate)]
        length = min(self.lasting or _LONGEST_PLAN, _MOST_ROUNDS * self.duration)
        starts = range(0, max(1, int(length)), self.duration + 1)  # each round is followed by a pause of one second
        rates = [_rate(mean_rate(self.load, start, start + self.duration)) for start in starts]
        while len(rates) > 1 and rates[-1] == rates[-2]:
            rates.pop()
        return rates


def _rate(value: float) -> str:
    """wrk2 accepts positive integers only."""
    return str(max(1, round(value)))


def from_settings(folder: Path, settings: Mapping[str, Any]) -> Wrk:
    """Create wrk2 from an application's `workload.yaml`: `rate` (a number or a shape), `script` (a file), ..."""
    options = dict(settings)
    script = folder / str(options.pop("script", ""))
    if not script.is_file():
        raise ApplicationError(f"{folder}: the script of the workload does not exist: {script.name!r}")
    load = parse_shape(options.pop("rate", 100))
    return Wrk(script=script.read_text(), script_name=script.name, load=load, **options)


_SCRIPT = """#!/bin/bash
# Sends load in rounds, without end.
round=1

run_round() {{
  echo "Running wrk2 on round #$round"
  wrk -t {threads} -c {connections} -d {duration}s -R "$rate" -D {distribution} -L -s {script} {url}
  round=$((round + 1))
  sleep 1
}}

{planned}rate={rate}
while true; do
  run_round
done
"""
