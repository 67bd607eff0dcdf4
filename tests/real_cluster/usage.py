"""What the programs of a healthy application use: CPU and time per request, memory, seconds to start.

Compared between clusters they say how well the constants of the application's model are chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median, quantiles
from typing import Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes
from tests.real_cluster.fingerprints import workload_of
from tests.real_cluster.spans import Span, seconds, spans

Usage = dict[str, dict[str, float]]
_CPU = 'sum by (pod) (rate(container_cpu_usage_seconds_total{{namespace="{namespace}",container!=""}}[{window:.0f}s]))'
_MEMORY = 'max by (pod) (container_memory_working_set_bytes{{namespace="{namespace}",container!=""}})'


def take_usage(app: Application, api: Kubernetes, telemetry: Telemetry, window: float, rate: float) -> Usage:
    """By workload, in the last `window` seconds under `rate` requests a second at the frontend."""
    assert app.frontend is not None
    now = seconds(api.now())
    front = app.frontend.service
    served: dict[str, list[Span]] = {}
    for span in spans(app, api, front, now - min(window, 45), now):
        if span.served:
            served.setdefault(span.service, []).append(span)
    pods = {pod["metadata"]["name"]: pod for name in app.namespaces for pod in api.list("pods", name)}
    scope = {"namespace": app.namespace, "window": window}
    cpu = telemetry.values(_CPU.format(**scope), "pod")
    memory = telemetry.values(_MEMORY.format(**scope), "pod")
    found: Usage = {}
    for name, pod in sorted(pods.items()):
        workload = workload_of(pod)
        usage = {
            "cores": cpu.get(name, 0.0),
            "memory MiB": memory.get(name, 0.0) / 2**20,
            "ready after s": _ready_after(pod),
        }
        if some := served.get(workload):
            a_second = rate * len(some) / len(served[front])
            durations = [span.duration for span in some]
            usage |= {
                "requests/s": a_second,
                "CPU ms/request": 1000 * usage["cores"] / a_second,
                "median ms": median(durations),
                "p95 ms": quantiles(durations, n=20)[-1] if len(durations) > 1 else durations[0],
            }
        found[workload] = {key: float(f"{value:.3g}") for key, value in usage.items()}
    return found


def _ready_after(pod: Mapping[str, Any]) -> float:
    """Seconds from the start of the last container until the pod was ready."""
    status = pod.get("status") or {}
    started = max(_starts(status.get("containerStatuses") or ()), default=0.0)
    ready = [
        seconds(one["lastTransitionTime"])
        for one in status.get("conditions") or ()
        if one["type"] == "Ready" and one["status"] == "True"
    ]
    return max(0.0, ready[0] - started) if ready and started else 0.0


def _starts(containers: Iterable[Mapping[str, Any]]) -> Iterable[float]:
    for one in containers:
        if "running" in one["state"]:
            yield seconds(one["state"]["running"]["startedAt"])
