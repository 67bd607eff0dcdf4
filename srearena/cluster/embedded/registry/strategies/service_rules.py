"""What services may say, and what of it may change."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, annotations_of, dig
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.endpoint_addresses import endpoint_ip
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.service_allocation import (
    HEADLESS,
    needs_health_port,
    needs_node_ports,
)

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")
_AFFINITIES = ("ClientIP", "None")
_LONGEST_AFFINITY = 86400
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_FOR_LOAD_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"


def is_headless(spec: Obj) -> bool:
    return items(spec, "clusterIPs") == [HEADLESS]


def externally_reachable(spec: Obj) -> bool:
    return needs_node_ports(spec) or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def validate_service(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    kind, ports = spec.get("type") or "", items(spec, "ports")
    if not ports and not is_headless(spec) and kind != "ExternalName":
        problems.append(FieldError.required("spec.ports"))
    _by_type(problems, spec)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        _port(problems, f"spec.ports[{index}]", port, seen, named=len(ports) > 1)
    checks.labels(problems, "spec.selector", spec.get("selector"))
    _affinity(problems, spec)
    problems += address_errors(spec)
    for index, address in enumerate(items(spec, "externalIPs")):
        where = f"spec.externalIPs[{index}]"
        checks.ip(problems, where, address)
        if checks.is_ip(address):
            endpoint_ip(problems, where, address)
    checks.required_one_of(problems, "spec.type", kind, TYPES)
    _port_numbers(problems, spec)
    _load_balancer(problems, spec)
    _traffic(problems, spec)
    return problems


def _by_type(problems: Problems, spec: Obj) -> None:
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        text = f"may not be set to 'None' for {kind} services"
        problems.append(FieldError.invalid("spec.clusterIPs[0]", HEADLESS, text))
    elif kind == "ExternalName":
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(key):
                problems.append(FieldError.forbidden(f"spec.{key}", "may not be set for ExternalName services"))
        target = (spec.get("externalName") or "").removesuffix(".")
        if checks.required(problems, "spec.externalName", target):
            checks.subdomain(problems, "spec.externalName", target)


def _port(problems: Problems, path: str, port: Obj, seen: set[str], *, named: bool) -> None:
    name = port.get("name") or ""
    if name:
        checks.label(problems, f"{path}.name", name)
        checks.unique(problems, f"{path}.name", name, seen)
    elif named:
        problems.append(FieldError.required(f"{path}.name"))
    checks.port_number(problems, f"{path}.port", port.get("port") or 0)
    checks.required_one_of(problems, f"{path}.protocol", port.get("protocol"), checks.PROTOCOLS)
    checks.port_number_or_name(problems, f"{path}.targetPort", port.get("targetPort"))
    if port.get("appProtocol") is not None:
        checks.qualified_name(problems, f"{path}.appProtocol", port["appProtocol"])


def _affinity(problems: Problems, spec: Obj) -> None:
    affinity = spec.get("sessionAffinity")
    checks.required_one_of(problems, "spec.sessionAffinity", affinity, _AFFINITIES)
    if affinity == "ClientIP":
        seconds = dig(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds", default=0)
        if not 0 < seconds <= _LONGEST_AFFINITY:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            text = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            problems.append(FieldError.invalid(where, seconds, text))


def address_errors(spec: Obj) -> Problems:
    """Cluster IPs and address families, as far as they can be judged by themselves."""
    problems: Problems = []
    if spec.get("type") == "ExternalName":
        return problems
    one, many, families = spec.get("clusterIP") or "", items(spec, "clusterIPs"), items(spec, "ipFamilies")
    if one and not many:
        problems.append(FieldError.required("spec.clusterIPs"))
    elif one and many[0] != one:
        problems.append(FieldError.invalid("spec.clusterIPs", many, "first value must match `clusterIP`"))
    elif many and not one:
        text = "must be empty when `clusterIP` is not specified"
        problems.append(FieldError.invalid("spec.clusterIPs", many, text))
    seen: set[str] = set()
    for index, family in enumerate(families):
        checks.one_of(problems, f"spec.ipFamilies[{index}]", family, _FAMILIES)
        checks.unique(problems, f"spec.ipFamilies[{index}]", family, seen)
    if spec.get("ipFamilyPolicy") is not None:
        checks.one_of(problems, "spec.ipFamilyPolicy", spec["ipFamilyPolicy"], _FAMILY_POLICIES)
    if _check_addresses(problems, many) and not is_headless(spec):
        _check_families(problems, many, families)
    return problems


def _check_addresses(problems: Problems, many: list[str]) -> bool:
    """Whether every cluster IP is one."""
    before = len(problems)
    for index, address in enumerate(many):
        if index == 0 and address == HEADLESS:
            if len(many) > 1:
                text = "'None' must be the first and only value"
                problems.append(FieldError.invalid("spec.clusterIPs", many, text))
        else:
            checks.ip(problems, f"spec.clusterIPs[{index}]", address)
    fine = len(problems) == before
    if len(many) > 2:
        problems.append(FieldError.invalid("spec.clusterIPs", many, "may only hold up to 2 values"))
    return fine


def _check_families(problems: Problems, many: list[str], families: list[str]) -> None:
    if len(many) > 1 and len({checks.is_ipv6(address) for address in many}) == 1:
        text = "may specify no more than one IP for each IP family"
        problems.append(FieldError.invalid("spec.clusterIPs", many, text))
    for index, (address, family) in enumerate(zip(many, families, strict=False)):
        if family in _FAMILIES and (family == "IPv6") != checks.is_ipv6(address):
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            problems.append(FieldError.invalid(f"spec.clusterIPs[{index}]", address, text))


def _port_numbers(problems: Problems, spec: Obj) -> None:
    """No two ports alike, neither inside the cluster nor on the nodes."""
    ports = items(spec, "ports")
    if spec.get("type") == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                where = f"spec.ports[{index}].nodePort"
                problems.append(FieldError.forbidden(where, "may not be used when `type` is 'ClusterIP'"))
    outside: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        number = port.get("nodePort") or 0
        if number:
            if (port.get("protocol") or "", number) in outside:
                problems.append(FieldError.duplicate(f"spec.ports[{index}].nodePort", number))
            outside.add((port.get("protocol") or "", number))
    inside: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol") or "", port.get("port") or 0)
        if key in inside:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            problems.append(FieldError.duplicate(f"spec.ports[{index}]", shown))
        inside.add(key)


def _load_balancer(problems: Problems, spec: Obj) -> None:
    balances = spec.get("type") == "LoadBalancer"
    ranges = items(spec, "loadBalancerSourceRanges")
    if ranges:
        if not balances:
            problems.append(FieldError.forbidden("spec.LoadBalancerSourceRanges", _FOR_LOAD_BALANCERS))
        for index, value in enumerate(ranges):
            checks.cidr(problems, f"spec.LoadBalancerSourceRanges[{index}]", value.strip())
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balances:
        problems.append(FieldError.forbidden("spec.allocateLoadBalancerNodePorts", _FOR_LOAD_BALANCERS))
    if spec.get("loadBalancerClass") is not None:
        if balances:
            checks.qualified_name(problems, "spec.loadBalancerClass", spec["loadBalancerClass"])
        else:
            problems.append(FieldError.forbidden("spec.loadBalancerClass", _FOR_LOAD_BALANCERS))


def _traffic(problems: Problems, spec: Obj) -> None:
    external = spec.get("externalTrafficPolicy") or ""
    if externally_reachable(spec):
        checks.required_one_of(problems, "spec.externalTrafficPolicy", external, _TRAFFIC_POLICIES)
    elif external:
        text = "may only be set for externally-accessible services"
        problems.append(FieldError.invalid("spec.externalTrafficPolicy", external, text))
    health = spec.get("healthCheckNodePort") or 0
    if needs_health_port(spec):
        if checks.required(problems, "spec.healthCheckNodePort", health):
            checks.port_number(problems, "spec.healthCheckNodePort", health)
    elif health:
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        problems.append(FieldError.invalid("spec.healthCheckNodePort", health, text))
    internal = spec.get("internalTrafficPolicy")
    if internal is None:
        if spec.get("type") in WITH_ADDRESS:
            problems.append(FieldError.required("spec.internalTrafficPolicy"))
    else:
        checks.one_of(problems, "spec.internalTrafficPolicy", internal, _TRAFFIC_POLICIES)
    if spec.get("trafficDistribution") is not None:
        checks.one_of(problems, "spec.trafficDistribution", spec["trafficDistribution"], _DISTRIBUTIONS)


def validate_service_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        _address_change(problems, spec, before)
        _family_change(problems, spec, before)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        kind = spec.get("loadBalancerClass")
        if kind != before.get("loadBalancerClass"):
            problems.append(FieldError.invalid("spec.loadBalancerClass", kind, "may not change once set"))
    health = (spec.get("healthCheckNodePort") or 0, before.get("healthCheckNodePort") or 0)
    if needs_health_port(spec) and needs_health_port(before) and health[0] != health[1]:
        problems.append(FieldError.forbidden("spec.healthCheckNodePort", checks.IMMUTABLE))
    return problems


def _address_change(problems: Problems, spec: Obj, before: Obj) -> None:
    now, was = items(spec, "clusterIPs"), items(before, "clusterIPs")
    if is_headless(spec) and is_headless(before):
        return
    fixed = len(was) if len(now) == len(was) else 1
    for index, (left, right) in enumerate(zip(now[:fixed], was[:fixed], strict=False)):
        if left != right:
            problems.append(FieldError.invalid(f"spec.clusterIPs[{index}]", now, "may not change once set"))
    if was and not now:
        text = "primary clusterIP can not be unset"
        problems.append(FieldError.invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), text))


def _family_change(problems: Problems, spec: Obj, before: Obj) -> None:
    now, was = items(spec, "ipFamilies"), items(before, "ipFamilies")
    if is_headless(spec) or is_headless(before):
        return
    if now and was and now[0] != was[0]:
        problems.append(FieldError.invalid("spec.ipFamilies[0]", now, "may not change once set"))


def service_warnings(obj: Obj) -> list[str]:
    found: list[str] = []
    spec, annotations = obj.get("spec") or {}, annotations_of(obj)
    if _TOPOLOGY_HINTS in annotations:
        found.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    kind = spec.get("type")
    if kind == "ClusterIP" and spec.get("clusterIP") == HEADLESS:
        if spec.get("loadBalancerIP"):
            found.append("spec.loadBalancerIP is ignored for headless services")
        if spec.get("externalIPs"):
            found.append("spec.externalIPs is ignored for headless services")
        if spec.get("sessionAffinity"):
            found.append("spec.SessionAffinity is ignored for headless services")
    if kind == "ExternalName" and spec.get("externalIPs"):
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return found
