"""Network faults: policies that block traffic, DNS failures, misrouted ingresses, links that lose or delay packets."""

from __future__ import annotations

import re
from base64 import b64encode

from srearena.generators.certificates import Certificate
from srearena.generators.fault.edits import Addition, CompositeFault, Edit, ReplacePods
from srearena.generators.fault.errors import FaultError
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import Pause, pods_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

_SYSTEM = "kube-system"


@fault("network_policy_block")
def network_policy_block(bed: Testbed, service: str) -> Fault:
    """A network policy blocks all ingress and egress of a workload's pods."""
    labels = bed.kubernetes.get("deployments", service, bed.namespace)["spec"]["selector"]["matchLabels"]
    policy: Obj = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": service, "namespace": bed.namespace},
        "spec": {"podSelector": {"matchLabels": dict(labels)}, "policyTypes": ["Ingress", "Egress"]},
    }
    return Addition(bed, policy)


# Ingress


@fault("ingress_misroute")
def ingress_misroute(bed: Testbed, ingress: str, backend: str, port: int) -> Fault:
    """An Ingress routes requests to a wrong Service."""

    def change(obj: Obj) -> None:
        for rule in obj["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                path["backend"]["service"] = {"name": backend, "port": {"number": port}}

    return Edit(bed, "ingresses", ingress, change)


@fault("expired_tls")
def expired_tls(bed: Testbed, secret: str, certificate: Certificate) -> Fault:
    """The Secret with an Ingress's certificate holds an expired one."""

    def change(obj: Obj) -> None:
        files = {"tls.crt": certificate.certificate, "tls.key": certificate.key}
        obj["data"].update({name: b64encode(text.encode()).decode() for name, text in files.items()})

    return Edit(bed, "secrets", secret, change)


# DNS


def _corefile_stanza(bed: Testbed, stanza: str) -> Fault:
    """Insert a stanza before the others into the Corefile, and restart CoreDNS."""

    def change(obj: Obj) -> None:
        head, brace, tail = obj["data"]["Corefile"].partition("{\n")
        if not brace:
            raise FaultError("the Corefile of this cluster is malformed: its first server block has no brace")
        obj["data"]["Corefile"] = f"{head}{{\n{stanza}{tail}"

    edit = Edit(bed, "configmaps", "coredns", change, namespace=_SYSTEM)
    return CompositeFault(edit, ReplacePods(bed, "k8s-app=kube-dns", namespace=_SYSTEM))


def _nxdomain(zone: str, pattern: str) -> str:
    return f'    template ANY ANY {zone} {{\n        match "{pattern}"\n        rcode NXDOMAIN\n    }}\n'


@fault("service_dns_resolution_failure")
def service_dns_resolution_failure(bed: Testbed, service: str) -> Fault:
    """CoreDNS returns NXDOMAIN for the name of one Service."""
    name = f"{service}.{bed.namespace}.svc.cluster.local"
    escaped = name.replace(".", "\\.")
    return _corefile_stanza(bed, _nxdomain(name, f"^{escaped}\\.$"))


@fault("stale_coredns_config")
def stale_coredns_config(bed: Testbed, service: str) -> Fault:
    """CoreDNS returns NXDOMAIN for every Service of the cluster."""
    return _corefile_stanza(bed, _nxdomain("svc.cluster.local", r".*\.svc\.cluster\.local\.$"))


# Links


class ShapePodNetwork(Fault):
    """Delays or drops packets at the interfaces of a workload's pods, for the lifetime of these pods."""

    def __init__(self, bed: Testbed, service: str, **shape: float) -> None:
        self._bed = bed
        self._service = service
        self._shape = shape
        self._done: list[tuple[str, str]] = []

    def inject(self) -> None:
        for pod in pods_of(self._bed, self._service):
            node, name = pod["spec"]["nodeName"], f"{self._bed.namespace}/{pod['metadata']['name']}"
            self._bed.cluster.nodes.perform("shape_network", node, pod=name, **self._shape)
            self._done.append((node, name))

    def recover(self) -> None:
        existing = {f"{self._bed.namespace}/{pod['metadata']['name']}" for pod in pods_of(self._bed, self._service)}
        for node, name in self._done:
            if name in existing:
                self._bed.cluster.nodes.perform("shape_network", node, pod=name)
        self._done = []

    def in_place(self) -> bool:
        return bool(self._done)


@fault("network_delay")
def network_delay(bed: Testbed, service: str, seconds: float = 1.0) -> Fault:
    return ShapePodNetwork(bed, service, delay=seconds, jitter=seconds / 10)


@fault("network_loss")
def network_loss(bed: Testbed, service: str, share: float = 0.6) -> Fault:
    return ShapePodNetwork(bed, service, loss=share)


# Load balancing


@fault("stale_rules")
def stale_rules(bed: Testbed, service: str, mode: str, replicas: int) -> Fault:
    """kube-proxy no longer runs, so that nodes keep their old rules while a workload gets more pods."""

    def change(obj: Obj) -> None:
        obj["data"]["config.conf"] = re.sub(r"(?m)^mode:.*$", f"mode: {mode}", obj["data"]["config.conf"])

    return CompositeFault(
        Edit(bed, "configmaps", "kube-proxy", change, namespace=_SYSTEM),
        ReplacePods(bed, "k8s-app=kube-proxy", namespace=_SYSTEM),
        Pause(bed, 60),
        Edit(bed, "deployments", service, lambda obj: obj["spec"].update(replicas=replicas)),
    )
