"""wget, busybox's and GNU's."""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import urljoin

from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.reachability import HttpResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.idling import duration
from srearena.cluster.embedded.userland.tools.options import Options, UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.urls import REASONS, Url, parse_url
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox

MAX_REDIRECTS = 20
_UNKNOWN = "doesn't have a known issuer"
_LONG = {
    "output-document=": "O",
    "quiet": "q",
    "timeout=": "T",
    "tries=": "t",
    "spider": "spider",
    "header=": "header",
    "post-data=": "post-data",
    "post-file=": "post-file",
    "no-check-certificate": "insecure",
    "server-response": "S",
    "user-agent=": "U",
    "no-verbose": "nv",
    "continue": "c",
    "directory-prefix=": "P",
    "method=": "method",
    "body-data=": "post-data",
    "user=": "user",
    "password=": "password",
    "connect-timeout=": "connect-timeout",
    "read-timeout=": "T",
    "dns-timeout=": "dns-timeout",
    "no-proxy": "no-proxy",
    "no-cache": "no-cache",
    "max-redirect=": "max-redirect",
    "ca-certificate=": "ca",
}


@tool("wget")
async def wget(process: Process, args: list[str]) -> int:
    words = ["--no-verbose" if arg == "-nv" else arg for arg in args]
    options = parse(words, "qcSd46", "OTtUPYo", long=_LONG)
    if not options.operands:
        raise UsageError("missing URL")
    status = 0
    for text in options.operands:
        client = _Busybox(process, options) if speaks_busybox(process) else _Gnu(process, options)
        status = max(status, await client.fetch(text))
    return status


class _Wget:
    def __init__(self, process: Process, options: Options) -> None:
        self.process = process
        self.options = options
        self.quiet = "q" in options

    async def say(self, text: str) -> None:
        if not self.quiet:
            await self.process.error(text)

    async def fetch(self, text: str) -> int:
        url = parse_url(text)
        if url is None or url.scheme not in ("http", "https"):
            return await self.bad_url(text)
        for _ in range(MAX_REDIRECTS):
            result = await self._request(url)
            response = result.response
            if result.outcome is not Outcome.CONNECTED or response is None:
                return await self.failed(url, result)
            if response.status in (301, 302, 303, 307, 308) and response.header("Location"):
                follow = parse_url(urljoin(f"{url.scheme}://{url.authority}{url.target}", response.header("Location")))
                if follow is None:
                    break
                await self.redirected(url, result, response.header("Location"))
                url = follow
                continue
            return await self.answered(url, result)
        await self.process.error("wget: too many redirections\n")
        return 1

    async def _request(self, url: Url) -> HttpResult:
        options = self.options
        headers = {"Host": url.authority, "User-Agent": options.value("U", self.agent), "Accept": "*/*"}
        headers["Connection"] = "close"
        for line in options.all("header"):
            name, _, value = line.partition(":")
            headers[name.strip()] = value.strip()
        userinfo = url.userinfo or (f"{options.value('user')}:{options.value('password')}" if "user" in options else "")
        if userinfo:
            headers["Authorization"] = "Basic " + base64.b64encode(userinfo.encode()).decode()
        body = options.value("post-data").encode()
        if "post-file" in options:
            body = self.process.files.read_bytes(options.value("post-file"))
        method = options.value("method") or ("POST" if body or "post-data" in options else "GET")
        if "spider" in options and method == "GET":
            method = "HEAD"
        if body:
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        await self.connecting(url)
        request = HttpRequest(
            method, url.target, headers, body, tls=url.tls, server_name=url.host, accepts=self._accepting(url)
        )
        timeout = duration(options.value("T", "900")) or 900.0
        return await self.process.container.network.http(
            url.host, url.port, request, connect_timeout=timeout, timeout=timeout
        )

    def _accepting(self, url: Url) -> Callable[[TlsIdentity], bool]:
        """BusyBox wget verifies certificates only with a CA file."""
        options, files = self.options, self.process.files
        has_bundle = "ca" in options and files.is_file(options.value("ca"))

        def accepts(identity: TlsIdentity) -> bool:
            if "insecure" in options or (speaks_busybox(self.process) and not has_bundle):
                return True
            bundle = files.read_bytes(options.value("ca")) if has_bundle else b""
            return identity.flaw(url.host, self.process.date, bundle) is None

        return accepts

    def _target(self, url: Url) -> str:
        if "O" in self.options:
            return self.options.value("O")
        name = posixpath.basename(url.target.partition("?")[0]) or "index.html"
        return posixpath.join(self.options.value("P"), name) if "P" in self.options else name

    async def _save(self, target: str, body: bytes) -> int:
        if target == "-":
            await self.process.write(body)
            return 0
        try:
            if target == "/dev/null":
                return 0
            if "O" not in self.options and self.process.files.exists(target) and speaks_busybox(self.process):
                await self.process.error(f"wget: can't open '{target}': File exists\n")
                return 1
            self.process.files.write_bytes(target, body)
        except OSError as error:
            text = f"wget: can't open '{target}': " if speaks_busybox(self.process) else f"{target}: "
            await self.process.error(f"{text}{error.strerror}\n")
            return 1 if speaks_busybox(self.process) else 3
        return 0

    agent = "Wget"

    async def bad_url(self, text: str) -> int:
        raise UsageError(f"not an http or ftp url: {text}")

    async def connecting(self, url: Url) -> None:
        """Something is said before the request, perhaps."""

    async def redirected(self, url: Url, result: HttpResult, location: str) -> None:
        """Something is said about the redirection, perhaps."""

    async def failed(self, url: Url, result: HttpResult) -> int:
        return 1

    async def answered(self, url: Url, result: HttpResult) -> int:
        return 0


