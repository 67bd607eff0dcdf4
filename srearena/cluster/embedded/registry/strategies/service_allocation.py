"""Addresses and ports that services are given: cluster IPs, node ports, health-check ports.

There is no ledger: what is taken is what the stored services hold now, so nothing can leak and a deleted service's
address is free at once. Static requests are honoured anywhere in the range, dynamic ones are drawn from the range's
upper band first, so that the two rarely meet.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network

from srearena.cluster.embedded.objects import Obj, name_of, uid_of
from srearena.cluster.embedded.registry.errors import FieldError, InternalError, Invalid
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategy import WriteContext

SERVICE_CIDR = IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
HEADLESS = "None"
_ADDRESSES = range(1, SERVICE_CIDR.num_addresses - 1)
_STATIC_ADDRESSES = 256
_STATIC_PORTS = 86
_TRIES = 32


def needs_node_ports(spec: Obj) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def needs_health_port(spec: Obj) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def allocate_address(service: Obj, context: WriteContext) -> None:
    """Settle the cluster IP of a service that has one: the one it asks for, or a free one."""
    spec = service["spec"]
    in_use = {_offset(address) for other in _others(service, context) for address in items(other, "clusterIPs")}
    requested = items(spec, "clusterIPs")
    if requested and requested[0]:
        problem = ""
        offset = _offset(requested[0])
        if offset < 0:
            problem = "the provided network does not match the current range"
        elif offset not in _ADDRESSES:
            problem = (
                f"the provided IP ({requested[0]}) is not in the valid range. The range of valid IPs is {SERVICE_CIDR}"
            )
        elif offset in in_use:
            problem = "provided IP is already allocated"
        if problem:
            text = f"failed to allocate IP {requested[0]}: {problem}"
            raise _refusal(service, FieldError.invalid("spec.clusterIPs", requested, text))
    else:
        drawn = _draw(context, "cluster-ips", _ADDRESSES, _STATIC_ADDRESSES, in_use)
        if drawn is None:
            raise InternalError("failed to allocate a serviceIP: range is full")
        spec["clusterIPs"] = [str(SERVICE_CIDR[drawn])]
    spec["clusterIP"] = spec["clusterIPs"][0]


def allocate_ports(service: Obj, old: Obj | None, context: WriteContext) -> None:
    """Settle node ports and the health-check port; those that the service already holds are kept."""
    spec, before = service["spec"], (old or {}).get("spec") or {}
    in_use = _taken_ports(service, context)
    if needs_node_ports(spec):
        _allocate_node_ports(service, _own_ports(before), in_use, context)
    if needs_health_port(spec) and not (old is not None and needs_health_port(before)):
        _allocate_health_port(spec, in_use, context)


def _allocate_node_ports(service: Obj, own_ports: set[int], in_use: set[int], context: WriteContext) -> None:
    spec = service["spec"]
    automatic = spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
    shared: dict[int, int] = {}
    for index, port in enumerate(items(spec, "ports")):
        wanted = port.get("nodePort") or 0
        if not wanted and not automatic:
            continue
        # The same port under two protocols is one node port.
        number = port.get("port") or 0
        wanted = wanted or shared.get(number) or _requested(number, spec["ports"])
        if not wanted:
            drawn = _draw(context, "node-ports", NODE_PORTS, _STATIC_PORTS, in_use)
            if drawn is None:
                raise InternalError("failed to allocate a nodePort: range is full")
            wanted = drawn
        elif wanted not in own_ports and wanted != shared.get(number):
            problem = _port_problem(wanted, in_use)
            if problem:
                raise _refusal(service, FieldError.invalid(f"spec.ports[{index}].nodePort", wanted, problem))
        in_use.add(wanted)
        own_ports.add(wanted)
        shared.setdefault(number, wanted)
        port["nodePort"] = wanted


def _allocate_health_port(spec: Obj, in_use: set[int], context: WriteContext) -> None:
    wanted = spec.get("healthCheckNodePort") or 0
    if wanted:
        problem = _port_problem(wanted, in_use)
        if problem:
            raise InternalError(f"failed to allocate requested HealthCheck NodePort {wanted}: {problem}")
    else:
        wanted = _draw(context, "node-ports", NODE_PORTS, _STATIC_PORTS, in_use) or 0
        if not wanted:
            raise InternalError("failed to allocate a HealthCheck NodePort 0: range is full")
    spec["healthCheckNodePort"] = wanted


def _requested(port: int, ports: list[Obj]) -> int:
    return next((other["nodePort"] for other in ports if (other.get("port") or 0) == port and other.get("nodePort")), 0)


def _port_problem(port: int, in_use: set[int]) -> str:
    if port not in NODE_PORTS:
        return (
            "provided port is not in the valid range. "
            f"The range of valid ports is {NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
        )
    return "provided port is already allocated" if port in in_use else ""


def _own_ports(spec: Obj) -> set[int]:
    own_ports = {port["nodePort"] for port in items(spec, "ports") if port.get("nodePort")}
    if spec.get("healthCheckNodePort"):
        own_ports.add(spec["healthCheckNodePort"])
    return own_ports


def _taken_ports(service: Obj, context: WriteContext) -> set[int]:
    return {port for other in _others(service, context) for port in _own_ports(other)}


def _others(service: Obj, context: WriteContext) -> list[Obj]:
    uid = uid_of(service)
    return [other["spec"] for other in context.store.objects("services") if uid_of(other) != uid]


def _offset(address: str) -> int:
    """Where an address is in the range; -1 for what is no address of it."""
    try:
        offset = int(IPv4Address(address)) - int(SERVICE_CIDR.network_address)
    except AddressValueError:
        return -1
    return offset if 0 <= offset < SERVICE_CIDR.num_addresses else -1


def _draw(context: WriteContext, purpose: str, numbers: range, static: int, in_use: set[int]) -> int | None:
    """A free number, from above the static band while there are any; None when all are taken."""
    chance = context.randomness.stream(f"services/{purpose}")
    dynamic = range(numbers.start + static, numbers.stop)
    for _ in range(_TRIES):
        number = chance.choice(dynamic)
        if number not in in_use:
            return number
    for band in (dynamic, range(numbers.start, numbers.start + static)):
        free = [number for number in band if number not in in_use]
        if free:
            return chance.choice(free)
    return None


def _refusal(service: Obj, problem: FieldError) -> Invalid:
    return Invalid("Service", name_of(service), [problem])
