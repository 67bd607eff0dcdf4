"""nginx: serves files and forwards requests as its configuration says, logs as nginx does.

It reads its configuration for real, so a broken one, an upstream that does not resolve, a read-only cache directory or
a port in use end it with nginx's well-known messages.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Container
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.clock import Signal, first_of
from srearena.cluster.embedded.machine.networking.sockets import Listener, TlsIdentity
from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.root_filesystem import Folder
from srearena.cluster.embedded.programs.web.nginx_config import ConfigReader, Directive, NginxConfigError
from srearena.cluster.embedded.programs.web.nginx_site import Site, VirtualServer

CONFIG = "/etc/nginx/nginx.conf"
_ENTRYPOINT_LINES = """\
/docker-entrypoint.sh: /docker-entrypoint.d/ is not empty, will attempt to perform configuration
/docker-entrypoint.sh: Looking for shell scripts in /docker-entrypoint.d/
/docker-entrypoint.sh: Launching /docker-entrypoint.d/10-listen-on-ipv6-by-default.sh
"""
_ENTRYPOINT_END = """\
/docker-entrypoint.sh: Sourcing /docker-entrypoint.d/15-local-resolvers.envsh
/docker-entrypoint.sh: Launching /docker-entrypoint.d/20-envsubst-on-templates.sh
/docker-entrypoint.sh: Launching /docker-entrypoint.d/30-tune-worker-processes.sh
/docker-entrypoint.sh: Configuration complete; ready for start up
"""
_MAIN_CONFIG = """
user  nginx;
worker_processes  auto;

error_log  /var/log/nginx/error.log notice;
pid        /run/nginx.pid;


events {
    worker_connections  1024;
}


