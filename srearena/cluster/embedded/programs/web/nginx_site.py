"""How nginx answers a request: server, location, file or upstream, and the lines it logs about it."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass

from srearena.cluster.embedded.machine.containers.log import LogWriter
from srearena.cluster.embedded.machine.files.file_view import Glance
from srearena.cluster.embedded.machine.files.streams import OpenFile
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.timestamps import common_log_time, stamp
from srearena.cluster.embedded.programs.web.nginx_config import Directive
from srearena.cluster.embedded.programs.web.web_root import Found, Webroot
from srearena.regular_expressions import PatternError
from srearena.regular_expressions import pattern as compiled

REQUEST_COST = 0.0001
MAX_ROUTES = 64
ACCESS_LOG = "/var/log/nginx/access.log"
ERROR_LOG = "/var/log/nginx/error.log"


@dataclass(slots=True)
class VirtualServer:
    directive: Directive
    listens: list[tuple[str, int, bool]]
    names: list[str]


@dataclass(frozen=True, slots=True)
class Route:
    """What the configuration makes of a request: the same until the next reload."""

    server: VirtualServer | None
    location: Directive | None
    returned: Directive | None
    forward: Directive | None
    counts: bool
    """Whether the answer is the server's own statistics."""
    root: str
    index: tuple[str, ...]
    tries: bool
    """Whether there is a `try_files`."""
    candidates: tuple[str, ...]
    """Paths below the root that may be answered with, in turn, or a status (`=404`)."""
    logged: bool
    log_line: tuple[str, str]
    """The access log's line before the time, and between that and the status."""
    log_tail: str


