"""Tables of services and what is behind them, ingresses, network policies and address bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from srearena.cluster.embedded.api.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Column,
    count,
    items,
    labels_at,
    mapping,
    more,
    number,
    printer,
    selector_at,
    strings,
    text,
    text_at,
    wide,
)
from srearena.cluster.embedded.objects import Obj, dig

_SHOWN: Final = 3


def _cluster_ip(obj: Obj, now: float) -> str:
    addresses = strings(obj, "spec", "clusterIPs")
    return addresses[0] if addresses else text(obj, "spec", "clusterIP", missing=NONE)


def _balancer(obj: Obj) -> list[str]:
    ingress = items(obj, "status", "loadBalancer", "ingress")
    return sorted({text(entry, "ip") or text(entry, "hostname") for entry in ingress} - {""})


def _external_ip(obj: Obj, now: float) -> str:
    kind = text(obj, "spec", "type", missing="ClusterIP")
    external = strings(obj, "spec", "externalIPs")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        return ",".join([*_balancer(obj), *external]) or "<pending>"
    return text(obj, "spec", "externalName") if kind == "ExternalName" else UNKNOWN


def _service_ports(obj: Obj, now: float) -> str:
    return ",".join(map(_service_port, items(obj, "spec", "ports"))) or NONE


def _service_port(port: Obj) -> str:
    exposed = number(port, "nodePort")
    public = f"{number(port, 'port')}:{exposed}" if exposed > 0 else f"{number(port, 'port')}"
    return f"{public}/{text(port, 'protocol', missing='TCP')}"


SERVICES: Final = printer(
    NAME,
    Column("Type", "string", "How the service is reached.", text_at("spec", "type", missing="ClusterIP")),
    Column("Cluster-IP", "string", "Address inside the cluster.", _cluster_ip),
    Column("External-IP", "string", "Addresses outside the cluster.", _external_ip),
    Column("Port(s)", "string", "Ports, with node ports where there are any.", _service_ports),
    AGE,
    wide("Selector", "Labels of the pods behind the service.", labels_at("spec", "selector")),
)


def _endpoints(obj: Obj, now: float) -> str:
    if not count(obj, "subsets"):
        return NONE
    return more(_addresses(obj), at_most=_SHOWN)


def _addresses(obj: Obj) -> Iterator[str]:
    for subset in items(obj, "subsets"):
        addresses = [text(entry, "ip") for entry in items(subset, "addresses")]
        ports = items(subset, "ports")
        if not ports:
            yield from addresses
        for port in ports:
            for address in addresses:
                host = f"[{address}]" if ":" in address else address
                yield f"{host}:{number(port, 'port')}"


ENDPOINTS: Final = printer(NAME, Column("Endpoints", "string", "Addresses and ports that are ready.", _endpoints), AGE)


def _slice_ports(obj: Obj, now: float) -> str:
    return more(map(_slice_port, items(obj, "ports")), at_most=_SHOWN) or UNSET


def _slice_port(port: Obj) -> str:
    value = dig(port, "port")
    name = dig(port, "name")
    return str(value) if type(value) is int else name if isinstance(name, str) else "*"


def _slice_addresses(obj: Obj, now: float) -> str:
    addresses = (address for endpoint in items(obj, "endpoints") for address in strings(endpoint, "addresses"))
    return more(addresses, at_most=_SHOWN) or UNSET


ENDPOINT_SLICES: Final = printer(
    NAME,
    Column("AddressType", "string", "Kind of the addresses.", text_at("addressType")),
    Column("Ports", "string", "Ports of every endpoint.", _slice_ports),
    Column("Endpoints", "string", "Addresses.", _slice_addresses),
    AGE,
)


def _hosts(obj: Obj, now: float) -> str:
    """The first hosts; the rules left out are counted, as the real column counts them, by rules and not by hosts."""
    rules = items(obj, "spec", "rules")
    hosts: list[str] = []
    full = False
    for rule in rules:
        full = full or len(hosts) == _SHOWN
        if not full and (host := text(rule, "host")):
            hosts.append(host)
    line = ",".join(hosts) or "*"
    return f"{line} + {len(rules) - _SHOWN} more..." if full else line


INGRESSES: Final = printer(
    NAME,
    Column("Class", "string", "Who implements the ingress.", text_at("spec", "ingressClassName", missing=NONE)),
    Column("Hosts", "string", "Hosts it routes.", _hosts),
    Column("Address", "string", "Where it is reached.", lambda obj, now: ",".join(_balancer(obj))),
    Column("Ports", "string", "Ports it opens.", lambda obj, now: "80, 443" if count(obj, "spec", "tls") else "80"),
    AGE,
)


def _parameters(obj: Obj, now: float) -> str:
    parameters = mapping(obj, "spec", "parameters")
    if not parameters:
        return NONE
    group = text(parameters, "apiGroup")
    kind = text(parameters, "kind")
    return f"{f'{kind}.{group}' if group else kind}/{text(parameters, 'name')}"


INGRESS_CLASSES: Final = printer(
    NAME,
    Column("Controller", "string", "Who implements ingresses of this class.", text_at("spec", "controller")),
    Column("Parameters", "string", "Where it is configured.", _parameters),
    AGE,
)

NETWORK_POLICIES: Final = printer(
    NAME,
    Column("Pod-Selector", "string", "Labels of the pods it guards.", selector_at("spec", "podSelector")),
    AGE,
)


def _parent(obj: Obj, now: float) -> str:
    parent = mapping(obj, "spec", "parentRef")
    if not parent:
        return NONE
    group, resource = text(parent, "group"), text(parent, "resource")
    pieces = (f"{resource}.{group}" if group else resource).lower(), text(parent, "namespace"), text(parent, "name")
    return "/".join(piece for piece in pieces if piece)


IP_ADDRESSES: Final = printer(NAME, Column("ParentRef", "string", "What the address belongs to.", _parent))

SERVICE_CIDRS: Final = printer(
    NAME,
    Column("CIDRs", "string", "Ranges for cluster IPs.", lambda obj, now: ",".join(strings(obj, "spec", "cidrs"))),
    AGE,
)

PRINTERS: Final = {
    ("", "endpoints"): ENDPOINTS,
    ("", "services"): SERVICES,
    ("discovery.k8s.io", "endpointslices"): ENDPOINT_SLICES,
    ("networking.k8s.io", "ingressclasses"): INGRESS_CLASSES,
    ("networking.k8s.io", "ingresses"): INGRESSES,
    ("networking.k8s.io", "ipaddresses"): IP_ADDRESSES,
    ("networking.k8s.io", "networkpolicies"): NETWORK_POLICIES,
    ("networking.k8s.io", "servicecidrs"): SERVICE_CIDRS,
}
