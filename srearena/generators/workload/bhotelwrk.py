"""The load generator of Blueprint Hotel Reservation: an open loop that can send one spike.

A Job `bhotelwrk-wlgen-job` (or, with `continuous`, a Deployment `bhotelwrk-wlgen`) whose settings are in the ConfigMap
`bhotelwrk-wlgen-env`: TPUT requests a second for STABLETIME seconds, MULTIPLIER times that for TRIGGERTIME, then TPUT
again; after DURATION it prints its results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srearena.generators.workload.jobs import LABELS, job_log, start_job, stop_job
from srearena.generators.workload.shapes import Constant, Shape, Spike
from srearena.service.errors import ApplicationError
from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
IMAGE = "777lefty/wlgen-proc:latest"
JOB = "bhotelwrk-wlgen-job"
DEPLOYMENT = "bhotelwrk-wlgen"
CONFIG = "bhotelwrk-wlgen-env"
_BEGIN, _END = "Finished all requests", "End of latency distribution"
_LINE = re.compile(r"^\s*([A-Za-z][\w ()/.]*?)\s*:\s*(\S+)\s*$")
_LATENCY = re.compile(r"^p(\d+(?:\.\d+)?)$")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_COMMAND = (
    "/app/wlgen_proc --outfile $OUTFILE --duration $DURATION --tput $TPUT --multiplier $MULTIPLIER"
    " --stabletime $STABLETIME --triggertime $TRIGGERTIME --reverttime $REVERTTIME"
)


@dataclass(frozen=True, slots=True)
class BHotelResult:
    """The results of one run."""

    started: str
    requests: int
    errors: int
    throughput: float
    percentiles: Mapping[float, float]
    """Percent to seconds."""

    @property
    def success_ratio(self) -> float:
        return (self.requests - self.errors) / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class BHotelWrk:
    """The settings of the generator."""

    address: str = "frontend-service:12345"
    rate: int = 3000
    duration: int = 120
    multiplier: int = 6
    """The spike's rate as a multiple of `rate`; 1 for no spike."""
    stable: int = 60
    spike: int = 30
    revert: int = 30
    continuous: bool = False
    """Run as a Deployment, which restarts the generator when it ends."""
    replicas: int = 1
    """The number of generators, with `continuous`."""

    def __post_init__(self) -> None:
        if min(self.rate, self.duration, self.multiplier, self.replicas) < 1:
            raise ApplicationError("rate, duration, multiplier and replicas of a load must be at least 1")

    @property
    def load(self) -> Shape:
        """The load of one run of one generator."""
        if self.multiplier == 1:
            return Constant(float(self.rate))
        return Spike(float(self.rate), float(self.rate * self.multiplier), float(self.stable), float(self.spike))

    def start(self, api: Kubernetes, namespace: str) -> None:
        if self.continuous:
            api.apply(self.config(), namespace)
            api.apply(self.deployment(), namespace)
        else:
            start_job(api, namespace, self.config(), self.job())

    def stop(self, api: Kubernetes, namespace: str) -> None:
        api.delete("deployments", DEPLOYMENT, namespace)
        stop_job(api, namespace, self.config(), self.job())

    def result(self, api: Kubernetes, namespace: str) -> BHotelResult | None:
        return read_log(job_log(api, namespace, JOB))

    # Manifests

    def config(self) -> Obj:
        settings = {
            "FRONTEND_SERVICE_HTTP_DIAL_ADDR": self.address,
            "JAEGER_DIAL_ADDR": "jaeger:14268",
            "OUTFILE": "stats.csv",
            "DURATION": f"{self.duration}s",
            "TPUT": str(self.rate),
            "MULTIPLIER": str(self.multiplier),
            "STABLETIME": str(self.stable),
            "TRIGGERTIME": str(self.spike),
            "REVERTTIME": str(self.revert),
        }
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG, "labels": dict(LABELS)},
            "data": settings,
        }

    def job(self) -> Obj:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": JOB, "labels": dict(LABELS)},
            "spec": {"backoffLimit": 0, "template": self._template(dict(LABELS), "Never")},
        }

    def deployment(self) -> Obj:
        labels = {**LABELS, "app": DEPLOYMENT}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": DEPLOYMENT, "labels": labels},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": {"app": DEPLOYMENT}},
                "template": self._template(labels, "Always"),
            },
        }

    def _template(self, labels: dict[str, str], restart: str) -> Obj:
        container = {
            "name": "wlgen",
            "image": IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "envFrom": [{"configMapRef": {"name": CONFIG}}],
            "command": ["/bin/sh", "-c"],
            "args": [_COMMAND],
        }
        return {"metadata": {"labels": labels}, "spec": {"restartPolicy": restart, "containers": [container]}}


def read_log(text: str) -> BHotelResult | None:
    """Parse the last finished run in a log; None where there is none."""
    start, end = text.rfind(_BEGIN), text.rfind(_END)
    if start < 0 or end < start:
        return None
    values: dict[str, str] = {}
    percentiles: dict[float, float] = {}
    for line in text[start:end].splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        latency = _LATENCY.match(match[1])
        if latency is not None:
            percentiles[float(latency[1])] = _duration(match[2])
        else:
            values[match[1].lower()] = match[2]
    return BHotelResult(
        started=values.get("start time", ""),
        requests=int(values.get("total requests", "0")),
        errors=int(values.get("total errors", "0")),
        throughput=float(values.get("throughput (req/s)", "0")),
        percentiles=percentiles,
    )


def _duration(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)(us|µs|ms|s)", text)
    return float(match[1]) * _SECONDS[match[2].replace("µ", "u")] if match else 0.0


def from_settings(folder: Path, settings: Mapping[str, Any]) -> BHotelWrk:
    """Create the generator from an application's `workload.yaml`."""
    return BHotelWrk(**settings)
