"""Telemetry on a shared cluster: installed for the run where none is configured, discovered, and forwarded.

It runs in the namespace `observe`, under the names that applications send their spans to. The alert rules are those of
the embedded cluster, so that an alert means the same on both. Nothing waits for its pods: while an image is pulled, the
telemetry does not respond yet.
"""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster import alert_rules
from srearena.cluster.base import Cluster, TelemetryEndpoints
from srearena.conductor.shared_cluster.forwarding import Forwarding, Target
from srearena.config import LogShipper
from srearena.paths import OBSERVER
from srearena.service.deployment import apply_all
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.manifests import Manifest, in_order, read_manifests

NAMESPACE = "observe"
_PROGRAMS = ("prometheus", "loki", "jaeger")
_SHIPPERS: dict[LogShipper, tuple[str, ...]] = {"alloy": ("alloy",), "filebeat": ("filebeat", "logstash")}
"""Folders of manifests in `srearena/observer/`."""
PORTS = {"prometheus": 9090, "loki": 3100, "jaeger": 16686, "alertmanager": 9093}
"""The backends to discover, and the Service port that identifies each."""


def stack(shipper: LogShipper = "alloy") -> list[Manifest]:
    """The manifests to install, in order."""
    rules: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prometheus-rules", "namespace": NAMESPACE},
        "data": alert_rules.rule_files(),
    }
    manifests = [m for name in (*_PROGRAMS, *_SHIPPERS[shipper]) for m in read_manifests(OBSERVER / name)]
    return in_order([*manifests, Manifest(alert_rules.DIRECTORY, 1, rules)])


def install(cluster: Cluster, api: Kubernetes, shipper: LogShipper) -> None:
    """Apply the manifests, without waiting for the pods."""
    apply_all(cluster, api, NAMESPACE, stack(shipper))


def discover(api: Kubernetes, namespaces: Iterable[str]) -> dict[str, Target]:
    """Find the Services for metrics, logs and traces: the installed ones, or the application's own for traces."""
    of_applications = _services(api, namespaces)
    return _services(api, [NAMESPACE]) | {
        kind: of_applications[kind] for kind in ("jaeger",) if kind in of_applications
    }


def _services(api: Kubernetes, namespaces: Iterable[str]) -> dict[str, Target]:
    targets: dict[str, Target] = {}
    for namespace in namespaces:
        for service in api.list("services", namespace):
            name, ports = service["metadata"]["name"], service["spec"].get("ports") or ()
            for kind, number in PORTS.items():
                if kind in name and any(port["port"] == number for port in ports):
                    targets.setdefault(kind, Target(namespace, name, number))
    return targets


def endpoints_of(forwarding: Forwarding) -> TelemetryEndpoints:
    """The local addresses of the forwarded Services."""
    addresses = {kind: forwarding.address(kind) for kind in forwarding.targets}
    return TelemetryEndpoints(**addresses, token=forwarding.token)
