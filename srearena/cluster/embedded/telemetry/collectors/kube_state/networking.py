"""Families about services, their endpoints, ingresses and network policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from srearena.cluster.embedded.objects import Obj, annotations_of, dig, uid_of
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Kind,
    Reading,
    created,
    info,
    named,
    text,
    version,
)

_service = named("service")


def _service_labels(service: Obj) -> Mapping[str, str]:
    return {**_service(service), "uid": uid_of(service)}


def _external_addresses(service: Obj) -> Iterable[Reading]:
    return [({"external_ip": address}, 1.0) for address in dig(service, "spec", "externalIPs", default=())]


def _balancers(service: Obj) -> Iterable[Reading]:
    rows = dig(service, "status", "loadBalancer", "ingress", default=())
    return [({"ip": row.get("ip") or "", "hostname": row.get("hostname") or ""}, 1.0) for row in rows]


def _port(row: Obj) -> dict[str, str]:
    return {
        "port_name": row.get("name") or "",
        "port_protocol": row.get("protocol") or "TCP",
        "port_number": text(row.get("port")),
    }


def _distinct(rows: Iterable[Mapping[str, str]]) -> Iterable[Reading]:
    """One series for each label set: subsets may repeat a port."""
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        key = tuple(row.values())
        if key not in seen:
            seen.add(key)
            yield row, 1.0


def _endpoint_addresses(endpoints: Obj) -> Iterable[Reading]:
    return _distinct(
        {**_port(port), "ip": address["ip"], "ready": ready}
        for subset in endpoints.get("subsets") or ()
        for port in subset.get("ports") or ()
        for field, ready in (("addresses", "true"), ("notReadyAddresses", "false"))
        for address in subset.get(field) or ()
    )


def _endpoint_ports(endpoints: Obj) -> Iterable[Reading]:
    return _distinct(_port(port) for subset in endpoints.get("subsets") or () for port in subset.get("ports") or ())


def _slice_endpoints(piece: Obj) -> Iterable[Reading]:
    for row in piece.get("endpoints") or ():
        conditions, target = row.get("conditions") or {}, row.get("targetRef") or {}
        labels = {
            "ready": text(conditions.get("ready")),
            "serving": text(conditions.get("serving")),
            "terminating": text(conditions.get("terminating")),
            "hostname": text(row.get("hostname")),
            "targetref_kind": text(target.get("kind")),
            "targetref_name": text(target.get("name")),
            "targetref_namespace": text(target.get("namespace")),
            "endpoint_nodename": text(row.get("nodeName")),
            "endpoint_zone": text(row.get("zone")),
        }
        for address in row.get("addresses") or ():
            yield {**labels, "address": address}, 1.0


def _slice_ports(piece: Obj) -> Iterable[Reading]:
    return [(_port(port), 1.0) for port in piece.get("ports") or ()]


def _ingress_info(ingress: Obj) -> Iterable[Reading]:
    chosen = annotations_of(ingress).get("kubernetes.io/ingress.class") or dig(ingress, "spec", "ingressClassName")
    return (({"ingressclass": chosen or "_default"}, 1.0),)


def _ingress_paths(ingress: Obj) -> Iterable[Reading]:
    for rule in dig(ingress, "spec", "rules", default=()):
        for path in dig(rule, "http", "paths", default=()):
            labels = {"host": text(rule.get("host")), "path": text(path.get("path"))}
            backend = path.get("backend") or {}
            service, resource = backend.get("service"), backend.get("resource") or {}
            if service:
                port = str(dig(service, "port", "number", default=0))
                yield {**labels, "service_name": service["name"], "service_port": port}, 1.0
            else:
                group = text(resource.get("apiGroup"))
                kind, name = text(resource.get("kind")), text(resource.get("name"))
                yield {**labels, "resource_api_group": group, "resource_kind": kind, "resource_name": name}, 1.0


def _ingress_tls(ingress: Obj) -> Iterable[Reading]:
    for row in dig(ingress, "spec", "tls", default=()):
        for host in row.get("hosts") or ():
            yield {"tls_host": host, "secret": text(row.get("secretName"))}, 1.0


def _rules(field: str) -> Family:
    def read(policy: Obj) -> Iterable[Reading]:
        return (({}, float(len(dig(policy, "spec", field, default=())))),)

    return Family(f"kube_networkpolicy_spec_{field}_rules", f"How many {field} rules there are.", read)


_S, _E, _ES, _I = "kube_service", "kube_endpoint", "kube_endpointslice", "kube_ingress"

SERVICES = Kind(
    "services",
    _service_labels,
    (
        info(
            f"{_S}_info",
            "Addresses of a Service.",
            cluster_ip=("spec", "clusterIP"),
            external_name=("spec", "externalName"),
            load_balancer_ip=("spec", "loadBalancerIP"),
            external_traffic_policy=("spec", "externalTrafficPolicy"),
        ),
        created(_S),
        info(f"{_S}_spec_type", "How the Service is exposed.", type=("spec", "type")),
        Family(f"{_S}_spec_external_ip", "Addresses outside the cluster.", _external_addresses),
        Family(f"{_S}_status_load_balancer_ingress", "Where its load balancer is.", _balancers),
    ),
)

ENDPOINTS = Kind(
    "endpoints",
    named("endpoint"),
    (
        info(f"{_E}_info", "There are such endpoints."),
        created(_E),
        Family(f"{_E}_address", "Addresses behind a Service, ready or not.", _endpoint_addresses),
        Family(f"{_E}_ports", "Ports behind a Service.", _endpoint_ports),
    ),
)

SLICES = Kind(
    "endpointslices.discovery.k8s.io",
    named("endpointslice"),
    (
        info(f"{_ES}_info", "Kind of addresses in a slice.", addresstype=("addressType",)),
        created(_ES),
        Family(f"{_ES}_endpoints", "Endpoints in a slice.", _slice_endpoints),
        Family(f"{_ES}_ports", "Ports of a slice.", _slice_ports),
    ),
)

INGRESSES = Kind(
    "ingresses.networking.k8s.io",
    named("ingress"),
    (
        Family(f"{_I}_info", "Whose ingress it is.", _ingress_info),
        created(_I),
        version(_I),
        Family(f"{_I}_path", "Paths and their Services.", _ingress_paths),
        Family(f"{_I}_tls", "Hosts with TLS, and the secret for it.", _ingress_tls),
    ),
)

POLICIES = Kind(
    "networkpolicies.networking.k8s.io",
    named("networkpolicy"),
    (created("kube_networkpolicy"), _rules("ingress"), _rules("egress")),
)

KINDS = (SERVICES, ENDPOINTS, SLICES, INGRESSES, POLICIES)
