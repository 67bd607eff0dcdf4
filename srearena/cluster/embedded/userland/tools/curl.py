"""curl: requests, its many switches, and its numbered errors."""

from __future__ import annotations

import base64
import posixpath
import re
from urllib.parse import quote_plus, urljoin

from srearena.cluster.embedded.machine.networking.certificates import Flaw, TlsIdentity
from srearena.cluster.embedded.machine.networking.reachability import HttpResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.handshakes import handshake_text, refusal_with_help
from srearena.cluster.embedded.userland.tools.options import Options, UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.urls import Url, parse_url

VERSION = "8.5.0"
MAX_REDIRECTS = 50
DEFAULT_CONNECT_TIMEOUT = 300.0
_LONG = {
    "silent": "s",
    "show-error": "S",
    "output=": "o",
    "remote-name": "O",
    "verbose": "v",
    "head": "I",
    "include": "i",
    "request=": "X",
    "data=": "d",
    "data-raw=": "d",
    "data-binary=": "d",
    "data-urlencode=": "data-urlencode",
    "json=": "json",
    "header=": "H",
    "insecure": "k",
    "fail": "f",
    "fail-with-body": "fail-with-body",
    "max-time=": "m",
    "connect-timeout=": "connect-timeout",
    "write-out=": "w",
    "location": "L",
    "user=": "u",
    "user-agent=": "A",
    "cacert=": "cacert",
    "cert=": "E",
    "key=": "key",
    "resolve=": "resolve",
    "retry=": "retry",
    "retry-delay=": "retry-delay",
    "retry-connrefused": "retry-connrefused",
    "retry-all-errors": "retry-all-errors",
    "retry-max-time=": "retry-max-time",
    "get": "G",
    "cookie=": "b",
    "referer=": "e",
    "no-progress-meter": "no-progress-meter",
    "ipv4": "4",
    "ipv6": "6",
    "http1.1": "http1.1",
    "http2": "http2",
    "http2-prior-knowledge": "http2",
    "globoff": "g",
    "progress-bar": "#",
    "version": "V",
    "url=": "url",
    "compressed": "compressed",
    "form=": "F",
    "dump-header=": "D",
    "proxy=": "x",
    "noproxy=": "noproxy",
    "unix-socket=": "unix-socket",
    "upload-file=": "T",
    "no-buffer": "N",
    "disable": "q",
    "interface=": "interface",
    "max-redirs=": "max-redirs",
    "parallel": "Z",
    "tlsv1.2": "tlsv1.2",
    "tlsv1.3": "tlsv1.3",
    "no-keepalive": "no-keepalive",
    "keepalive-time=": "keepalive-time",
    "tcp-nodelay": "tcp-nodelay",
    "path-as-is": "path-as-is",
}