class _Busybox(_Wget):
    async def bad_url(self, text: str) -> int:
        await self.process.error(f"wget: not an http or ftp url: {text}\n")
        return 1

    async def _connected(self, url: Url, result: HttpResult) -> None:
        if result.address:
            await self.say(f"Connecting to {url.authority} ({result.address}:{url.port})\n")

    async def redirected(self, url: Url, result: HttpResult, location: str) -> None:
        await self._connected(url, result)

    async def failed(self, url: Url, result: HttpResult) -> int:
        await self._connected(url, result)
        if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
            await self.process.error(f"wget: bad address '{url.authority}'\n")
        elif result.outcome is Outcome.TIMEOUT:
            await self.process.error("wget: download timed out\n")
        elif result.connected:
            text = (
                "error getting response"
                if result.outcome in (Outcome.EMPTY, Outcome.PROTOCOL_ERROR)
                else REASONS[result.outcome]
            )
            if result.outcome is Outcome.TLS_ERROR:
                text = "TLS error from peer (alert code 80): internal error"
            await self.process.error(f"wget: {text}\n")
        else:
            reason = {Outcome.NO_ROUTE: "Host is unreachable"}.get(result.outcome, REASONS[result.outcome])
            await self.process.error(f"wget: can't connect to remote host ({result.address}): {reason}\n")
        return 1

    async def answered(self, url: Url, result: HttpResult) -> int:
        response = result.response
        assert response is not None
        await self._connected(url, result)
        if "S" in self.options:
            await self.process.error(f"  HTTP/1.1 {response.status} {response.phrase}\n")
            await self.process.error("".join(f"  {name}: {value}\n" for name, value in response.headers.items()))
        if response.status >= 400:
            await self.process.error(f"wget: server returned error: HTTP/1.1 {response.status} {response.phrase}\n")
            return 1
        if "spider" in self.options:
            await self.say("remote file exists\n")
            return 0
        target = self._target(url)
        await self.say("writing to stdout\n" if target == "-" else f"saving to '{target}'\n")
        status = await self._save(target, response.body)
        if status == 0:
            bar = f"{target[:20]:<20} 100% |{'*' * 32}| {len(response.body):>5}  0:00:00 ETA\n"
            await self.say(bar + ("written to stdout\n" if target == "-" else f"'{target}' saved\n"))
        return status


