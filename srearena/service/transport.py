"""HTTP to one API server over one kept connection, and what its error answers mean.

Everything looks as if an operator's kubectl had sent it: nothing in a cluster's audit log or managed fields tells the
harness from a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
import urllib3

from srearena.service.errors import Unreachable, refusal
from srearena.service.kubeconfig import Access, read_kubeconfig
from srearena.service.waiting import doze

USER_AGENT = "kubectl/v1.34.1 (linux/amd64) kubernetes/93248f9"
_ATTEMPTS = 5
_LONGEST_PAUSE = 10.0
Query = Mapping[str, str | int | bool | list[str] | None]


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, whatever its status."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    seconds: float = 0.0
    """How long it took on the cluster's time, where that is known."""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 400


class Transport:
    def __init__(self, kubeconfig: Path, context: str | None = None, timeout: float = 60.0) -> None:
        self.access: Access = read_kubeconfig(kubeconfig, context)
        self.timeout = timeout
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
    ) -> Reply:
        """One request; any answer is a Reply, and Unreachable where there is none.

        A server that is too busy says when to come again (429), and has done nothing yet: then the request is repeated.
        """
        url = f"{self.access.server}{target(path, query)}"
        try:
            for attempt in range(_ATTEMPTS):
                answer = self._pool.request(
                    method,
                    url,
                    body=content,
                    headers={**self._headers, **(headers or {})},
                    timeout=self.timeout if timeout is None else timeout,
                    redirect=False,
                    retries=False,
                )
                pause = answer.headers.get("retry-after", "")
                if answer.status != 429 or not pause.isdigit() or attempt == _ATTEMPTS - 1:
                    break
                doze(min(float(pause), _LONGEST_PAUSE))
        except urllib3.exceptions.NewConnectionError as problem:  # which counts as a timeout, too
            raise Unreachable(f"{self.access.server} cannot be reached: {problem}") from problem
        except urllib3.exceptions.TimeoutError as problem:
            raise Unreachable(f"{self.access.server} did not answer {method} {path} in time") from problem
        except urllib3.exceptions.HTTPError as problem:
            raise Unreachable(f"{self.access.server} cannot be reached: {problem}") from problem
        return Reply(answer.status, answer.data, answer.headers)

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
        """One request for an object; ApiRefused where the server answers with an error."""
        return decoded(self.ask(method, path, query=query, body=body, content_type=content_type, accept=accept))

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Reply:
        """One request in JSON, and whatever is answered."""
        content = None if body is None else orjson.dumps(body)
        headers = {"accept": accept, **({"content-type": content_type} if content is not None else {})}
        return self.send(method, path, query=query, content=content, headers=headers)


def _pool(access: Access) -> urllib3.PoolManager:
    """Connections to the server; through a proxy that the environment names, unless it is on this machine."""
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
    """Whether a server is reached without a proxy that the environment names."""
    return _proxy(server) is None


def decoded(reply: Reply) -> dict[str, Any]:
    """The object in an answer; ApiRefused where it is an error."""
    try:
        document = orjson.loads(reply.body)
    except ValueError:
        document = None
    if reply.status >= 400 or not isinstance(document, dict):
        raise refusal(reply.status, document, reply.text)
    return document


def target(path: str, query: Query | None) -> str:
    """A path with its query; empty values are left out."""
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
