"""Services: defaults, and the addresses and ports they hold."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError, Invalid
from srearena.cluster.embedded.registry.strategies.parts import fill_empty, items, part
from srearena.cluster.embedded.registry.strategies.service_allocation import (
    HEADLESS,
    allocate_address,
    allocate_ports,
    needs_health_port,
    needs_node_ports,
)
from srearena.cluster.embedded.registry.strategies.service_rules import (
    WITH_ADDRESS,
    address_errors,
    externally_reachable,
    service_warnings,
    validate_service,
    validate_service_update,
)
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

CLIENT_IP_SECONDS = 10800


def _default(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill_empty(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    _default_affinity(spec)
    for port in items(spec, "ports"):
        fill_empty(port, {"protocol": "TCP"})
        if not port.get("targetPort") and port.get("port") is not None:
            port["targetPort"] = port["port"]
    if externally_reachable(spec):
        fill_empty(spec, {"externalTrafficPolicy": "Cluster"})
    if spec.get("internalTrafficPolicy") is None and spec["type"] in WITH_ADDRESS:
        spec["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    part(part(obj, "status"), "loadBalancer")


def _default_affinity(spec: Obj) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": CLIENT_IP_SECONDS}}


def _prepare_create(obj: Obj, context: WriteContext) -> None:
    """Addresses and ports come before validation, as they do in a real server: a clash is what a client hears of."""
    obj["status"] = {"loadBalancer": {}}
    spec = obj["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _allocate(obj, None, context)


def _prepare_update(new: Obj, old: Obj, context: WriteContext) -> None:
    _keep_allocated(new["spec"], old["spec"])
    _follow_cluster_ip(new["spec"], old["spec"])
    _allocate(new, old, context)
    _drop_what_the_type_lost(new, old)


def _allocate(service: Obj, old: Obj | None, context: WriteContext) -> None:
    spec, before = service["spec"], (old or {}).get("spec") or {}
    if spec["type"] != "ExternalName":
        if spec.get("ipFamilyPolicy") is None:
            spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or _family_policy(spec)
        problems = address_errors(spec)
        if problems:
            raise Invalid("Service", name_of(service), problems)
        _settle_families(service)
        first = old is None or before.get("type") == "ExternalName"
        if first and spec.get("clusterIP") != HEADLESS:
            allocate_address(service, context)
    allocate_ports(service, old, context)


def _family_policy(spec: Obj) -> str:
    """A service without selector and address can have endpoints of any family."""
    return "RequireDualStack" if _is_bare(spec) else "SingleStack"


def _is_bare(spec: Obj) -> bool:
    return spec.get("clusterIP") == HEADLESS and not spec.get("selector")


def _settle_families(service: Obj) -> None:
    """This cluster has IPv4 only."""
    spec = service["spec"]
    families = items(spec, "ipFamilies")
    problems: list[FieldError] = []
    policy = spec["ipFamilyPolicy"]
    if policy == "SingleStack":
        for many, what in ((items(spec, "clusterIPs"), "cluster IPs"), (families, "IP families")):
            if len(many) == 2:
                text = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                problems.append(FieldError.invalid("spec.ipFamilyPolicy", policy, text))
    for index, address in enumerate(items(spec, "clusterIPs")):
        if address == HEADLESS:
            break
        if index >= len(families):
            if ":" in address:
                text = "IPv6 is not configured on this cluster"
                problems.append(FieldError.invalid(f"spec.clusterIPs[{index}]", spec["clusterIPs"], text))
            else:
                families = [*families, "IPv4"]
    if not problems and not _is_bare(spec):
        if policy == "RequireDualStack":
            text = "this cluster is not configured for dual-stack services"
            problems.append(FieldError.invalid("spec.ipFamilyPolicy", policy, text))
        problems += [
            FieldError.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
            for index, family in enumerate(families)
            if family != "IPv4"
        ]
    if problems:
        raise Invalid("Service", name_of(service), problems)
    families = families or ["IPv4"]
    if _is_bare(spec) and policy != "SingleStack" and len(families) == 1:
        families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
    spec["ipFamilies"] = families


def _follow_cluster_ip(spec: Obj, before: Obj) -> None:
    """Clients that know only the singular field mean the plural one as well."""
    one, was_one = spec.get("clusterIP") or "", before.get("clusterIP") or ""
    many, were_many = items(spec, "clusterIPs"), items(before, "clusterIPs")
    if were_many and not many and one == was_one:
        spec["clusterIPs"] = were_many
    if one != was_one and many == were_many:
        spec["clusterIPs"] = [one] if one or not was_one else []


def _keep_allocated(spec: Obj, before: Obj) -> None:
    """What a client left out but the service holds is put back."""
    if spec["type"] != "ExternalName" and before.get("type") != "ExternalName":
        for key in ("clusterIP", "clusterIPs"):
            if not spec.get(key) and before.get(key):
                spec[key] = before[key]
    if needs_node_ports(spec) and needs_node_ports(before):
        kept = {port.get("nodePort") for port in items(spec, "ports")}
        old_ports = {port.get("name", ""): port.get("nodePort") for port in items(before, "ports")}
        for port in items(spec, "ports"):
            known = old_ports.get(port.get("name", ""))
            if not port.get("nodePort") and known and known not in kept:
                port["nodePort"] = known
    if needs_health_port(spec) and needs_health_port(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort")


def _drop_what_the_type_lost(new: Obj, old: Obj) -> None:
    """Fields that only the old type had go with it, unless the client changed them by hand."""
    spec, before = new["spec"], old["spec"]

    def drop(*keys: str) -> None:
        if all(spec.get(key) == before.get(key) for key in keys):
            for key in keys:
                spec.pop(key, None)

    if spec["type"] == "ExternalName" and before.get("type") != "ExternalName":
        drop("clusterIP", "clusterIPs")
        drop("ipFamilies")
        drop("ipFamilyPolicy")
    if needs_node_ports(before) and not needs_node_ports(spec):
        old_ports = {port.get("nodePort") for port in items(before, "ports")}
        if all(not port.get("nodePort") or port["nodePort"] in old_ports for port in items(spec, "ports")):
            for port in items(spec, "ports"):
                port.pop("nodePort", None)
    if needs_health_port(before) and not needs_health_port(spec):
        drop("healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec["type"] != "LoadBalancer":
        drop("allocateLoadBalancerNodePorts")
        drop("loadBalancerClass")
    if externally_reachable(before) and not externally_reachable(spec):
        drop("externalTrafficPolicy")
    if spec["type"] != "LoadBalancer":
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    status = new.get("status") or {}
    points = items(status.get("loadBalancer"), "ingress")
    if new["spec"].get("type") == "LoadBalancer" and any(p.get("ip") and not p.get("ipMode") for p in points):
        completed = [{**p, "ipMode": "VIP"} if p.get("ip") and not p.get("ipMode") else p for p in points]
        new["status"] = {**status, "loadBalancer": {**status["loadBalancer"], "ingress": completed}}


STRATEGIES = {
    "services": Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status=_prepare_status,
        validate=validate_service,
        validate_update=validate_service_update,
        warnings=service_warnings,
        name_errors=names.label_1035_errors,
    ),
}
