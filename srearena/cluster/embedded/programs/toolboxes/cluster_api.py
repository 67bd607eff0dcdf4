"""How a program in a pod speaks to the Kubernetes API: over the pod's network, with its service account's token.

This is the in-cluster configuration of every client library: the address from the environment, the token from the
mounted volume, read anew for each request because the kubelet renews it. Nothing here knows the cluster from inside;
what a network policy, a missing token or RBAC forbids, it forbids to this client too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import orjson

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
DIAL_SECONDS = 30.0
_REQUEST_SECONDS = 34.0


class NotInCluster(Exception):
    """The pod has no token or no address of the API; the text is client-go's."""


class ApiFailure(Exception):
    """The API refused, or could not be reached (`status` 0)."""

    def __init__(self, status: int, reason: str, message: str, details: Obj | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        return self.status == 409


@dataclass(slots=True)
class ApiPath:
    """Where a resource is served: `ApiPath("apps", "v1", "statefulsets", "shop", "web")`."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        where = f"/namespaces/{self.namespace}" if self.namespace else ""
        parts = "".join(f"/{part}" for part in (self.resource, self.name, self.subresource) if part)
        return f"{root}{where}{parts}{f'?{urlencode(self.query)}' if self.query else ''}"


class ClusterApi:
    def __init__(self, process: Process, user_agent: str) -> None:
        self._process = process
        self._user_agent = user_agent
        self.host = process.env.get("KUBERNETES_SERVICE_HOST", "")
        port = process.env.get("KUBERNETES_SERVICE_PORT", "")
        if not self.host or not port.isdigit():
            raise NotInCluster(
                "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT "
                "must be defined"
            )
        self.port = int(port)
        self._token()

    @property
    def namespace(self) -> str:
        """The namespace of the pod, as its service account volume has it."""
        try:
            return self._process.files.read_text(f"{ACCOUNT}/namespace").strip() or "default"
        except OSError:
            return "default"

    def _token(self) -> str:
        try:
            return self._process.files.read_text(f"{ACCOUNT}/token").strip()
        except OSError as error:
            raise NotInCluster(f"open {ACCOUNT}/token: {str(error.strerror).lower()}") from None

    async def text(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = _REQUEST_SECONDS,
    ) -> bytes:
        """Make a request; the body of a good answer. ApiFailure for any other."""
        headers = {
            "Host": f"{self.host}:{self.port}",
            "Authorization": f"Bearer {self._token()}",
            "User-Agent": self._user_agent,
            "Accept": accept,
        }
        data = b""
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else orjson.dumps(body)
        request = HttpRequest(method, target, headers, data, tls=True)
        result = await self._process.container.network.http(
            self.host, self.port, request, connect_timeout=DIAL_SECONDS, timeout=timeout
        )
        response = result.response
        if response is None:
            raise ApiFailure(0, "Unreachable", self._unreachable(method, target, result.outcome))
        if response.status >= 400:
            raise _refusal(response.status, response.body)
        return response.body

    def _unreachable(self, method: str, target: str, outcome: Outcome) -> str:
        address = f"{self.host}:{self.port}"
        cause = {
            Outcome.REFUSED: f"dial tcp {address}: connect: connection refused",
            Outcome.TIMEOUT: f"dial tcp {address}: i/o timeout",
            Outcome.NO_ROUTE: f"dial tcp {address}: connect: no route to host",
            Outcome.RESET: f"read tcp {address}: read: connection reset by peer",
        }.get(outcome, str(outcome))
        return f'{method.capitalize()} "https://{address}{target}": {cause}'

    async def call(
        self, method: str, path: ApiPath | str, body: Any = None, *, content_type: str = JSON, accept: str = JSON
    ) -> Obj:
        target = path if isinstance(path, str) else path.target
        answer = await self.text(method, target, body, content_type=content_type, accept=accept)
        return _decoded(answer) if answer else {}

    async def find(self, path: ApiPath) -> Obj | None:
        """An object, or None where there is none."""
        try:
            return await self.call("GET", path)
        except ApiFailure as failure:
            if failure.not_found:
                return None
            raise

    async def watch(self, path: ApiPath, revision: str, seconds: int) -> tuple[list[Obj], str]:
        """Wait for changes after a revision; the events, and the revision to go on from (empty: start anew)."""
        path.query |= {"watch": "true", "resourceVersion": revision, "timeoutSeconds": str(seconds)}
        lines = (await self.text("GET", path.target, timeout=seconds + DIAL_SECONDS)).splitlines()
        events = [_decoded(line) for line in lines]
        if any(event["type"] == "ERROR" for event in events):
            return [], ""
        revisions = [event["object"]["metadata"]["resourceVersion"] for event in events]
        return events, revisions[-1] if revisions else revision


def _decoded(body: bytes) -> Obj:
    """The object in a response. Something else than the API server may answer at its address."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        first = body[:1].decode(errors="replace")
        raise ApiFailure(0, "", f"invalid character {first!r} looking for beginning of value")
    return parsed


def _refusal(status: int, body: bytes) -> ApiFailure:
    try:
        status_document: Mapping[str, Any] = orjson.loads(body)
        return ApiFailure(status, status_document["reason"], status_document["message"], status_document.get("details"))
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace").strip()
        return ApiFailure(status, "", text or f"the server responded with status {status}")
