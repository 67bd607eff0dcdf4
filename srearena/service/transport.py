"""HTTP requests to one API server over a pooled connection, and the decoding of its errors.

Requests carry kubectl's user agent, so that the audit log and managed fields of a cluster do not distinguish the
harness from an operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
import urllib3

from srearena.cluster.base import ClusterUnavailable, DirectApi
from srearena.service.errors import Unreachable, api_error
from srearena.service.kubeconfig import Access, read_kubeconfig
from srearena.service.waiting import sleep

USER_AGENT = "kubectl/v1.34.1 (linux/amd64) kubernetes/93248f9"
_ATTEMPTS = 5
_LONGEST_PAUSE = 10.0
_LARGEST_ANSWER = 8 << 20
"""Bytes that a program under test may answer: several times what any page of the applications has."""
_CHUNK = 1 << 16
Query = Mapping[str, str | int | bool | list[str] | None]


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response of any status."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    seconds: float = 0.0
    """The response time in the cluster's time, where it was measured."""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 400


class Transport:
    """A connection to the API server that a kubeconfig names; where `direct` leads to the same one, it is used."""

    def __init__(
        self,
        kubeconfig: Path,
        context: str | None = None,
        timeout: float = 60.0,
        direct: DirectApi | None = None,
    ) -> None:
        self.access: Access = read_kubeconfig(kubeconfig, context, has_tls=direct is None)
        self.timeout = timeout
        self.direct = direct
        self._pool = _pool(self.access)
        self._headers = {**self.access.headers, "user-agent": USER_AGENT, "accept": "application/json"}

    def close(self) -> None:
        self._pool.clear()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        proxied: bool = False,
    ) -> Reply:
        """Send one request; any response is a Reply, and Unreachable where there is none.

        A response 429 with Retry-After means that the server has not processed the request: it is sent again. Where a
        request is `proxied`, the response is that of a program under test, which may want to stop its caller: it is not
        asked again, and has to end its answer in time and within a size.
        """
        target = request_target(path, query)
        sent = {**self._headers, **(headers or {})}
        patience = self.timeout if timeout is None else timeout
        if proxied:
            return self._send_once(method, path, target, sent, content, patience, bounded=True)
        for attempt in range(_ATTEMPTS):
            reply = self._send_once(method, path, target, sent, content, patience)
            pause = reply.headers.get("retry-after", "")
            if reply.status != 429 or not pause.isdigit() or attempt == _ATTEMPTS - 1:
                break
            sleep(min(float(pause), _LONGEST_PAUSE))
        return reply

    def _send_once(
        self,
        method: str,
        path: str,
        target: str,
        headers: dict[str, str],
        content: bytes | None,
        timeout: float,
        *,
        bounded: bool = False,
    ) -> Reply:
        began = monotonic()
        try:
            if self.direct is not None:
                length = {} if content is None else {"content-length": str(len(content))}
                sent = {**_sent_by_clients(self.access), **length, **headers}
                answer = self.direct.request(method, target, sent, content, timeout)
                return Reply(answer.status, answer.body, answer.headers)
            response = self._pool.request(
                method,
                f"{self.access.server}{target}",
                body=content,
                headers=headers,
                timeout=timeout,
                redirect=False,
                retries=False,
                preload_content=not bounded,
            )
            data = _read(response, began + timeout) if bounded else response.data
        except TimeoutError as problem:
            raise Unreachable(f"{self.access.server} did not answer {method} {path} in time") from problem
        except ClusterUnavailable as problem:
            raise Unreachable(f"{self.access.server} cannot be reached: {problem}") from problem
        except urllib3.exceptions.NewConnectionError as problem:  # a subclass of TimeoutError
            raise Unreachable(f"{self.access.server} cannot be reached: {problem}") from problem
        except urllib3.exceptions.TimeoutError as problem:
            raise Unreachable(f"{self.access.server} did not answer {method} {path} in time") from problem
        except urllib3.exceptions.HTTPError as problem:
            raise Unreachable(f"{self.access.server} cannot be reached: {problem}") from problem
        return Reply(response.status, data, response.headers)

    def json(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        """Send one request and decode the object in its response; ApiRefused where it is an error."""
        return decode(self.send_json(method, path, query=query, body=body, content_type=content_type, accept=accept))

    def send_json(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Reply:
        """Send one request with a JSON body."""
        content = None if body is None else orjson.dumps(body)
        headers = {"accept": accept, **({"content-type": content_type} if content is not None else {})}
        return self.send(method, path, query=query, content=content, headers=headers)


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """The body of a response; Unreachable where it has not ended by then, or is longer than any should be."""
    data = bytearray()
    try:
        while chunk := response.read1(_CHUNK):
            data += chunk
            if len(data) > _LARGEST_ANSWER:
                raise Unreachable(f"an answer is longer than {_LARGEST_ANSWER >> 20} MiB")
            if monotonic() > deadline:
                raise Unreachable("an answer did not end in time")
    except BaseException:
        response.close()  # the rest of it is not read
        raise
    response.release_conn()
    return bytes(data)


def _sent_by_clients(access: Access) -> dict[str, str]:
    """The headers that an HTTP client adds: programs behind the API's proxy can tell that they are missing."""
    return {"host": urlsplit(access.server).netloc, "accept-encoding": "identity"}


def _pool(access: Access) -> urllib3.PoolManager:
    """Create the connection pool; uses the proxy of the environment unless the server is on this machine."""
    options: dict[str, Any] = {"ssl_context": access.tls} if access.tls is not None else {}
    if access.server_name:
        options |= {"server_hostname": access.server_name, "assert_hostname": access.server_name}
    proxy = _proxy(access.server)
    return urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)


def _proxy(server: str) -> str | None:
    address = urlsplit(server)
    host = address.hostname or ""
    return None if is_loopback(host) or proxy_bypass(host) else getproxies().get(address.scheme)


def is_direct(server: str) -> bool:
    """Whether a server is reached without a proxy."""
    return _proxy(server) is None


def decode(reply: Reply) -> dict[str, Any]:
    """Decode the object in a response; ApiRefused where it is an error."""
    try:
        document = orjson.loads(reply.body)
    except ValueError:
        document = None
    if reply.status >= 400 or not isinstance(document, dict):
        raise api_error(reply.status, document, reply.text)
    return document


def request_target(path: str, query: Query | None) -> str:
    """The path with its query string; empty values are left out."""
    pairs: list[tuple[str, str]] = []
    for key, value in (query or {}).items():
        if value is None or value == "" or value is False:
            continue
        if isinstance(value, list):
            pairs += [(key, item) for item in value]
        else:
            pairs.append((key, "true" if value is True else str(value)))
    escaped = quote(path, safe="/:?=&%~,;+@!$'()*")
    if not pairs:
        return escaped
    return f"{escaped}{'&' if '?' in escaped else '?'}{urlencode(pairs)}"


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