class CurlFailure(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value > 0 else None


@tool("curl")
async def curl(process: Process, args: list[str]) -> int:
    options = parse(args, "sSOvIikfLG46gVN#jnaqZ", "oXdHmwuAEbeFDxTcCr", long=_LONG)
    if "V" in options:
        await process.write(f"curl {VERSION} (x86_64-pc-linux-gnu) libcurl/{VERSION} OpenSSL/3.0.13\n")
        return 0
    targets = [*options.operands, *options.all("url")]
    if not targets:
        raise UsageError("(2) no URL specified")
    status = 0
    outputs = options.all("o")
    for index, target in enumerate(targets):
        output = outputs[index] if index < len(outputs) else ""
        transfer = _Transfer(process, options, target, output)
        status = await transfer.run()
    return status


class _Transfer:
    def __init__(self, process: Process, options: Options, target: str, output: str) -> None:
        self.process = process
        self.options = options
        self.target = target
        self.output = output
        self.verbose = "v" in options
        self.started = process.clock.now
        self.result: HttpResult | None = None
        self.url: Url | None = None
        self.redirects = 0
        self.downloaded = 0

    async def run(self) -> int:
        retries = self.options.value("retry", "0")
        attempts = int(retries) + 1 if retries.isdigit() else 1
        for attempt in range(min(attempts, 100)):
            try:
                code = await self._attempt()
                message = ""
            except CurlFailure as failure:
                code, message = failure.code, failure.message
            again = code in (6, 28) or (code == 7 and "retry-connrefused" in self.options)
            again = again or (code != 0 and "retry-all-errors" in self.options)
            delay = _seconds(self.options.value("retry-delay", "")) or float(min(600, 2**attempt))
            limit = _seconds(self.options.value("retry-max-time", ""))
            late = limit is not None and self.process.clock.now + delay - self.started > limit
            if not again or late or attempt == attempts - 1:
                break
            left = attempts - attempt - 1
            text = f"Warning: Transient problem: timeout Will retry in {delay:.0f} seconds. {left} retries left.\n"
            await self.process.error(text)
            await self.process.sleep(delay)
        if message and ("s" not in self.options or "S" in self.options):
            await self.process.error(f"curl: ({code}) {message}\n")
        if "w" in self.options:
            await self.process.write(self._written_out(code))
        return code

    async def _attempt(self) -> int:
        url = parse_url(self.target)
        if url is None:
            raise CurlFailure(3, "URL using bad/illegal format or missing URL")
        if url.scheme not in ("http", "https"):
            if url.scheme in ("telnet", "ftp", "tcp"):
                raise CurlFailure(
                    7, f"Failed to connect to {url.host} port {url.port} after 0 ms: Couldn't connect to server"
                )
            raise CurlFailure(1, f'Protocol "{url.scheme}" not supported or disabled in libcurl')
        method, headers, body = self._request_parts(url)
        await self._meter_head()
        while True:
            self.url = url
            response = await self._exchange(url, method, headers, body)
            location = response.header("Location")
            if "L" not in self.options or response.status not in (301, 302, 303, 307, 308) or not location:
                break
            self.redirects += 1
            wanted = self.options.value("max-redirs", "")
            most = int(wanted) if wanted.isdigit() else MAX_REDIRECTS
            if self.redirects > most:
                raise CurlFailure(47, f"Maximum ({most}) redirects followed")
            if "i" in self.options or "I" in self.options:
                await self._emit(_head_text(response).encode())
            follow = parse_url(urljoin(f"{url.scheme}://{url.authority}{url.target}", location))
            if follow is None:
                raise CurlFailure(3, "URL using bad/illegal format or missing URL")
            url = follow
            headers["Host"] = url.authority
            if response.status in (301, 302, 303) and method == "POST":
                method, body = "GET", b""
        return await self._deliver(url, response)

    def _request_parts(self, url: Url) -> tuple[str, dict[str, str], bytes]:
        options = self.options
        headers = {"Host": url.authority, "User-Agent": options.value("A", f"curl/{VERSION}"), "Accept": "*/*"}
        pieces = [self._data(text) for text in options.all("d")]
        for text in options.all("data-urlencode"):
            name, equals, value = text.partition("=")
            pieces.append(f"{name}={quote_plus(value)}".encode() if equals else quote_plus(text).encode())
        body = b"&".join(pieces)
        if "json" in options:
            body = self._data(options.value("json"))
            headers |= {"Content-Type": "application/json", "Accept": "application/json"}
        if "T" in options:
            body = self._data("@" + options.value("T"))
        userinfo = options.value("u") or url.userinfo
        if userinfo:
            headers["Authorization"] = "Basic " + base64.b64encode(userinfo.encode()).decode()
        if "b" in options:
            headers["Cookie"] = options.value("b")
        if "e" in options:
            headers["Referer"] = options.value("e")
        if body and "T" not in options:
            headers["Content-Length"] = str(len(body))
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        for line in options.all("H"):
            name, colon, value = line.partition(":")
            headers = {k: v for k, v in headers.items() if k.lower() != name.strip().lower()}
            if colon and value.strip():
                headers[name.strip()] = value.strip()
        default = (
            "HEAD" if "I" in options else "PUT" if "T" in options else "POST" if pieces or "json" in options else "GET"
        )
        if "G" in options and body:
            self.target += ("&" if "?" in self.target else "?") + body.decode(errors="replace")
            body, default = b"", "GET"
        return options.value("X", default), headers, body

    def _data(self, text: str) -> bytes:
        if not text.startswith("@"):
            return text.encode(errors="surrogateescape")
        try:
            return self.process.files.read_bytes(text[1:])
        except OSError:
            raise CurlFailure(26, f"Failed to open {text[1:]}") from None

    async def _exchange(self, url: Url, method: str, headers: dict[str, str], body: bytes) -> HttpResponse:
        options = self.options
        target = parse_url(self.target) if "G" in options else None
        trusted = self._authorities() if url.tls else b""
        insecure = "k" in options
        flaws: list[Flaw | None] = []

        def accepts(identity: TlsIdentity) -> bool:
            flaws.append(identity.flaw(url.host, self.process.date, trusted))
            return insecure or flaws[-1] is None

        request = HttpRequest(
            method, (target or url).target, dict(headers), body, tls=url.tls, server_name=url.host, accepts=accepts
        )
        limit = _seconds(options.value("m", ""))
        connect_limit = _seconds(options.value("connect-timeout", "")) or DEFAULT_CONNECT_TIMEOUT
        host = self._resolved(url)
        before = self.process.clock.now
        result = await self.process.container.network.http(
            host, url.port, request, connect_timeout=min(connect_limit, limit or connect_limit), timeout=limit
        )
        self.result = result
        elapsed = int((self.process.clock.now - before) * 1000)
        if self.verbose and result.address:
            await self.process.error(f"*   Trying {result.address}:{url.port}...\n")
        if self.verbose and (result.connected or result.outcome is Outcome.CONNECTED):
            await self.process.error(f"* Connected to {url.host} ({result.address}) port {url.port}\n")
            if result.identity is not None and flaws:
                bundle_path = options.value("cacert")
                text = handshake_text(result.identity, url.host, flaws[-1], authorities=bundle_path, insecure=insecure)
                await self.process.error(text)
        if flaws and flaws[-1] is not None and not insecure:
            raise CurlFailure(60, refusal_with_help(flaws[-1], url.host))
        if result.connected or result.outcome is Outcome.CONNECTED:
            await self._tell_request(request)
        if result.outcome is not Outcome.CONNECTED or result.response is None:
            raise self._failure(url, result, elapsed)
        if self.verbose:
            await self.process.error("".join(f"< {line}\n" for line in _head_text(result.response).split("\r\n")[:-1]))
        return result.response

    def _resolved(self, url: Url) -> str:
        for entry in self.options.all("resolve"):
            parts = entry.split(":")
            if len(parts) >= 3 and parts[0] == url.host and parts[1] == str(url.port):
                return ":".join(parts[2:])
        return url.host

    async def _tell_request(self, request: HttpRequest) -> None:
        if not self.verbose:
            return
        lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{k}: {v}" for k, v in request.headers.items()), ""]
        await self.process.error("".join(f"> {line}\n" for line in lines))

    def _authorities(self) -> bytes:
        """The trusted authorities: those of --cacert; none without it."""
        bundle_path = self.options.value("cacert")
        if not bundle_path:
            return b""
        if not self.process.files.is_file(bundle_path):
            raise CurlFailure(77, f"error setting certificate file: {bundle_path}")
        return self.process.files.read_bytes(bundle_path)

    def _failure(self, url: Url, result: HttpResult, elapsed: int) -> CurlFailure:
        place = f"{url.host} port {url.port}"
        match result.outcome:
            case Outcome.NXDOMAIN | Outcome.DNS_FAILURE:
                return CurlFailure(6, f"Could not resolve host: {url.host}")
            case Outcome.TIMEOUT:
                if result.connected:
                    return CurlFailure(28, f"Operation timed out after {elapsed} milliseconds with 0 bytes received")
                if elapsed >= 127_000:
                    return CurlFailure(
                        28, f"Failed to connect to {place} after {elapsed} ms: Couldn't connect to server"
                    )
                return CurlFailure(28, f"Connection timed out after {elapsed} milliseconds")
            case Outcome.RESET:
                if result.connected:
                    return CurlFailure(56, "Recv failure: Connection reset by peer")
                return CurlFailure(7, f"Failed to connect to {place} after {elapsed} ms: Couldn't connect to server")
            case Outcome.EMPTY:
                return CurlFailure(52, "Empty reply from server")
            case Outcome.PROTOCOL_ERROR:
                return CurlFailure(1, "Received HTTP/0.9 when not allowed")
            case Outcome.TLS_ERROR:
                return CurlFailure(35, "OpenSSL/3.0.13: error:0A00010B:SSL routines::wrong version number")
        return CurlFailure(7, f"Failed to connect to {place} after {elapsed} ms: Couldn't connect to server")

    async def _deliver(self, url: Url, response: HttpResponse) -> int:
        options = self.options
        if "f" in options and response.status >= 400:
            raise CurlFailure(22, f"The requested URL returned error: {response.status}")
        self.downloaded = len(response.body)
        data = response.body
        if "i" in options or "I" in options:
            data = _head_text(response).encode() + (b"" if "I" in options else data)
        await self._meter_end(len(response.body))
        if self.verbose:
            await self.process.error(f"* Connection #0 to host {url.host} left intact\n")
        if "O" in options and not self.output:
            self.output = posixpath.basename(url.target.partition("?")[0])
            if not self.output:
                raise CurlFailure(23, "Remote file name has no length")
        await self._emit(data)
        if "fail-with-body" in options and response.status >= 400:
            raise CurlFailure(22, f"The requested URL returned error: {response.status}")
        return 0

    async def _emit(self, data: bytes) -> None:
        if self.output and self.output != "-":
            try:
                file = self.process.open(self.output, "w")
                await file.write(data)
                file.release()
            except OSError:
                raise CurlFailure(23, "Failure writing output to destination") from None
        elif data:
            await self.process.write(data)

    @property
    def _shows_meter(self) -> bool:
        if {"s", "no-progress-meter"} & self.options.flags:
            return False
        to_terminal = 1 in self.process.fds and self.process.fd(1).is_tty
        return bool(self.output and self.output != "-") or "O" in self.options or not to_terminal

    async def _meter_head(self) -> None:
        if self._shows_meter:
            await self.process.error(
                "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
                "                                 Dload  Upload   Total   Spent    Left  Speed\n"
                "\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
            )

    async def _meter_end(self, size: int) -> None:
        if self._shows_meter:
            seconds = max(0.001, self.process.clock.now - self.started)
            rate = int(size / seconds)
            await self.process.error(
                f"\r100 {size:>5}  100 {size:>5}    0     0  {rate:>5}      0 --:--:-- --:--:-- --:--:-- {rate:>5}\n"
            )

    def _written_out(self, code: int) -> str:
        result = self.result
        response = None if result is None else result.response
        answered = response is not None and result is not None and result.outcome is Outcome.CONNECTED
        total = self.process.clock.now - self.started
        connect = 0.0 if result is None else result.connect_seconds
        values = {
            "http_code": f"{response.status:03d}" if answered and response is not None else "000",
            "time_total": f"{total:.6f}",
            "time_connect": f"{connect:.6f}",
            "time_namelookup": f"{connect / 2:.6f}",
            "time_starttransfer": f"{total:.6f}",
            "time_appconnect": "0.000000",
            "size_download": str(self.downloaded),
            "remote_ip": "" if result is None else result.address,
            "remote_port": str(self.url.port) if self.url is not None else "0",
            "num_redirects": str(self.redirects),
            "content_type": response.header("Content-Type") if response is not None else "",
            "url_effective": self.target,
            "url": self.target,
            "exitcode": str(code),
            "errormsg": "",
            "method": "GET",
            "http_version": "1.1",
            "scheme": self.url.scheme if self.url is not None else "",
            "certs": "" if result is None or result.identity is None else result.identity.chain.decode("ascii"),
        }
        values["response_code"] = values["http_code"]
        text = re.sub(r"%\{(\w+)\}", lambda found: values.get(found.group(1), ""), self.options.value("w"))
        return text.replace("\\n", "\n").replace("\\t", "\t").replace("%%", "%")


def _head_text(response: HttpResponse) -> str:
    headers = dict(response.headers)
    if not response.header("Content-Length"):
        headers["Content-Length"] = str(len(response.body))
    lines = [f"HTTP/1.1 {response.status} {response.phrase}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines)