class Site:
    """The servers of one nginx, as its configuration has them now."""

    def __init__(self, process: Process, version: str, active: Callable[[], int]) -> None:
        self.process = process
        self.version = version
        self.servers: list[VirtualServer] = []
        self.upstreams: dict[str, list[str]] = {}
        self.requests = 0
        self._active = active
        self._files = Webroot(process)
        self.logs: dict[str, OpenFile] = {}
        self._routes: dict[tuple[object, ...], Route] = {}
        self._routed = self.servers

    async def log(self, level: str, text: str) -> None:
        when = stamp(self.process, "%Y/%m/%d %H:%M:%S")
        pid = self.process.pid
        line = f"{when} [{level}] {pid}#{pid}: {text}\n"
        await self._write_log(ERROR_LOG, line.encode(errors="surrogateescape"))

    async def _write_log(self, path: str, line: bytes) -> None:
        try:
            file = self.logs.get(path)
            if file is None:
                file = self.logs[path] = self.process.open(path, "a")
            await file.write(line)
        except OSError:
            return

    def reopen_logs(self) -> None:
        """Log files are held open, whatever becomes of their names; from now on they are those of that name again."""
        for file in self.logs.values():
            file.release()
        self.logs = {}

    @property
    def bad_request(self) -> HttpResponse:
        """The answer to what is no request."""
        page = _error_page(400, self.version)
        page.headers = {"Server": f"nginx/{self.version}", **page.headers}
        return page

    async def answer(self, request: HttpRequest, port: int) -> HttpResponse:
        await self.process.spend(REQUEST_COST)
        self.requests += 1
        route = self._route(request, port)
        response = await self._respond(request, route)
        response.headers = {"Server": f"nginx/{self.version}", **response.headers}
        response.headers.setdefault("Content-Type", "text/html")
        if route.logged:
            await self._write_log(ACCESS_LOG, self.access_line(route, response.status, len(response.body)))
        return response

    def access_line(self, route: Route, status: int, size: int) -> bytes:
        who, what = route.log_line
        when = common_log_time(self.process)
        return f"{who}[{when}]{what}{status} {size}{route.log_tail}\n".encode(errors="surrogateescape")

    def _route(self, request: HttpRequest, port: int) -> Route:
        """The way of a request; those of clients who ask the same again and again are remembered."""
        if self._routed is not self.servers or len(self._routes) > MAX_ROUTES:
            self._routes, self._routed = {}, self.servers
        key = (port, request.peer, request.method, request.target, request.version, *request.headers.items())
        found = self._routes.get(key)
        if found is None:
            found = self._routes[key] = self._new_route(request, port)
        return found

    def _new_route(self, request: HttpRequest, port: int) -> Route:
        server = self._server_for(request, port)
        path = request.path
        location = _location(server.directive, path) if server is not None else None
        scopes = [scope for scope in (location, server.directive if server else None) if scope is not None]
        root = next((scope.value("root") for scope in scopes if scope.value("root")), "/etc/nginx/html")
        if location is not None and location.value("alias"):
            root = location.value("alias")
            path = path[len(location.arguments[-1]) :] or "/"
        tried = next((scope.first("try_files") for scope in scopes if scope.first("try_files") is not None), None)
        candidates = [path] if tried is None else [argument.replace("$uri", path) for argument in tried.arguments]
        agent, referer = request.header("User-Agent", "-"), request.header("Referer", "-")
        returned = next((scope.first("return") for scope in scopes if scope.first("return") is not None), None)
        forward = location.first("proxy_pass") if location is not None else None
        counts = location is not None and location.first("stub_status") is not None
        return Route(
            server,
            location,
            returned,
            forward,
            counts,
            root=root,
            index=tuple(next((s.value("index").split() for s in scopes if s.value("index")), ["index.html"])),
            tries=tried is not None,
            candidates=tuple(candidate.partition("?")[0] for candidate in candidates),
            logged=server is None or server.directive.value("access_log") != "off",
            log_line=(f"{request.peer or '-'} - - ", f' "{_request_line(request)}" '),
            log_tail=f' "{referer}" "{agent}" "{request.header("X-Forwarded-For", "-")}"',
        )

    def _server_for(self, request: HttpRequest, port: int) -> VirtualServer | None:
        host = request.header("Host").partition(":")[0]
        here = [server for server in self.servers if any(p == port for _, p, _ in server.listens)]
        exact = next((server for server in here if host in server.names), None)
        if exact is not None:
            return exact
        marked = [s for s in here if any("default_server" in d.arguments for d in s.directive.all("listen"))]
        return (marked or here or [None])[0]  # type: ignore[list-item]

    async def _respond(self, request: HttpRequest, route: Route) -> HttpResponse:
        server = route.server
        if server is None:
            return _error_page(404, self.version)
        if route.returned is not None:
            return _returned(route.returned, self.version)
        if route.counts:
            n = self.requests
            head = f"Active connections: {self._active()} \nserver accepts handled requests\n {n} {n} {n} \n"
            return HttpResponse.text(f"{head}Reading: 0 Writing: 1 Waiting: 0 \n")
        if route.location is not None and route.forward is not None:
            return await self._forward(request, server, route.location, route.forward)
        if request.method not in ("GET", "HEAD"):
            return _error_page(405, self.version)
        found = Found(None, route.root)
        for candidate in route.candidates:
            if candidate.startswith("="):
                return _error_page(int(candidate[1:]) if candidate[1:].isdigit() else 404, self.version)
            found = self._files.find(route.root, candidate, route.index)
            if found.response is not None and (not route.tries or found.response.status == 200):
                if found.glance is not None and candidate is route.candidates[0]:
                    found.response.again = _Again(self, route, found.glance)
                return found.response
        return await self._missing(request, server, found)

    async def _missing(self, request: HttpRequest, server: VirtualServer, found: Found) -> HttpResponse:
        error = found.error
        name = server.names[0] if server.names else ""
        tail = f', client: {request.peer}, server: {name}, request: "{_request_line(request)}"'
        tail += f', host: "{request.header("Host")}"'
        if error is not None and error.errno == errno.EPERM:
            await self.log("error", f'*{self.requests} directory index of "{found.path}/" is forbidden{tail}')
            return _error_page(403, self.version)
        number = errno.ENOENT if error is None or error.errno is None else error.errno
        reason = "No such file or directory" if error is None else error.strerror
        await self.log("error", f'*{self.requests} open() "{found.path}" failed ({number}: {reason}){tail}')
        return _error_page(403 if number == errno.EACCES else 404, self.version)

    async def _forward(
        self, request: HttpRequest, server: VirtualServer, location: Directive, forward: Directive
    ) -> HttpResponse:
        target = forward.arguments[0] if forward.arguments else ""
        found = re.match(r"(https?)://([^/:$]+)(?::(\d+))?(/.*)?$", target)
        if found is None:
            await self.log("error", f'*{self.requests} invalid URL prefix in "{target}"')
            return _error_page(500, self.version)
        scheme, host, port_text, path = found.groups()
        members = self.upstreams.get(host, [f"{host}:{port_text}" if port_text else host])
        member = members[self.requests % len(members)]
        name, _, member_port = member.partition(":")
        port = int(member_port) if member_port.isdigit() else 443 if scheme == "https" else 80
        onward = request.target if path is None else path + request.target[len(location.arguments[-1]) :]
        headers = {**request.headers, "Host": f"{host}:{port_text}" if port_text else host, "Connection": "close"}
        for setting in location.all("proxy_set_header"):
            if len(setting.arguments) == 2:
                headers[setting.arguments[0]] = _filled(setting.arguments[1], request)
        result = await self.process.container.network.http(
            name,
            port,
            HttpRequest(request.method, onward or "/", headers, request.body, tls=scheme == "https"),
            connect_timeout=_seconds(location.value("proxy_connect_timeout"), 60.0),
            timeout=_seconds(location.value("proxy_read_timeout"), 60.0),
        )
        if result.outcome is Outcome.CONNECTED and result.response is not None:
            return HttpResponse(
                result.response.status, result.response.body, dict(result.response.headers), result.response.reason
            )
        names = server.names[0] if server.names else ""
        upstream = f"{scheme}://{result.address or name}:{port}{onward}"
        tail = (
            f', client: {request.peer}, server: {names}, request: "{_request_line(request)}", '
            f'upstream: "{upstream}", host: "{request.header("Host")}"'
        )
        await self.log("error", f"*{self.requests} {_upstream_problem(result.outcome, result.connected)}{tail}")
        return _error_page(504 if result.outcome is Outcome.TIMEOUT else 502, self.version)


