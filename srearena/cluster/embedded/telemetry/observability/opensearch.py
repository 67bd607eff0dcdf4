"""OpenSearch as a program: its REST API over the log records of its namespace.

The transport port speaks a binary protocol and says so to others; 9600 belongs to the performance analyser, whose agent
does not run here, so nothing listens there.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import yaml

from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import stop_signal
from srearena.cluster.embedded.programs.timestamps import stamp
from srearena.cluster.embedded.telemetry.observability.search_index import SearchIndices
from srearena.cluster.embedded.telemetry.observability.search_query import SearchError
from srearena.cluster.embedded.telemetry.observability.telemetry_program import (
    Ports,
    PortTaken,
    TelemetryProgram,
    namespace_of_process,
)

HTTP, TRANSPORT = 9200, 9300
_SETTINGS = "/usr/share/opensearch/config/opensearch.yml"
_SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}


class OpenSearch(TelemetryProgram):
    threads = 92
    entrypoint = ("/usr/share/opensearch/opensearch-docker-entrypoint.sh",)
    cmd = ("opensearch",)
    binaries = ("/usr/share/opensearch/opensearch-docker-entrypoint.sh",)
    working_dir = "/usr/share/opensearch"
    tools = ("curl", "ps")
    user = "1000"
    follows_tag = False
    idle_cpu = 0.004
    idle_memory = 640 * 1024 * 1024
    """A heap of 400 MiB (the shop's OPENSEARCH_JAVA_OPTS) and what the JVM needs beside it."""

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        node = Node(self, process)
        ports = Ports(process)
        await node.log("o.o.n.Node", f"version[{self.version}], pid[{process.pid}], build[tar]")
        try:
            ports.http(HTTP, node.answer)
        except PortTaken:
            await node.log("o.o.b.OpenSearchUncaughtExceptionHandler", f"BindHttpException[Failed to bind to {HTTP}]")
            return 1
        process.container.namespace.listen(process, TRANSPORT, stream=_transport)
        await node.log("o.o.h.AbstractHttpServerTransport", f"publish_address {{{node.address}:{HTTP}}}")
        await node.log("o.o.n.Node", "started")
        await stop.wait()
        await node.log("o.o.n.Node", "stopping ...")
        await node.log("o.o.n.Node", "closed")
        return 143


async def _transport(connection: Connection) -> None:
    """Refuse what is not of the transport protocol."""
    if await connection.read():
        await connection.write(b"This is not an HTTP port")
    connection.close()


class Node:
    """One node, which is the whole cluster."""

    def __init__(self, program: OpenSearch, process: Process) -> None:
        self.process = process
        self.version = program.version
        self.started = process.date
        self.address = process.container.namespace.address
        self.indices = SearchIndices(program.telemetry, namespace_of_process(process))
        self.uid = str(process.container.host.pod["metadata"]["uid"])
        self.name = process.env.get("node.name") or str(process.container.host.pod["metadata"]["name"])
        try:
            settings = yaml.safe_load(process.files.read_text(_SETTINGS)) or {}
        except (OSError, yaml.YAMLError):
            settings = {}
        self.cluster = str(process.env.get("cluster.name") or dict(settings).get("cluster.name") or "docker-cluster")

    async def log(self, source_name: str, text: str) -> None:
        moment = stamp(self.process, "%Y-%m-%dT%H:%M:%S,%L")
        await self.process.write(f"[{moment}][INFO ][{source_name:<25}] [{self.name}] {text}\n")

    def answer(self, request: HttpRequest) -> HttpResponse:
        parameters = {name: values[0] for name, values in request.query.items()}
        try:
            status, body = self._route(request, parameters)
        except SearchError as problem:
            status, body = problem.status, _error(problem)
        if isinstance(body, str):
            return HttpResponse.text(body, status, "text/plain; charset=UTF-8")
        pretty = "pretty" in parameters and parameters["pretty"] != "false"
        text = json.dumps(body, indent=2) + "\n" if pretty else json.dumps(body, separators=(",", ":"))
        return HttpResponse(status, text.encode(), {"Content-Type": "application/json; charset=UTF-8"})

    def _route(self, request: HttpRequest, parameters: Mapping[str, str]) -> tuple[int, Any]:
        method = "GET" if request.method == "HEAD" else request.method
        parts = [part for part in request.path.split("/") if part]
        match parts:
            case []:
                return self._only(request, method, ("GET",), lambda: self._root())
            case ["_cluster", "health", *_]:
                return self._only(request, method, ("GET",), self._health)
            case ["_cat", *what]:
                return self._only(request, method, ("GET",), lambda: self._cat(what, parameters))
            case ["_nodes" | "_cluster", *_]:
                return self._unhandled(request)
            case ["_search"]:
                return self._only(request, method, ("GET", "POST"), lambda: self._search("_all", request, parameters))
            case ["_count"]:
                return self._only(request, method, ("GET", "POST"), lambda: self._count("_all", request, parameters))
            case [index, "_search"] if not index.startswith("_"):
                return self._only(request, method, ("GET", "POST"), lambda: self._search(index, request, parameters))
            case [index, "_count"] if not index.startswith("_"):
                return self._only(request, method, ("GET", "POST"), lambda: self._count(index, request, parameters))
            case [index, "_mapping" | "_mappings"] if not index.startswith("_"):
                return self._only(request, method, ("GET",), lambda: self._mappings(index))
            case [index, "_doc", *identifier] if not index.startswith("_") and len(identifier) < 2:
                return self._document(index, identifier[0] if identifier else "", request)
            case [index] if not index.startswith("_"):
                return self._index(index, request)
        return self._unhandled(request)

    def _only(
        self, request: HttpRequest, method: str, allowed: Sequence[str], answer: Callable[[], Any]
    ) -> tuple[int, Any]:
        if method not in allowed:
            text = f"Incorrect HTTP method for uri [{request.target}] and method [{request.method}], allowed: "
            return 405, {"error": f"{text}[{', '.join(allowed)}]", "status": 405}
        return 200, answer()

    def _unhandled(self, request: HttpRequest) -> tuple[int, Any]:
        return 400, {"error": f"no handler found for uri [{request.target}] and method [{request.method}]"}

    def _root(self) -> Any:
        return {
            "name": self.name,
            "cluster_name": self.cluster,
            "cluster_uuid": self._identifier("cluster"),
            "version": {
                "distribution": "opensearch",
                "number": self.version,
                "build_type": "tar",
                "build_snapshot": False,
            },
            "tagline": "The OpenSearch Project: https://opensearch.org/",
        }

    def _identifier(self, name: str) -> str:
        """22 characters, as OpenSearch makes them; the same for the life of the pod."""
        return urlsafe_b64encode(sha256(f"{self.uid}/{name}".encode()).digest()[:16]).decode().rstrip("=")

    def _health(self) -> Any:
        shards = len(self.indices.names())
        return {
            "cluster_name": self.cluster,
            # A replica of every shard waits for a second node.
            "status": "yellow" if shards else "green",
            "timed_out": False,
            "number_of_nodes": 1,
            "number_of_data_nodes": 1,
            "discovered_master": True,
            "discovered_cluster_manager": True,
            "active_primary_shards": shards,
            "active_shards": shards,
            "relocating_shards": 0,
            "initializing_shards": 0,
            "unassigned_shards": shards,
            "delayed_unassigned_shards": 0,
            "number_of_pending_tasks": 0,
            "number_of_in_flight_fetch": 0,
            "task_max_waiting_in_queue_millis": 0,
            "active_shards_percent_as_number": 50.0 if shards else 100.0,
        }

    def _cat(self, what: Sequence[str], parameters: Mapping[str, str]) -> Any:
        match what:
            case ["indices", *names]:
                rows = [self._index_row(name) for name in self.indices.select(names[0] if names else "_all")]
            case ["count", *names]:
                now = self.process.date
                count = self.indices.count(self.indices.select(names[0] if names else "_all"))
                rows = [
                    {"epoch": f"{now:.0f}", "timestamp": stamp(self.process, "%H:%M:%S"), "count": str(count)},
                ]
            case ["nodes"]:
                rows = [{"ip": self.address, "node.role": "dimr", "cluster_manager": "*", "name": self.name}]
            case ["health"]:
                health = self._health()
                rows = [{"cluster": self.cluster, "status": health["status"], "shards": str(health["active_shards"])}]
            case []:
                return "=^.^=\n/_cat/indices\n/_cat/indices/{index}\n/_cat/count\n/_cat/health\n/_cat/nodes\n"
            case _:
                raise SearchError("illegal_argument_exception", f"request [/_cat/{'/'.join(what)}] is not recognized")
        if parameters.get("format") == "json":
            return rows
        return _table(rows, with_header="v" in parameters and parameters["v"] != "false")

    def _index_row(self, name: str) -> dict[str, str]:
        size = _bytes(self.indices.size(name))
        return {
            "health": "yellow",
            "status": "open",
            "index": name,
            "uuid": self._identifier(name),
            "pri": "1",
            "rep": "1",
            "docs.count": str(self.indices.count([name])),
            "docs.deleted": "0",
            "store.size": size,
            "pri.store.size": size,
        }

    def _search(self, index: str, request: HttpRequest, parameters: Mapping[str, str]) -> Any:
        wanted = _body(request)
        for name in ("size", "from", "sort"):
            if name in parameters:
                wanted[name] = parameters[name]
        if "q" in parameters:
            wanted["query"] = {"query_string": {"query": parameters["q"]}}
        found = self.indices.search(self.indices.select(index), wanted)
        return {"took": 3, "timed_out": False, "_shards": dict(_SHARDS), **found}

    def _count(self, index: str, request: HttpRequest, parameters: Mapping[str, str]) -> Any:
        query = _body(request).get("query")
        if "q" in parameters:
            query = {"query_string": {"query": parameters["q"]}}
        return {"count": self.indices.count(self.indices.select(index), query), "_shards": dict(_SHARDS)}

    def _mappings(self, index: str) -> Any:
        text = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
        fields = {name: {"type": "date"} for name in ("@timestamp", "observedTimestamp")}
        names = ("body", "spanId", "traceId")
        severity = {"properties": {"number": {"type": "long"}, "text": text}}
        properties = {**fields, **dict.fromkeys(names, text), "severity": severity}
        return {name: {"mappings": {"properties": properties}} for name in self.indices.select(index)}

    def _index(self, name: str, request: HttpRequest) -> tuple[int, Any]:
        match request.method:
            case "PUT":
                self.indices.create(name)
                return 200, {"acknowledged": True, "shards_acknowledged": True, "index": name}
            case "DELETE":
                self.indices.delete(name)
                return 200, {"acknowledged": True}
            case "GET" | "HEAD":
                return 200, {
                    found: {"aliases": {}, "settings": {"index": {"uuid": self._identifier(found)}}, **mapping}
                    for found, mapping in self._mappings(name).items()
                }
        return self._only(request, request.method, ("DELETE", "GET", "HEAD", "PUT"), dict)

    def _document(self, index: str, identifier: str, request: HttpRequest) -> tuple[int, Any]:
        if request.method in ("GET", "HEAD") and identifier:
            document = self.indices.get(index, identifier)
            found: dict[str, Any] = {"_index": index, "_id": identifier, "found": document is not None}
            return (404, found) if document is None else (200, {**found, "_source": document})
        if request.method not in ("POST", "PUT") or (request.method == "PUT" and not identifier):
            return self._only(request, request.method, ("POST",), dict)
        document = _body(request)
        identifier = identifier or self._identifier(f"{index}/{self.process.clock.now}/{json.dumps(document)}")
        is_new = self.indices.write(index, identifier, document)
        result = "created" if is_new else "updated"
        shards = {"total": 2, "successful": 1, "failed": 0}
        return 201 if is_new else 200, {"_index": index, "_id": identifier, "result": result, "_shards": shards}


def _body(request: HttpRequest) -> dict[str, Any]:
    if not request.body.strip():
        return {}
    kind = request.header("Content-Type").partition(";")[0].strip().lower()
    if kind not in ("application/json", "application/x-ndjson"):
        raise SearchError("media_type_header_exception", f"Content-Type header [{kind}] is not supported", 406)
    try:
        document = json.loads(request.body)
    except ValueError as problem:
        raise SearchError("parse_exception", f"Failed to parse content to map: {problem}") from problem
    if not isinstance(document, dict):
        raise SearchError("parsing_exception", "Expected [START_OBJECT] but found [START_ARRAY]", line=1, col=1)
    return document


def _error(problem: SearchError) -> dict[str, Any]:
    cause = {"type": problem.kind, "reason": problem.reason, **problem.details}
    return {"error": {"root_cause": [cause], **cause}, "status": problem.status}


def _bytes(size: int) -> str:
    for unit, width in (("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10)):
        if size >= width:
            return f"{size / width:.1f}{unit}"
    return f"{size}b"


def _table(rows: Sequence[Mapping[str, str]], *, with_header: bool) -> str:
    """Columns of equal width; numbers are aligned to the right."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = [dict(zip(names, names, strict=True)), *rows] if with_header else list(rows)
    widths = {name: max(len(line[name]) for line in lines) for name in names}
    right = ("pri", "rep", "docs.count", "docs.deleted", "store.size", "pri.store.size", "count")
    return "".join(
        " ".join(
            line[name].rjust(widths[name]) if name in right else line[name].ljust(widths[name]) for name in names
        ).rstrip()
        + "\n"
        for line in lines
    )
