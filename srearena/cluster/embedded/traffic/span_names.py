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


_GO = "go.opentelemetry.io/contrib/instrumentation/"
_NODE, _PYTHON, _JAVA = "@opentelemetry/instrumentation-", "opentelemetry.instrumentation.", "io.opentelemetry."
_SCOPES = {
    "go": {
        "grpc": f"{_GO}google.golang.org/grpc/otelgrpc",
        "http": f"{_GO}net/http/otelhttp",
        "mongo": f"{_GO}go.mongodb.org/mongo-driver/mongo/otelmongo",
        "postgres": "github.com/XSAM/otelsql",
        "mysql": "github.com/XSAM/otelsql",
        "redis": "github.com/redis/go-redis/extra/redisotel",
    },
    "node": {name: _NODE + name for name in ("grpc", "http", "redis", "mysql")} | {"mongo": f"{_NODE}mongodb"},
    "python": {
        "grpc": f"{_PYTHON}grpc",
        "http": f"{_PYTHON}requests",
        "postgres": f"{_PYTHON}psycopg2",
        "mysql": f"{_PYTHON}pymysql",
    },
    "java": {
        "grpc": f"{_JAVA}grpc-1.6",
        "http": f"{_JAVA}http-url-connection",
        "kafka": f"{_JAVA}kafka-clients-0.11",
        "mongo": f"{_JAVA}mongo-3.1",
        "mysql": f"{_JAVA}jdbc",
    },
    "dotnet": {
        "grpc": "OpenTelemetry.Instrumentation.GrpcNetClient",
        "http": "System.Net.Http",
        "redis": "OpenTelemetry.Instrumentation.StackExchangeRedis",
        "postgres": "Npgsql",
    },
    "rust": {"http": "opentelemetry-instrumentation-reqwest"},
    "php": {"http": "io.opentelemetry.contrib.php.http-async"},
    "ruby": {"http": "OpenTelemetry::Instrumentation::NetHTTP"},
}
"""By runtime and protocol: the libraries that record clients' spans."""
_SERVER_SCOPES = {
    "python": {"http": f"{_PYTHON}flask"},
    "java": {"http": f"{_JAVA}tomcat-10.0"},
    "dotnet": {"grpc": "Microsoft.AspNetCore", "http": "Microsoft.AspNetCore"},
    "rust": {"http": "opentelemetry-instrumentation-actix-web"},
    "php": {"http": "io.opentelemetry.contrib.php.slim"},
    "ruby": {"http": "OpenTelemetry::Instrumentation::Sinatra"},
}
"""Those that record servers' spans, where they are others."""


def node_scope(node: Node) -> str:
    """Return the library that records a server's span; empty where the program records it itself."""
    operation, server = node.operation, node.server
    if operation is None or operation.span_kind != "server" or not isinstance(server, Instance):
        return ""
    grpc = not (node.route or operation.route) and any(one.protocol == "grpc" for one in server.program.listen)
    protocol = "grpc" if grpc else "http"
    scopes = _SERVER_SCOPES.get(server.runtime, _SCOPES.get(server.runtime, {}))
    return scopes.get(protocol) or _SCOPES.get(server.runtime, {}).get(protocol, "")


def call_scope(call: Call) -> str:
    """Return the library that records a client's span."""
    return _SCOPES.get(call.target.instance.runtime, {}).get(call.target.dependency.protocol, "")


def node_span(node: Node) -> str:
    """Return the name of a server's span; empty where none is recorded."""
    operation = node.operation
    if operation is None or operation.health:
        return ""
    if operation.span is not None:
        return operation.span.replace("{route}", node.route)
    return node.route or operation.route or node.name


def node_attributes(node: Node, error: str, passed_on: int | None = None) -> Attributes:
    """Return the attributes of a server's span; a proxy passes on the status of a response that it received."""
    operation = node.operation
    if operation is None:
        return ()
    found: list[tuple[str, Value]] = []
    route = node.route or operation.route
    status = operation.status if passed_on is None else passed_on
    if route:
        method, _, path = route.partition(" ")
        found += [
            ("http.request.method", method),
            ("http.route", path),
            ("url.path", path),
            ("http.response.status_code", status if error else 200),
        ]
    elif isinstance(node.server, Instance) and any(one.protocol == "grpc" for one in node.server.program.listen):
        code = returned_status(node.server.runtime, error).code if error else 0
        found += [*_rpc_attributes(node_span(node)), ("rpc.grpc.status_code", code)]
    found += operation.attributes.items()
    if error:
        found.append(("error.type", str(status) if route else "error"))
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
    """Of a span's name: `service/method`, which libraries precede with `/`, `POST /` or `grpc.`."""
    service, _, method = name.rpartition(" ")[2].removeprefix("grpc.").strip("/").rpartition("/")
    if not service:
        return [("rpc.system", "grpc")]  # a name that the program gave
    return [("rpc.system", "grpc"), ("rpc.service", service), ("rpc.method", method)]


def call_attributes(call: Call, link: Link, error: str, failed_status: int | None = None) -> Attributes:
    """Return the attributes of a client's span; without a response there is no HTTP status."""
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
        http_status = failed_status if error else 200
        if http_status is not None:
            found.append(("http.response.status_code", http_status))
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
