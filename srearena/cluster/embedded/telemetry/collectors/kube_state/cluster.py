"""Families about the cluster: nodes, namespaces, leases, webhooks, certificate signing requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from srearena.cluster.embedded.objects import Obj, dig, labels_of, meta, name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Kind,
    Reading,
    amount,
    clusterwide,
    conditions,
    created,
    deleted,
    info,
    label_name,
    seconds,
    text,
    truth,
    unit_of,
    version,
)

_ROLE = "node-role.kubernetes.io/"


def _node_info(node: Obj) -> Iterable[Reading]:
    facts = dig(node, "status", "nodeInfo", default={})
    internal = [row["address"] for row in dig(node, "status", "addresses", default=()) if row["type"] == "InternalIP"]
    labels = {
        "kernel_version": text(facts.get("kernelVersion")),
        "os_image": text(facts.get("osImage")),
        "container_runtime_version": text(facts.get("containerRuntimeVersion")),
        "kubelet_version": text(facts.get("kubeletVersion")),
        "kubeproxy_version": "deprecated",
        "provider_id": text(dig(node, "spec", "providerID")),
        "pod_cidr": text(dig(node, "spec", "podCIDR")),
        "system_uuid": text(facts.get("systemUUID")),
        "internal_ip": internal[-1] if internal else "",
    }
    return ((labels, 1.0),)


def _roles(node: Obj) -> Iterable[Reading]:
    return [({"role": key.removeprefix(_ROLE)}, 1.0) for key in sorted(labels_of(node)) if key.startswith(_ROLE)]


def _taints(node: Obj) -> Iterable[Reading]:
    rows = dig(node, "spec", "taints", default=())
    return [({"key": row["key"], "value": text(row.get("value")), "effect": row["effect"]}, 1.0) for row in rows]


def _unschedulable(node: Obj) -> Iterable[Reading]:
    return (({}, truth(dig(node, "spec", "unschedulable"))),)


def _amounts(name: str, help: str, side: str) -> Family:
    def read(node: Obj) -> Iterable[Reading]:
        for resource, quantity in sorted(dig(node, "status", side, default={}).items()):
            unit = "integer" if resource == "pods" else unit_of(resource)
            if unit:
                yield {"resource": label_name(resource), "unit": unit}, amount(quantity)

    return Family(name, help, read)


def _addresses(node: Obj) -> Iterable[Reading]:
    rows = dig(node, "status", "addresses", default=())
    return [({"type": row["type"], "address": row["address"]}, 1.0) for row in rows]


def _phases(namespace: Obj) -> Iterable[Reading]:
    current = dig(namespace, "status", "phase")
    return [({"phase": phase}, truth(phase == current)) for phase in ("Active", "Terminating")]


def _lease_owner(lease: Obj) -> Iterable[Reading]:
    labels = {"namespace": namespace_of(lease), "lease_holder": text(dig(lease, "spec", "holderIdentity"))}
    owners = meta(lease).get("ownerReferences")
    if not owners:
        return ((labels, 1.0),)
    return [({**labels, "owner_kind": owner["kind"], "owner_name": owner["name"]}, 1.0) for owner in owners]


def _renewed(lease: Obj) -> Iterable[Reading]:
    renewed = seconds(dig(lease, "spec", "renewTime"))
    return () if renewed is None else (({"namespace": namespace_of(lease)}, renewed),)


def _webhook_services(configuration: Obj) -> Iterable[Reading]:
    for webhook in configuration.get("webhooks") or ():
        service = dig(webhook, "clientConfig", "service")
        if service:
            labels = {"webhook_name": webhook["name"], "service_name": service["name"]}
            yield {**labels, "service_namespace": service["namespace"]}, 1.0


def _webhooks(resource: str, label: str) -> Kind:
    prefix = f"kube_{label}"
    return Kind(
        f"{resource}.admissionregistration.k8s.io",
        clusterwide(label),
        (
            info(f"{prefix}_info", "There is such a configuration of webhooks."),
            created(prefix),
            version(prefix),
            Family(f"{prefix}_webhook_clientconfig_service", "The Service of the webhook.", _webhook_services),
        ),
    )


def _request_labels(request: Obj) -> Mapping[str, str]:
    signer = text(dig(request, "spec", "signerName"))
    return {"certificatesigningrequest": name_of(request), "signer_name": signer}


def _verdicts(request: Obj) -> Iterable[Reading]:
    kinds = [row["type"] for row in dig(request, "status", "conditions", default=())]
    return [({"condition": kind.lower()}, float(kinds.count(kind))) for kind in ("Approved", "Denied")]


def _certificate(request: Obj) -> Iterable[Reading]:
    encoded = dig(request, "status", "certificate", default="")
    return (({}, float(len(encoded.rstrip("=")) * 3 // 4)),)


_N, _NS, _CSR = "kube_node", "kube_namespace", "kube_certificatesigningrequest"

NODES = Kind(
    "nodes",
    clusterwide("node"),
    (
        created(_N),
        deleted(_N),
        Family(f"{_N}_info", "What runs on a node.", _node_info),
        Family(f"{_N}_role", "Roles of a node.", _roles),
        Family(f"{_N}_spec_taint", "Taints of a node.", _taints),
        Family(f"{_N}_spec_unschedulable", "Whether a node is cordoned.", _unschedulable),
        _amounts(f"{_N}_status_allocatable", "What pods may have of a node.", "allocatable"),
        _amounts(f"{_N}_status_capacity", "What a node has.", "capacity"),
        conditions(f"{_N}_status_condition", "Conditions of a node."),
        Family(f"{_N}_status_addresses", "Addresses of a node.", _addresses),
    ),
)

NAMESPACES = Kind(
    "namespaces",
    clusterwide("namespace"),
    (
        created(_NS),
        Family(f"{_NS}_status_phase", "The namespace's phase.", _phases),
        conditions(f"{_NS}_status_condition", "Conditions of the namespace."),
    ),
)

LEASES = Kind(
    "leases.coordination.k8s.io",
    clusterwide("lease"),
    (
        Family("kube_lease_owner", "Owner and holder of a lease.", _lease_owner),
        Family("kube_lease_renew_time", "When a lease was last renewed.", _renewed),
    ),
)

CERTIFICATE_REQUESTS = Kind(
    "certificatesigningrequests.certificates.k8s.io",
    _request_labels,
    (
        created(_CSR),
        Family(f"{_CSR}_condition", "Verdicts on the request.", _verdicts),
        Family(f"{_CSR}_cert_length", "Bytes of the certificate that was issued.", _certificate),
    ),
)

KINDS = (
    NODES,
    NAMESPACES,
    LEASES,
    _webhooks("mutatingwebhookconfigurations", "mutatingwebhookconfiguration"),
    _webhooks("validatingwebhookconfigurations", "validatingwebhookconfiguration"),
    CERTIFICATE_REQUESTS,
)