class _Again:
    """A file that was served and logged: the same again, at once, while everything it came from is as it was."""

    __slots__ = ("_glance", "_route", "_servers", "_site", "_size")

    def __init__(self, site: Site, route: Route, glance: Glance) -> None:
        self._site = site
        self._servers = site.servers
        self._route = route
        self._glance = glance
        self._size = len(glance.content)

    def __call__(self) -> bool:
        site, route = self._site, self._route
        log = site.logs.get(ACCESS_LOG)
        if site.servers is not self._servers or not isinstance(log, LogWriter) or not self._glance.current():
            return False
        if not site.process.spend_at_once(REQUEST_COST):
            return False
        site.requests += 1
        if route.logged:
            log.write_at_once(site.access_line(route, 200, self._size))
        return True


def _request_line(request: HttpRequest) -> str:
    return f"{request.method} {request.target} {request.version}"


def _location(server: Directive, path: str) -> Directive | None:
    """The location nginx would choose: exact, then the longest prefix unless a regular expression matches."""
    best: Directive | None = None
    best_length = -1
    regexes: list[tuple[str, bool, Directive]] = []
    stops = False
    for location in server.all("location"):
        if not location.arguments:
            continue
        kind, pattern = (
            ("", location.arguments[0])
            if len(location.arguments) == 1
            else (location.arguments[0], location.arguments[1])
        )
        if kind == "=":
            if path == pattern:
                return location
        elif kind in ("~", "~*"):
            regexes.append((pattern, kind == "~*", location))
        elif path.startswith(pattern) and len(pattern) > best_length:
            best, best_length, stops = location, len(pattern), kind == "^~"
    if not stops:
        for pattern, ignore_case, location in regexes:
            try:
                regex = compiled(f"(?i){pattern}" if ignore_case else pattern)
            except PatternError:
                continue
            if regex.matches(path):
                return location
    return best


def _returned(directive: Directive, version: str) -> HttpResponse:
    arguments = directive.arguments
    status = int(arguments[0]) if arguments and arguments[0].isdigit() else 302
    text = arguments[1] if len(arguments) > 1 else arguments[0] if arguments and not arguments[0].isdigit() else ""
    if status in (301, 302, 303, 307, 308):
        return HttpResponse(status, headers={"Location": text, "Content-Type": "text/html"})
    if text:
        return HttpResponse(status, text.encode(), {"Content-Type": "application/octet-stream"})
    return _error_page(status, version) if status >= 400 else HttpResponse(status)


def _filled(text: str, request: HttpRequest) -> str:
    host = request.header("Host")
    values = {
        "$host": host.partition(":")[0],
        "$http_host": host,
        "$remote_addr": request.peer,
        "$proxy_add_x_forwarded_for": ", ".join(filter(None, (request.header("X-Forwarded-For"), request.peer))),
        "$scheme": "https" if request.tls else "http",
        "$request_uri": request.target,
    }
    return re.sub(r"\$\w+", lambda found: values.get(found.group(), found.group()), text)


def _seconds(text: str, default: float) -> float:
    found = re.fullmatch(r"(\d+)(ms|s|m|h)?", text)
    if found is None:
        return default
    return int(found.group(1)) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}[found.group(2)]


def _upstream_problem(outcome: Outcome, connected: bool) -> str:
    if outcome is Outcome.TIMEOUT:
        doing = "reading response header from upstream" if connected else "connecting to upstream"
        return f"upstream timed out (110: Operation timed out) while {doing}"
    if outcome is Outcome.REFUSED:
        return "connect() failed (111: Connection refused) while connecting to upstream"
    if outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
        return "could not be resolved (3: Host not found)"
    if outcome in (Outcome.NO_ROUTE, Outcome.UNREACHABLE):
        return "connect() failed (113: Host is unreachable) while connecting to upstream"
    if outcome is Outcome.RESET:
        return "recv() failed (104: Connection reset by peer) while reading response header from upstream"
    return "upstream prematurely closed connection while reading response header from upstream"


def _error_page(status: int, version: str) -> HttpResponse:
    phrase = HttpResponse(status).phrase
    title = f"{status} {phrase}"
    body = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
        f"<hr><center>nginx/{version}</center>\r\n</body>\r\n</html>\r\n"
    )
    return HttpResponse(status, body.encode(), {"Content-Type": "text/html"})
