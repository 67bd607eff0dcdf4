"""The records of cluster.local: what the kubernetes plugin answers from Services, EndpointSlices and pods.

Services have names whether or not anything is behind them; headless ones have exactly the names and addresses of
their ready endpoints, and without any they do not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from srearena.cluster.embedded.machine.networking.reachability import DnsRecord
from srearena.cluster.embedded.network.addresses import is_address, is_ipv6
from srearena.cluster.embedded.network.dns.messages import address_kind, address_of_reverse, qualified
from srearena.cluster.embedded.network.services import BY_SERVICE, SERVICES, SLICES
from srearena.cluster.embedded.objects import Obj, dig, labels_of, name_of, namespace_of
from srearena.cluster.embedded.store import Store

BY_ADDRESS = "network.address"
PODS = "pods"
NAMESPACES = "namespaces"
DNS_SCHEMA = "1.1.0"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One ready endpoint of a Service, with one of its ports."""

    address: str
    label: str
    """Its label under the Service's name."""
    port_name: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class ParsedName:
    """The parts of a name under cluster.local."""

    zone: str
    kind: str
    """`svc`, `pod`, or nothing for the zone itself."""
    namespace: str = ""
    name: str = ""
    endpoint: str = ""
    port: str = ""
    protocol: str = ""


def parse_name(name: str, zone: str) -> ParsedName | None:
    """Parse a name; None where no Service or pod can have it."""
    bare = name[: -len(zone) - 1] if name != zone else ""
    if not bare:
        return ParsedName(zone, "")
    labels = bare.split(".")
    kind = labels.pop()
    if kind not in ("svc", "pod"):
        return None
    if not labels:
        return ParsedName(zone, kind)
    namespace = labels.pop()
    if not labels:
        return ParsedName(zone, kind, namespace)
    service = labels.pop()
    if not labels:
        return ParsedName(zone, kind, namespace, service)
    if kind == "pod":
        return None
    if len(labels) == 1:
        return ParsedName(zone, kind, namespace, service, endpoint=labels[0])
    if len(labels) == 2 and labels[0].startswith("_") and labels[1].startswith("_"):
        return ParsedName(zone, kind, namespace, service, port=labels[0][1:], protocol=labels[1][1:])
    return None


