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

import httpx
import orjson

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
        host = urlsplit(self.access.server).hostname or ""
        self._client = httpx.Client(
            base_url=self.access.server,
            verify=self.access.tls if self.access.tls is not None else True,
            headers={**self.access.headers, "user-agent": USER_AGENT, "accept": "application/json"},
            timeout=timeout,
            # A proxy that the environment names is for the world outside, never for a cluster on this machine.
            trust_env=not is_loopback(host),
        )
        self._extensions = {"sni_hostname": self.access.server_name} if self.access.server_name else {}

    def close(self) -> None:
        self._client.close()

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
        try:
            for attempt in range(_ATTEMPTS):
                answer = self._client.request(
                    method,
                    target(path, query),
                    content=content,
                    headers=dict(headers or {}),
                    timeout=self.timeout if timeout is None else timeout,
                    extensions=self._extensions,
                )
                pause = answer.headers.get("retry-after", "")
                if answer.status_code != 429 or not pause.isdigit() or attempt == _ATTEMPTS - 1:
                    break
                doze(min(float(pause), _LONGEST_PAUSE))
        except httpx.TimeoutException as problem:
            raise Unreachable(f"{self.access.server} did not answer {method} {path} in time") from problem
        except httpx.HTTPError as problem:
            raise Unreachable(f"{self.access.server} cannot be reached: {problem}") from problem
        return Reply(answer.status_code, answer.content, answer.headers)

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
        content = None if body is None else orjson.dumps(body)
        headers = {"accept": accept, **({"content-type": content_type} if content is not None else {})}
        reply = self.send(method, path, query=query, content=content, headers=headers)
        return decoded(reply)


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