class _Gnu(_Wget):
    agent = "Wget/1.21.3"

    async def bad_url(self, text: str) -> int:
        await self.process.error(f"{text}: Unsupported scheme.\n")
        return 1

    async def connecting(self, url: Url) -> None:
        now = datetime.fromtimestamp(self.process.date, UTC).strftime("%Y-%m-%d %H:%M:%S")
        await self.say(f"--{now}--  {url.scheme}://{url.authority}{url.target}\n")
        if not url.host.replace(".", "").isdigit():
            await self.say(f"Resolving {url.host} ({url.host})... ")

    async def _connected(self, url: Url, result: HttpResult, outcome: str) -> None:
        place = f"{url.host} ({url.host})|{result.address}|:{url.port}"
        if url.host.replace(".", "").isdigit():
            place = f"{url.host}:{url.port}"
        else:
            await self.say(f"{result.address}\n")
        await self.say(f"Connecting to {place}... {outcome}.\n")

    async def redirected(self, url: Url, result: HttpResult, location: str) -> None:
        await self._connected(url, result, "connected")
        assert result.response is not None
        await self.say(f"HTTP request sent, awaiting response... {result.response.status} {result.response.phrase}\n")
        await self.say(f"Location: {location} [following]\n")

    async def failed(self, url: Url, result: HttpResult) -> int:
        if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
            await self.say(f"failed: {REASONS[result.outcome]}.\n")
            await self.process.error(f"wget: unable to resolve host address '{url.host}'\n")
            return 4
        if result.connected:
            await self._connected(url, result, "connected")
            if result.outcome is Outcome.TLS_ERROR:
                late = result.identity is not None and result.identity.expires_at < self.process.date
                await self.process.error(
                    f"ERROR: The certificate of '{url.host}' is not trusted.\n"
                    f"ERROR: The certificate of '{url.host}' {'has expired' if late else _UNKNOWN}.\n"
                )
                return 5
            text = (
                "Read error (Connection reset by peer) in headers"
                if result.outcome is Outcome.RESET
                else "No data received"
            )
            if result.outcome is Outcome.TIMEOUT:
                text = "Read error (Connection timed out) in headers"
            await self.say(f"HTTP request sent, awaiting response... {text}.\nGiving up.\n\n")
            return 4
        reason = {Outcome.TIMEOUT: "Connection timed out", Outcome.UNREACHABLE: "Network is unreachable"}.get(
            result.outcome, REASONS[result.outcome]
        )
        await self._connected(url, result, f"failed: {reason}")
        return 4

    async def answered(self, url: Url, result: HttpResult) -> int:
        response = result.response
        assert response is not None
        await self._connected(url, result, "connected")
        now = datetime.fromtimestamp(self.process.date, UTC).strftime("%Y-%m-%d %H:%M:%S")
        await self.say(f"HTTP request sent, awaiting response... {response.status} {response.phrase}\n")
        if response.status >= 400:
            await self.say(f"{now} ERROR {response.status}: {response.phrase}.\n\n")
            return 8
        if "spider" in self.options:
            await self.say("Remote file exists.\n\n")
            return 0
        target = self._target(url)
        shown = "STDOUT" if target == "-" else target
        kind = response.header("Content-Type", "application/octet-stream").partition(";")[0]
        await self.say(f"Length: {len(response.body)} [{kind}]\nSaving to: '{shown}'\n\n")
        status = await self._save(target, response.body)
        if status == 0:
            size = len(response.body)
            saved = f"written to stdout [{size}/{size}]" if target == "-" else f"'{target}' saved [{size}/{size}]"
            await self.say(f"{now} (100 MB/s) - {saved}\n\n")
        return status