class ClusterRecords:
    """Records from the store. `lookup` returns None for a name that does not exist."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.add_index(SERVICES, BY_ADDRESS, _service_addresses)
        store.add_index(SLICES, BY_ADDRESS, _slice_addresses)
        store.add_index(PODS, BY_ADDRESS, _pod_addresses)

    def lookup(
        self, name: str, zone: str, kind: str, *, pods: str = "disabled", ttl: int = 5, pod_names: bool = False
    ) -> tuple[DnsRecord, ...] | None:
        if kind == "TXT" and name == f"dns-version.{zone}":
            return (DnsRecord(name, "TXT", f'"{DNS_SCHEMA}"', ttl),)
        parsed = parse_name(name, zone)
        if parsed is None:
            return None
        if not parsed.namespace:
            return ()
        if self._store.get(NAMESPACES, "", parsed.namespace) is None:
            return None
        if not parsed.name:
            return ()
        if parsed.kind == "pod":
            return self._pod(name, parsed, kind, pods, ttl)
        return self._service(name, parsed, kind, ttl, pod_names)

    def reverse(self, name: str, zone: str, ttl: int = 5, pod_names: bool = False) -> tuple[DnsRecord, ...] | None:
        """The PTR records of a reverse name."""
        address = address_of_reverse(name)
        if address is None:
            return None
        for service in self._store.indexed(SERVICES, BY_ADDRESS, address):
            target = f"{name_of(service)}.{namespace_of(service)}.svc.{zone}"
            return (DnsRecord(name, "PTR", target, ttl),)
        found: list[DnsRecord] = []
        for part in self._store.indexed(SLICES, BY_ADDRESS, address):
            owner = labels_of(part).get("kubernetes.io/service-name")
            if not owner:
                continue
            for endpoint in part.get("endpoints") or ():
                if address in (endpoint.get("addresses") or ()):
                    label = _label(endpoint, address, pod_names)
                    target = f"{label}.{owner}.{namespace_of(part)}.svc.{zone}"
                    found.append(DnsRecord(name, "PTR", target, ttl))
        return tuple(dict.fromkeys(found)) or None

    # Services

    def _service(
        self, name: str, parsed: ParsedName, kind: str, ttl: int, pod_names: bool
    ) -> tuple[DnsRecord, ...] | None:
        service = self._store.get(SERVICES, parsed.namespace, parsed.name)
        if service is None:
            return None
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            if parsed.endpoint:
                return None
            return (DnsRecord(name, "CNAME", qualified(str(spec.get("externalName") or "")), ttl),)
        base = f"{parsed.name}.{parsed.namespace}.svc.{parsed.zone}"
        if spec.get("clusterIP") == "None" or parsed.endpoint:
            endpoints = [
                endpoint
                for endpoint in self.endpoints(parsed.namespace, parsed.name, pod_names)
                if (not parsed.endpoint or endpoint.label == parsed.endpoint)
                and _is_port(parsed, endpoint.port_name, endpoint.protocol)
            ]
            if not endpoints:
                return None
            if kind == "SRV":
                return _service_records(name, [(e.port, f"{e.label}.{base}") for e in endpoints if e.port], ttl)
            return _address_records(name, kind, (e.address for e in endpoints), ttl)
        ports = [
            int(port["port"])
            for port in spec.get("ports") or ()
            if _is_port(parsed, port.get("name") or "", port.get("protocol") or "TCP")
        ]
        if not ports:
            return None
        if kind == "SRV":
            return _service_records(name, [(port, base) for port in ports], ttl)
        return _address_records(name, kind, spec.get("clusterIPs") or [spec.get("clusterIP") or ""], ttl)

    def endpoints(self, namespace: str, name: str, pod_names: bool = False) -> Iterable[Endpoint]:
        """The ready endpoints of a Service."""
        for part in self._store.indexed(SLICES, BY_SERVICE, f"{namespace}/{name}"):
            ports: list[Obj] = part.get("ports") or [{}]
            for endpoint in part.get("endpoints") or ():
                if dig(endpoint, "conditions", "ready", default=True) is False:
                    continue
                for address in endpoint.get("addresses") or ():
                    label = _label(endpoint, address, pod_names)
                    for port in ports:
                        yield Endpoint(
                            address,
                            label,
                            port.get("name") or "",
                            port.get("protocol") or "TCP",
                            int(port.get("port") or 0),
                        )

    # Pods

    def _pod(self, name: str, parsed: ParsedName, kind: str, mode: str, ttl: int) -> tuple[DnsRecord, ...] | None:
        if mode == "disabled":
            return None
        dashed = parsed.name
        address = (
            dashed.replace("-", ".") if dashed.count("-") == 3 and "--" not in dashed else dashed.replace("-", ":")
        )
        if not is_address(address):
            return None
        if mode == "verified":
            pods = self._store.indexed(PODS, BY_ADDRESS, address)
            if not any(namespace_of(pod) == parsed.namespace for pod in pods):
                return None
        return _address_records(name, kind, (address,), ttl)


def _is_port(parsed: ParsedName, name: str, protocol: str) -> bool:
    if not parsed.port:
        return True
    return name.lower() == parsed.port and protocol.lower() == parsed.protocol


def _address_records(name: str, kind: str, addresses: Iterable[str], ttl: int) -> tuple[DnsRecord, ...]:
    found = dict.fromkeys(address for address in addresses if is_address(address) and address_kind(address) == kind)
    return tuple(DnsRecord(name, kind, address, ttl) for address in found)


def _service_records(name: str, targets: list[tuple[int, str]], ttl: int) -> tuple[DnsRecord, ...]:
    weight = max(1, 100 // len(targets)) if targets else 0
    found = dict.fromkeys(targets)
    return tuple(DnsRecord(name, "SRV", f"0 {weight} {port} {target}", ttl) for port, target in found)


def _label(endpoint: Obj, address: str, pod_names: bool) -> str:
    hostname = endpoint.get("hostname")
    if hostname:
        return str(hostname)
    pod = dig(endpoint, "targetRef", "name", default="")
    if pod_names and pod and len(pod) < 64 and "." not in pod:
        return str(pod)
    return address.replace(":" if is_ipv6(address) else ".", "-")


def _service_addresses(service: Obj) -> Iterable[str]:
    spec = service.get("spec") or {}
    return [a for a in spec.get("clusterIPs") or [spec.get("clusterIP")] if a and a != "None"]


def _slice_addresses(part: Obj) -> Iterable[str]:
    return [address for endpoint in part.get("endpoints") or () for address in endpoint.get("addresses") or ()]


def _pod_addresses(pod: Obj) -> Iterable[str]:
    address = dig(pod, "status", "podIP")
    return (address,) if address else ()
