"""Endpoints and EndpointSlices."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.endpoint_addresses import endpoint_ip
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_MOST_ENDPOINTS = 1000
_MOST_ADDRESSES = 100


def _default_endpoints(obj: Obj) -> None:
    for subset in items(obj, "subsets"):
        for port in items(subset, "ports"):
            fill_empty(port, {"protocol": "TCP"})


def _default_slice(obj: Obj) -> None:
    for port in items(obj, "ports"):
        fill(port, {"name": "", "protocol": "TCP"})
    obj.setdefault("endpoints", None)
    obj.setdefault("ports", None)
    for endpoint in items(obj, "endpoints"):
        if endpoint.get("conditions") is None:
            endpoint["conditions"] = {}


def _prepare_slice_update(new: Obj, old: Obj, context: WriteContext) -> None:
    # A slice has no spec: its labels decide whose it is, so they count as a change as well.
    if (meta(new).get("labels") or {}) != (meta(old).get("labels") or {}):
        new["metadata"]["generation"] = meta(old).get("generation", 0) + 1


def _validate_endpoints(obj: Obj) -> Problems:
    problems: Problems = []
    for index, subset in enumerate(items(obj, "subsets")):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            problems.append(FieldError.required(path, "must specify `addresses` or `notReadyAddresses`"))
        for key in ("addresses", "notReadyAddresses"):
            checks.each(problems, f"{path}.{key}", subset.get(key), _address)
        ports = items(subset, "ports")
        for number, port in enumerate(ports):
            _port(problems, f"{path}.ports[{number}]", port, named=len(ports) > 1)
    return problems


def _address(problems: Problems, path: str, address: Obj) -> None:
    ip = address.get("ip") or ""
    checks.ip(problems, f"{path}.ip", ip)
    if address.get("hostname"):
        checks.label(problems, f"{path}.hostname", address["hostname"])
    if address.get("nodeName") is not None:
        checks.subdomain(problems, f"{path}.nodeName", address["nodeName"])
    endpoint_ip(problems, f"{path}.ip", ip)


def _port(problems: Problems, path: str, port: Obj, *, named: bool) -> None:
    name = port.get("name") or ""
    if name:
        checks.label(problems, f"{path}.name", name)
    elif named:
        problems.append(FieldError.required(f"{path}.name"))
    checks.port_number(problems, f"{path}.port", port.get("port") or 0)
    checks.required_one_of(problems, f"{path}.protocol", port.get("protocol"), checks.PROTOCOLS)
    if port.get("appProtocol") is not None:
        checks.qualified_name(problems, f"{path}.appProtocol", port["appProtocol"])


def _validate_slice(obj: Obj) -> Problems:
    problems: Problems = []
    family, endpoints = obj.get("addressType") or "", items(obj, "endpoints")
    checks.required_one_of(problems, "addressType", family, ("FQDN", "IPv4", "IPv6"))
    seen: set[str] = set()
    for index, port in enumerate(items(obj, "ports")):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            checks.label(problems, f"{path}.name", name)
        checks.unique(problems, f"{path}.name", name, seen)
        checks.required_one_of(problems, f"{path}.protocol", port.get("protocol"), checks.PROTOCOLS)
        if port.get("appProtocol") is not None:
            checks.qualified_name(problems, f"{path}.appProtocol", port["appProtocol"])
    if len(endpoints) > _MOST_ENDPOINTS:
        problems.append(FieldError.too_many("endpoints", len(endpoints), _MOST_ENDPOINTS))
    for index, endpoint in enumerate(endpoints):
        _endpoint(problems, f"endpoints[{index}]", endpoint, family)
    return problems


def _endpoint(problems: Problems, path: str, endpoint: Obj, family: str) -> None:
    addresses = items(endpoint, "addresses")
    if not addresses:
        problems.append(FieldError.required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        problems.append(FieldError.too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES))
    for index, address in enumerate(addresses):
        where = f"{path}.addresses[{index}]"
        if family == "FQDN":
            _domain(problems, where, address)
        elif family in ("IPv4", "IPv6"):
            checks.ip(problems, where, address)
            if checks.is_ip(address):
                if checks.is_ipv6(address) != (family == "IPv6"):
                    problems.append(FieldError.invalid(f"{path}.addresses", address, f"must be an {family} address"))
                endpoint_ip(problems, where, address)
    if endpoint.get("nodeName") is not None:
        checks.subdomain(problems, f"{path}.nodeName", endpoint["nodeName"])
    if endpoint.get("hostname") is not None:
        checks.label(problems, f"{path}.hostname", endpoint["hostname"])


def _domain(problems: Problems, path: str, name: str) -> None:
    if not checks.required(problems, path, name):
        return
    bare = name.removesuffix(".")
    wrong = names.subdomain_errors(bare)
    if wrong:
        problems.append(FieldError.invalid(path, bare, ",".join(wrong)))
    elif "." not in bare:
        text = "should be a domain with at least two segments separated by dots"
        problems.append(FieldError.invalid(path, bare, text))


def _validate_slice_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    checks.immutable(problems, "addressType", new.get("addressType"), old.get("addressType"))
    return problems


def _slice_warnings(obj: Obj) -> list[str]:
    return ["spec.addressType: FQDN endpoints are deprecated"] if obj.get("addressType") == "FQDN" else []


STRATEGIES = {
    "endpoints": Strategy(default=_default_endpoints, validate=_validate_endpoints),
    "endpointslices.discovery.k8s.io": Strategy(
        default=_default_slice,
        prepare_update=_prepare_slice_update,
        validate=_validate_slice,
        validate_update=_validate_slice_update,
        warnings=_slice_warnings,
    ),
}
