"""Names and attributes of spans, as instrumentation libraries give them by the semantic conventions."""

from __future__ import annotations

from srearena.cluster.embedded.traffic.graph import Call, Link, Node
from srearena.cluster.embedded.traffic.grpc_status import UNAVAILABLE, UNKNOWN, parse_status, returned_status
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.spans import Attributes, Value

_SYSTEMS = {
    "mongo": "mongodb",
    "redis": "redis",
    "memcached": "memcached",
    "postgres": "postgresql",
    "mysql": "mysql",
}
_BROKERS = {"kafka": "kafka", "amqp": "rabbitmq"}


def node_span(node: Node) -> str:
    """Return the name of a server's span; empty where none is recorded."""
    operation = node.operation
    if operation is None or operation.health:
        return ""
    if operation.span is not None:
        return operation.span.replace("{route}", node.route)
    return node.route or operation.route or node.name


def node_attributes(node: Node, error: str) -> Attributes:
    operation = node.operation
    if operation is None:
        return ()
    found: list[tuple[str, Value]] = []
    route = node.route or operation.route
    if route:
        method, _, path = route.partition(" ")
        found += [
            ("http.request.method", method),
            ("http.route", path),
            ("url.path", path),
            ("http.response.status_code", operation.status if error else 200),
        ]
    elif isinstance(node.server, Instance) and any(one.protocol == "grpc" for one in node.server.program.listen):
        code = returned_status(node.server.runtime, error).code if error else 0
        found += [*_rpc_attributes(node_span(node)), ("rpc.grpc.status_code", code)]
    found += operation.attributes.items()
    if error:
        found.append(("error.type", str(operation.status) if route else "error"))
    return tuple(found)


def call_span(call: Call) -> str:
    """Return the name of a client's span; empty where none is recorded."""
    step = call.step
    if step.span is not None:
        return step.span
    protocol = call.target.dependency.protocol
    if protocol == "http":
        return call.operation.partition(" ")[0]
    if step.publish is not None:
        return f"publish {call.operation.removeprefix('produce ')}"
    return call.operation


def _rpc_attributes(name: str) -> list[tuple[str, Value]]:
    service, _, method = name.strip("/").rpartition("/")
    return [("rpc.system", "grpc"), ("rpc.service", service), ("rpc.method", method)]


def call_attributes(call: Call, link: Link, error: str) -> Attributes:
    protocol = call.target.dependency.protocol
    host, _, port = call.target.instance.settings.fill(call.target.dependency.address).rpartition(":")
    found: list[tuple[str, Value]] = [
        ("server.address", host or link.address),
        ("server.port", int(port) if port.isdigit() else link.port),
    ]
    if link.address:
        found.append(("network.peer.address", link.address))
    if protocol == "http":
        method, _, path = call.operation.partition(" ")
        found += [("http.request.method", method), ("url.full", f"http://{host}:{port}{path}")]
        if link.callee is not None:
            http_status = link.callee.operation.status if link.callee.operation is not None else 500
            found.append(("http.response.status_code", http_status if error else 200))
    elif protocol == "grpc":
        found += _rpc_attributes(call.step.span or call.operation)
        status = parse_status(error)
        code = status.code if status is not None else UNAVAILABLE if link.callee is None else UNKNOWN
        found.append(("rpc.grpc.status_code", code if error else 0))
    elif protocol in _SYSTEMS:
        found += [("db.system", _SYSTEMS[protocol]), ("db.operation.name", call.operation.split(None, 1)[0])]
        if call.step.target:
            found.append(("db.collection.name", call.step.target))
    elif protocol in _BROKERS:
        found += [("messaging.system", _BROKERS[protocol]), ("messaging.destination.name", call.operation.split()[-1])]
    if call.target.dependency.peer:
        found.append(("peer.service", call.target.dependency.peer))
    if error:
        found.append(("error.type", "error"))
    return tuple(found)
