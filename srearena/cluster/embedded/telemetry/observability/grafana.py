"""Grafana as a program: health, access as `grafana.ini` grants it, provisioned data sources and their proxy.

Data sources are read from the provisioning folder when the server has migrated its database, as in life; the proxy
sends requests over the pod's own network, so it fails where that does.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as IniError
from typing import Any
from urllib.parse import urlsplit

import yaml

from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import stop_signal
from srearena.cluster.embedded.telemetry.observability.telemetry_program import (
    HTML,
    Ports,
    PortTaken,
    TelemetryProgram,
    exposition,
    json_body,
)

_INI = "/etc/grafana/grafana.ini"
_PROVISIONING = "/etc/grafana/provisioning/datasources"
_MIGRATION_SECONDS = 5.0
"""Chosen: what the migrations of an empty SQLite database take."""
_PROXY_SECONDS = 30.0
"""Grafana's default of `dataproxy.timeout`."""
_PAGE = """<!DOCTYPE html>
<html lang="en-US">
<head>
<meta charset="utf-8" />
<title>Grafana</title>
<base href="{base}/" />
</head>
<body class="theme-dark app-grafana">
<div id="reactRoot"></div>
<noscript>If you're seeing this Grafana has failed to load its application files</noscript>
</body>
</html>
"""


class Grafana(TelemetryProgram):
    entrypoint = ("/run.sh",)
    binaries = ("/run.sh",)
    base = "alpine"
    follows_tag = False
    tools = ("curl",)
    working_dir = "/usr/share/grafana"
    user = "472"
    idle_cpu = 0.002
    idle_memory = 110 * 1024 * 1024

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        server = Server(self, process)
        await server.log("settings", "info", "Starting Grafana", version=self.version)
        await process.sleep(_MIGRATION_SECONDS)
        await server.log("migrator", "info", "migrations completed")
        await server.provision()
        try:
            Ports(process).serve(server.port, server.serve)
        except PortTaken as problem:
            await server.log("server", "error", "Server shutdown", error=str(problem))
            return 1
        await server.log("http.server", "info", "HTTP Server Listen", address=f"[::]:{server.port}", protocol="http")
        await stop.wait()
        await server.log("server", "info", "Shutdown started", reason="System signal: terminated")
        return 0


