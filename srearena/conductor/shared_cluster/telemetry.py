"""Telemetry on a real cluster: installed for the visit where nobody says where it is, found, and made reachable.

It lives in the namespace `observe`, under the names that applications send their spans to. Alert rules are those of the
embedded cluster, so that the same alert means the same on both. Nothing waits for it: an image that is still being
pulled is telemetry that does not answer yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from srearena import cluster as environments
from srearena.cluster.base import Cluster, TelemetryEndpoints
from srearena.cluster.kubernetes import observe
from srearena.conductor.shared_cluster.forwarding import Forwarding, Target
from srearena.service.deployment import apply_all
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.manifests import Manifest, in_order, read_manifests

NAMESPACE = "observe"
_MANIFESTS = Path(observe.__file__).parent
_RULES = Path(environments.__file__).parent / "embedded" / "telemetry" / "alerts" / "rules"
PORTS = {"prometheus": 9090, "loki": 3100, "jaeger": 16686, "alertmanager": 9093}
"""What is looked for, and the port by which it is known."""


def stack() -> list[Manifest]:
    """Everything that is installed."""
    rules: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prometheus-rules", "namespace": NAMESPACE},
        "data": {path.name: path.read_text() for path in sorted(_RULES.glob("*.yaml"))},
    }
    return in_order([*read_manifests(_MANIFESTS), Manifest(_RULES, 1, rules)])


def install(cluster: Cluster, api: Kubernetes) -> None:
    """Bring it into the cluster; does not wait for it to be up."""
    apply_all(cluster, api, NAMESPACE, stack())


def discover(api: Kubernetes, namespaces: Iterable[str]) -> dict[str, Target]:
    """What answers for metrics, logs and traces: Services of ours, or, for traces, of an application's own."""
    places = list(namespaces)
    found = _offered(api, places)
    return _offered(api, [NAMESPACE]) | {what: target for what, target in found.items() if what == "jaeger"}


def _offered(api: Kubernetes, namespaces: Iterable[str]) -> dict[str, Target]:
    found: dict[str, Target] = {}
    for namespace in namespaces:
        for service in api.list("services", namespace):
            name, ports = service["metadata"]["name"], service["spec"].get("ports") or ()
            for what, number in PORTS.items():
                if what in name and any(port["port"] == number for port in ports):
                    found.setdefault(what, Target(namespace, name, number))
    return found


def reached(forwarding: Forwarding) -> TelemetryEndpoints:
    """Where what was found is asked from this machine."""
    addresses = {what: forwarding.address(what) for what in forwarding.targets}
    return TelemetryEndpoints(**addresses, token=forwarding.token)