http {
    include       /etc/nginx/mime.types;
    default_type  application/octet-stream;

    log_format  main  '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" "$http_x_forwarded_for"';

    access_log  /var/log/nginx/access.log  main;

    sendfile        on;
    #tcp_nopush     on;

    keepalive_timeout  65;

    #gzip  on;

    include /etc/nginx/conf.d/*.conf;
}
"""
_DEFAULT_SERVER = """\
server {
    listen       %s;
    server_name  localhost;

    location / {
        root   /usr/share/nginx/html;
        index  index.html index.htm;
    }

    error_page   500 502 503 504  /50x.html;
    location = /50x.html {
        root   /usr/share/nginx/html;
    }
}
"""
_WELCOME = """\
<!DOCTYPE html>
<html>
<head>
<title>Welcome to nginx!</title>
<style>
html { color-scheme: light dark; }
body { width: 35em; margin: 0 auto;
font-family: Tahoma, Verdana, Arial, sans-serif; }
</style>
</head>
<body>
<h1>Welcome to nginx!</h1>
<p>If you see this page, the nginx web server is successfully installed and
working. Further configuration is required.</p>

<p>For online documentation and support please refer to
<a href="http://nginx.org/">nginx.org</a>.<br/>
Commercial support is available at
<a href="http://nginx.com/">nginx.com</a>.</p>

<p><em>Thank you for using nginx.</em></p>
</body>
</html>
"""
_MIME_TYPES = """\
types {
    text/html                                        html htm shtml;
    text/css                                         css;
    text/xml                                         xml;
    application/javascript                           js;
    application/json                                 json;
    text/plain                                       txt;
    image/png                                        png;
    image/jpeg                                       jpeg jpg;
}
"""
_CACHE_FOLDERS = ("client_temp", "proxy_temp", "fastcgi_temp", "uwsgi_temp", "scgi_temp")


class NginxFailure(Exception):
    """The end of a start: what comes after `nginx: `."""


@program("nginx", "bitnami/nginx", "openresty/openresty", "nginx-slim")
class Nginx(Program):
    entrypoint = ("/docker-entrypoint.sh",)
    cmd = ("nginx", "-g", "daemon off;")
    ports = (80,)
    tools = ("curl",)
    binaries = ("/docker-entrypoint.sh", "/usr/sbin/nginx")
    accounts_added = (Account("nginx", 101, 101, "/nonexistent", "/bin/false"),)
    folders: ClassVar = {
        "/var/cache/nginx": Folder(),
        "/docker-entrypoint.d": Folder(),
        "/etc/nginx/conf.d": Folder(),
        "/var/log/nginx": Folder(),
    }
    files: ClassVar = {
        CONFIG: _MAIN_CONFIG,
        "/etc/nginx/mime.types": _MIME_TYPES,
        "/etc/nginx/conf.d/default.conf": _DEFAULT_SERVER % "80",
        "/usr/share/nginx/html/index.html": _WELCOME,
        "/usr/share/nginx/html/50x.html": "<html><body><h1>An error occurred.</h1></body></html>\n",
    }
    links: ClassVar = {"/var/log/nginx/access.log": "/dev/stdout", "/var/log/nginx/error.log": "/dev/stderr"}
    stop_signal = Signals.SIGQUIT
    idle_memory = 6 * 1024 * 1024
    default_version = "1.29.3"

    async def run(self, process: Process) -> int:
        if process.binary == "docker-entrypoint.sh":
            return await self._entrypoint(process)
        args = process.argv[1:]
        if "-v" in args or "-V" in args:
            await process.error(f"nginx version: nginx/{self.version}\n")
            return 0
        if "-s" in args:
            return await self._send_signal(
                process, args[args.index("-s") + 1] if args.index("-s") + 1 < len(args) else ""
            )
        path = args[args.index("-c") + 1] if "-c" in args and args.index("-c") + 1 < len(args) else CONFIG
        master = _Master(self, process, path)
        try:
            return await master.run(test_only="-t" in args or "-T" in args)
        finally:
            master.site.reopen_logs()

    async def _entrypoint(self, process: Process) -> int:
        words = process.argv[1:]
        if words[:1] in (["nginx"], ["nginx-debug"]):
            await process.write(_ENTRYPOINT_LINES)
            script = "10-listen-on-ipv6-by-default.sh"
            config = "/etc/nginx/conf.d/default.conf"
            if not process.files.is_file(config):
                await process.write(f"{script}: info: {config} is not a file or does not exist\n")
            elif not process.files.may(config, 2):
                await process.write(f"{script}: info: can not modify {config} (read-only file system?)\n")
            else:
                await process.write(f"{script}: info: Getting the checksum of {config}\n")
                await process.write(f"{script}: info: Enabled listen on IPv6 in {config}\n")
            await process.write(_ENTRYPOINT_END)
            await self._templates(process)
        process.execute(words or list(self.cmd), process.env)
        return 0

    async def _templates(self, process: Process) -> None:
        """Files of /etc/nginx/templates with the environment filled in, as the image's envsubst does it."""
        folder = "/etc/nginx/templates"
        if not process.files.is_dir(folder):
            return
        for name in process.files.listdir(folder):
            source = posixpath.join(folder, name)
            if not name.endswith(".template") or not process.files.is_file(source):
                continue
            text = process.files.read_text(source)
            filled = re.sub(
                r"\$\{?([A-Za-z_]\w*)\}?",
                lambda m: process.env[m.group(1)] if m.group(1) in process.env else m.group(0),
                text,
            )
            target = posixpath.join("/etc/nginx/conf.d", name.removesuffix(".template"))
            process.files.write_bytes(target, filled.encode())
            await process.write(f"20-envsubst-on-templates.sh: Running envsubst on {source} to {target}\n")

    async def _send_signal(self, process: Process, name: str) -> int:
        numbers = {
            "reload": Signals.SIGHUP,
            "quit": Signals.SIGQUIT,
            "stop": Signals.SIGTERM,
            "reopen": Signals.SIGUSR1,
        }
        if name not in numbers:
            await process.error(f'nginx: invalid option: "-s {name}"\n')
            return 1
        try:
            pid = int(process.files.read_text("/run/nginx.pid"))
        except (OSError, ValueError):
            await process.error('nginx: [error] open() "/run/nginx.pid" failed (2: No such file or directory)\n')
            return 1
        master = process.container.pids.get(pid)
        if master is not None:
            master.raise_signal(numbers[name])
        return 0


@program("nginxinc/nginx-unprivileged")
class NginxUnprivileged(Nginx):
    user = "101"
    ports = (8080,)
    folders: ClassVar = {**Nginx.folders, "/var/cache/nginx": Folder(0o775, 101, 0), "/tmp": Folder(0o1777)}
    files: ClassVar = {
        **Nginx.files,
        CONFIG: _MAIN_CONFIG.replace("user  nginx;\n", "").replace("/run/nginx.pid", "/tmp/nginx.pid"),
        "/etc/nginx/conf.d/default.conf": _DEFAULT_SERVER % "8080",
    }


class _Master:
    """One run of the server."""

    def __init__(self, image: Nginx, process: Process, path: str) -> None:
        self.image = image
        self.process = process
        self.path = path
        self.listeners: dict[tuple[str, int], Listener] = {}
        self.site = Site(process, image.version, self.active_connections)
        self._reload: Signal[int] = Signal(process.clock)

    def active_connections(self) -> int:
        return sum(listener.accepted for listener in self.listeners.values())

    async def log(self, level: str, text: str) -> None:
        await self.site.log(level, text)

    async def run(self, *, test_only: bool) -> int:
        process = self.process
        try:
            tree = await self._load()
            if test_only:
                await process.error(
                    f"nginx: the configuration file {self.path} syntax is ok\n"
                    f"nginx: configuration file {self.path} test is successful\n"
                )
                return 0
            await self._prepare(tree)
        except NginxFailure as failure:
            await process.error(f"nginx: {failure}\n")
            if test_only:
                await process.error(f"nginx: configuration file {self.path} test failed\n")
            return 1
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT, Signals.SIGQUIT)
        process.handle(Signals.SIGHUP, self._reload.set)
        process.handle(Signals.SIGUSR1, lambda _: self.site.reopen_logs())
        process.reaps = True
        process.set_memory(self.image.idle_memory)
        for line in (
            'using the "epoll" event method',
            f"nginx/{self.image.version}",
            "built by gcc 12.2.0 (Debian 12.2.0-14+deb12u1)",
            f"OS: Linux {process.container.host.kernel.release}",
            f"getrlimit(RLIMIT_NOFILE): {process.nofile}:{process.nofile}",
            "start worker processes",
        ):
            await self.log("notice", line)
        process.argv = ["nginx: master process nginx -g daemon off;"]
        worker = process.fork(_worker, argv=["nginx: worker process"])
        await self.log("notice", f"start worker process {worker.pid}")
        await self._serve_until(stop)
        gentle = stop.value == Signals.SIGQUIT
        ending = "shutting down" if gentle else "exiting"
        await self.log("notice", f"signal {stop.value} ({Signals(stop.value).name}) received, {ending}")
        for listener in self.listeners.values():
            listener.close()
        while gentle and self.active_connections():
            await process.sleep(0.05)
        worker.terminate(Signals.SIGKILL)
        await self.log("notice", "exit")
        return 0

    async def _serve_until(self, stop: Signal[int]) -> None:
        while await first_of(self.process.clock, stop, self._reload) is self._reload and not stop.is_set:
            self._reload = Signal(self.process.clock)
            self.process.handle(Signals.SIGHUP, self._reload.set)
            await self.log("notice", "signal 1 (SIGHUP) received, reconfiguring")
            self.site.reopen_logs()
            before = self.site.servers, self.site.upstreams
            try:
                await self._load()
                self._bind()
            except (NginxFailure, OSError) as failure:
                self.site.servers, self.site.upstreams = before
                await self.log("emerg", str(failure).removeprefix("[emerg] "))

    # --- configuration ---------------------------------------------------------------------------------------

    async def _load(self) -> Directive:
        try:
            tree = ConfigReader(self.process).read(self.path)
        except NginxConfigError as error:
            raise NginxFailure(f"[emerg] {error}") from None
        http = tree.first("http")
        if tree.first("events") is None:
            raise NginxFailure('[emerg] no "events" section in configuration')
        upstreams: dict[str, list[str]] = {}
        servers: list[VirtualServer] = []
        for block in http.all("upstream") if http is not None else ():
            name = block.arguments[0] if block.arguments else ""
            members = [entry.arguments[0] for entry in block.all("server") if entry.arguments]
            if not members:
                raise NginxFailure(f"[emerg] no servers are inside upstream in {block.place}")
            upstreams[name] = members
            for entry in block.all("server"):
                await self._check_host(entry.arguments[0].partition(":")[0], entry.place)
        for block in http.all("server") if http is not None else ():
            servers.append(_server(block))
            await self._check_locations(block, upstreams)
        self.site.servers, self.site.upstreams = servers, upstreams
        return tree

    async def _check_locations(self, block: Directive, upstreams: Container[str]) -> None:
        """Hosts in proxy_pass are looked up at start, unless a variable makes that impossible."""
        for child in block.children:
            if child.name == "location":
                await self._check_locations(child, upstreams)
            elif child.name in ("proxy_pass", "fastcgi_pass", "grpc_pass") and child.arguments:
                target = child.arguments[0]
                host = re.sub(r"^\w+://", "", target).partition("/")[0].partition(":")[0]
                if "$" not in target and host not in upstreams and not target.startswith("unix:"):
                    await self._check_host(host, child.place)
            elif (
                child.name == "ssl_certificate"
                and child.arguments
                and not self.process.files.is_file(child.arguments[0])
            ):
                path = child.arguments[0]
                raise NginxFailure(
                    f'[emerg] cannot load certificate "{path}": BIO_new_file() failed (SSL: error:80000002:system '
                    f"library::No such file or directory:calling fopen({path}, r) "
                    "error:10000080:BIO routines::no such file)"
                )

    async def _check_host(self, host: str, place: str) -> None:
        answer = await self.process.container.network.resolve(host)
        if not answer.addresses:
            raise NginxFailure(f'[emerg] host not found in upstream "{host}" in {place}')

    async def _prepare(self, tree: Directive) -> None:
        process = self.process
        if process.credentials.uid != 0 and (user := tree.first("user")) is not None:
            text = (
                'the "user" directive makes sense only if the master process runs with super-user privileges, ignored'
            )
            await process.error(f"nginx: [warn] {text} in {user.place}\n")
        for name in _CACHE_FOLDERS:
            path = f"/var/cache/nginx/{name}"
            try:
                if not process.files.is_dir(path):
                    process.files.mkdir(path, 0o700)
            except OSError as error:
                raise NginxFailure(f'[emerg] mkdir() "{path}" failed ({error.errno}: {error.strerror})') from None
        await self._bind_patiently()
        pid_file = tree.value("pid", "/run/nginx.pid")
        try:
            process.files.write_bytes(pid_file, f"{process.pid}\n".encode())
        except OSError as error:
            raise NginxFailure(f'[emerg] open() "{pid_file}" failed ({error.errno}: {error.strerror})') from None

    async def _bind_patiently(self) -> None:
        for attempt in range(5):
            try:
                self._bind()
                return
            except OSError as error:
                text = f"{error.filename} failed ({error.errno}: {error.strerror})"
                if error.errno != errno.EADDRINUSE:
                    raise NginxFailure(f"[emerg] {text}") from None
                await self.process.error(f"nginx: [emerg] {text}\n")
                if attempt < 4:
                    await self.process.sleep(0.5)
        raise NginxFailure("[emerg] still could not bind()")

    def _bind(self) -> None:
        """Open the sockets that are configured now and close those that no longer are."""
        wanted = {(address, port): tls for server in self.site.servers for address, port, tls in server.listens}
        for key in [key for key in self.listeners if key not in wanted]:
            self.listeners.pop(key).close()
        for (address, port), tls in wanted.items():
            if (address, port) in self.listeners:
                continue
            identity = TlsIdentity(("localhost",), "nginx") if tls else None
            try:
                listener = self.process.container.namespace.listen(
                    self.process,
                    port,
                    address=address,
                    tls=identity,
                    http=lambda request, port=port: self.site.answer(request, port),  # type: ignore[misc]
                )
            except OSError as error:
                raise OSError(error.errno, error.strerror, f"bind() to {address}:{port}") from None
            listener.bad_request = self.site.bad_request
            self.listeners[address, port] = listener


async def _worker(process: Process) -> int:
    stop = process.catch(Signals.SIGTERM, Signals.SIGINT, Signals.SIGQUIT)
    await stop.wait()
    return 0


def _server(block: Directive) -> VirtualServer:
    listens: list[tuple[str, int, bool]] = []
    for listen in block.all("listen"):
        text = listen.arguments[0] if listen.arguments else "80"
        if text.startswith(("unix:", "[")):
            continue
        address, colon, port = text.rpartition(":")
        if not colon and not text.isdigit():
            address, port = text, "80"
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise NginxFailure(f'[emerg] invalid port in "{text}" of the "listen" directive in {listen.place}')
        listens.append((address if address not in ("", "*") else "0.0.0.0", int(port), "ssl" in listen.arguments))
    names = [name for entry in block.all("server_name") for name in entry.arguments]
    return VirtualServer(block, listens or [("0.0.0.0", 80, False)], names)