class Server:
    def __init__(self, program: Grafana, process: Process) -> None:
        self.process = process
        self.version = program.version
        self._ini = ConfigParser(interpolation=None, strict=False)
        try:
            self._ini.read_string(process.files.read_text(_INI))
        except (OSError, IniError):
            self._ini = ConfigParser(interpolation=None)
        port = self._setting("server", "http_port", "3000")
        self.port = int(port) if port.isdigit() else 3000
        root = self._setting("server", "root_url", "%(protocol)s://%(domain)s:%(http_port)s/")
        for name, value in (("protocol", "http"), ("domain", "localhost"), ("http_port", str(self.port))):
            root = root.replace(f"%({name})s", value)
        self.root = root.rstrip("/")
        sub_path = urlsplit(self.root).path.rstrip("/")
        self.base = sub_path if self._setting("server", "serve_from_sub_path", "false") == "true" else ""
        self.datasources: list[dict[str, Any]] = []

    def _setting(self, section: str, name: str, default: str) -> str:
        variable = f"GF_{section}_{name}".upper().replace(".", "_").replace("-", "_")
        return self.process.env.get(variable) or self._ini.get(section, name, fallback=default) or default

    async def log(self, source_name: str, level: str, message: str, **fields: object) -> None:
        moment = format_time(self.process.date)
        rest = "".join(f" {key}={json.dumps(value) if ' ' in str(value) else value}" for key, value in fields.items())
        await self.process.write(f'logger={source_name} t={moment} level={level} msg="{message}"{rest}\n')

    async def provision(self) -> None:
        files = self.process.files
        names = sorted(files.listdir(_PROVISIONING)) if files.is_dir(_PROVISIONING) else []
        for name in names:
            if not name.endswith((".yaml", ".yml")):
                continue
            try:
                found = yaml.safe_load(files.read_text(f"{_PROVISIONING}/{name}")) or {}
                sources = list(found.get("datasources") or ())
            except (OSError, AttributeError, yaml.YAMLError) as problem:
                await self.log("provisioning.datasources", "error", "can't read datasource file", error=str(problem))
                continue
            for source in sources:
                await self.log(
                    "provisioning.datasources",
                    "info",
                    "inserting datasource from configuration",
                    name=source.get("name", ""),
                    uid=source.get("uid", ""),
                )
                self.datasources.append(self._datasource(source))

    def _datasource(self, source: Mapping[str, Any]) -> dict[str, Any]:
        kind = str(source.get("type", ""))
        return {
            "id": len(self.datasources) + 1,
            "uid": str(source.get("uid") or f"P{len(self.datasources) + 1:016X}"),
            "orgId": int(source.get("orgId") or 1),
            "name": str(source.get("name", "")),
            "type": kind,
            "typeName": kind.title(),
            "typeLogoUrl": f"public/plugins/{kind}/img/{kind}_logo.svg",
            "access": str(source.get("access") or "proxy"),
            "url": str(source.get("url", "")),
            "user": "",
            "database": "",
            "basicAuth": False,
            "isDefault": bool(source.get("isDefault")),
            "jsonData": dict(source.get("jsonData") or {}),
            "readOnly": not source.get("editable", False),
        }

    async def serve(self, request: HttpRequest) -> HttpResponse:
        await self.process.spend(0.001)
        path = request.path
        inside = path.removeprefix(self.base) or "/" if path.startswith(self.base) else path
        if inside == "/api/health" or path == "/api/health":
            return _indented({"database": "ok", "version": self.version})
        if inside == "/healthz":
            return HttpResponse.text("Ok")
        if self.base and not path.startswith(self.base):
            return HttpResponse(301, b"", {"Location": f"{self.root}{request.target}"})
        if inside == "/metrics":
            return exposition(
                {"grafana_build_info": ("gauge", "A metric with a constant '1' value labeled by version.")},
                [("grafana_build_info", {"edition": "oss", "version": self.version}, 1)],
            )
        if inside == "/login":
            return self._page()
        role = self._role(request)
        if not inside.startswith("/api/"):
            return self._page() if role else HttpResponse(302, b"", {"Location": f"{self.base}/login"})
        if not role:
            return json_body(
                {"extra": None, "message": "Unauthorized", "messageId": "auth.unauthorized", "statusCode": 401}, 401
            )
        return await self._api(request, inside.removeprefix("/api/").strip("/").split("/"), role)

    def _page(self) -> HttpResponse:
        return HttpResponse(200, _PAGE.format(base=self.base).encode(), dict(HTML))

    def _role(self, request: HttpRequest) -> str:
        """The role of the caller: of the administrator, of anonymous users where they are allowed, or none."""
        scheme, _, credentials = request.header("Authorization").partition(" ")
        if scheme.lower() == "basic":
            try:
                user_and_password = base64.b64decode(credentials, validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                return ""
            user = self._setting("security", "admin_user", "admin")
            return (
                "Admin" if user_and_password == f"{user}:{self._setting('security', 'admin_password', 'admin')}" else ""
            )
        if self._setting("auth.anonymous", "enabled", "false") == "true" and not scheme:
            return self._setting("auth.anonymous", "org_role", "Viewer")
        return ""

    async def _api(self, request: HttpRequest, parts: list[str], role: str) -> HttpResponse:
        match parts:
            case ["datasources", "proxy", "uid", uid, *rest]:
                return await self._proxy(request, self._source("uid", uid), rest)
            case ["datasources", "proxy", number, *rest]:
                return await self._proxy(request, self._source("id", number), rest)
            case ["datasources", "uid", uid, "health"]:
                return await self._health(self._source("uid", uid))
            case ["datasources", *rest] if role != "Admin":
                return json_body(
                    {
                        "message": "You'll need additional permissions to perform this action. Permissions needed: "
                        "datasources:read",
                        "title": "Access denied",
                    },
                    403,
                )
            case ["datasources"] if request.method == "GET":
                return json_body(self.datasources)
            case ["datasources", "uid" | "name" as key, value] if request.method == "GET":
                source = self._source(key, value)
                return json_body({"message": "Data source not found"}, 404) if source is None else json_body(source)
            case ["org"]:
                name = self._setting("auth.anonymous", "org_name", "Main Org.")
                return json_body({"id": 1, "name": name, "address": {}})
            case ["search"]:
                return json_body([])
        return json_body({"message": "Not found"}, 404)

    def _source(self, key: str, value: str) -> dict[str, Any] | None:
        return next((source for source in self.datasources if str(source[key]) == value), None)

    async def _proxy(self, request: HttpRequest, source: Mapping[str, Any] | None, rest: list[str]) -> HttpResponse:
        if source is None:
            return json_body({"message": "Unable to find datasource"}, 404)
        query = urlsplit(request.target).query
        response = await self._send(source, "/".join(rest) + (f"?{query}" if query else ""), request)
        return response if response is not None else json_body({"message": "Bad Gateway"}, 502)

    async def _send(
        self, source: Mapping[str, Any], target: str, request: HttpRequest | None = None
    ) -> HttpResponse | None:
        address = urlsplit(str(source["url"]))
        method, body = (request.method, request.body) if request is not None else ("GET", b"")
        headers = {"Host": address.netloc, "User-Agent": f"Grafana/{self.version}"}
        if request is not None and request.header("Content-Type"):
            headers["Content-Type"] = request.header("Content-Type")
        sent = HttpRequest(method, f"{address.path.rstrip('/')}/{target}", headers, body, tls=address.scheme == "https")
        result = await self.process.container.network.http(
            address.hostname or "",
            address.port or (443 if sent.tls else 80),
            sent,
            connect_timeout=_PROXY_SECONDS,
            timeout=_PROXY_SECONDS,
        )
        return result.response if result.outcome is Outcome.CONNECTED else None

    async def _health(self, source: Mapping[str, Any] | None) -> HttpResponse:
        if source is None:
            return json_body({"message": "Data source not found"}, 404)
        probes = {"jaeger": "api/services", "prometheus": "api/v1/query?query=1%2B1"}
        response = await self._send(source, probes.get(str(source["type"]), ""))
        if response is not None and response.status < 400:
            return json_body({"message": "Data source is working", "status": "OK"})
        return json_body({"message": "Failed to connect to the data source", "status": "ERROR"}, 400)


def _indented(value: Any) -> HttpResponse:
    return HttpResponse(200, json.dumps(value, indent=2).encode(), {"Content-Type": "application/json; charset=UTF-8"})
