"""Extension API servers: group versions that a server in the cluster serves behind this one (API aggregation).

An APIService names the Service of such a server. Requests are passed on with the user in headers, which the server
trusts because the connection presents the certificate of the front proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import orjson

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.reachability import NetworkFacade
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.identity import AUTHENTICATED, SUPERUSERS, User
from srearena.cluster.embedded.registry.resources import AggregatedVersion, Resource, Subresource
from srearena.cluster.embedded.service_calls import NoSuchService, Server, bundle_of, call, server_of
from srearena.cluster.embedded.store import Store

FRONT_PROXY = "front-proxy-client"
_DISCOVERY_SECONDS = 5.0
_REQUEST_SECONDS = 60.0
_AGGREGATOR = User("system:kube-aggregator", (SUPERUSERS, AUTHENTICATED))
_JSON = {"Accept": "application/json"}


class ExtensionServers:
    def __init__(self, clock: Clock, store: Store, network: NetworkFacade, authority: bytes) -> None:
        self._clock = clock
        self._store = store
        self._network = network
        self._certificate = TlsIdentity((), "kubernetes", authority, subject=FRONT_PROXY)

    async def request(self, spec: Obj, request: HttpRequest, user: User, timeout: float) -> HttpResponse | str:
        """Pass a request on to the server of an APIService; the response, or why there is none."""
        try:
            server = server_of(self._store, spec["service"])
        except NoSuchService as problem:
            return str(problem)
        return await self._call(spec, server, request, user, timeout)

    async def discover(self, spec: Obj) -> tuple[AggregatedVersion | None, str]:
        """What the server of an APIService serves; or None and why that is not known."""
        try:
            server = server_of(self._store, spec["service"])
        except NoSuchService as problem:
            return None, str(problem)
        path = f"/apis/{spec['group']}/{spec['version']}"
        url = f"https://{server.address}:{server.port}{path}"
        response = await self._call(spec, server, HttpRequest("GET", path, dict(_JSON)), _AGGREGATOR)
        failing = f"failing or missing response from {url}: "
        if isinstance(response, str):
            return None, f'{failing}Get "{url}": {response}'
        if not 200 <= response.status < 300:
            return None, f"{failing}bad status from {url}: {response.status}"
        described = await self._call(spec, server, HttpRequest("GET", f"/openapi/v3{path}", dict(_JSON)), _AGGREGATOR)
        known = isinstance(described, HttpResponse) and described.status == 200
        open_api = described.body if isinstance(described, HttpResponse) and known else b""
        rows = _rows(spec["group"], spec["version"], response.body)
        return AggregatedVersion(rows, response.body, open_api), ""

    async def _call(
        self, spec: Obj, server: Server, request: HttpRequest, user: User, timeout: float = _DISCOVERY_SECONDS
    ) -> HttpResponse | str:
        request.headers |= {"Host": server.host, **_user_headers(user)}
        request.client = self._certificate
        bundle = None if spec.get("insecureSkipTLSVerify") else bundle_of(spec.get("caBundle"))
        return await call(self._network, server, request, bundle, self._clock.now, timeout)


def _user_headers(user: User) -> Mapping[str, str]:
    """The authenticated user, as the front proxy passes it on."""
    headers = {"X-Remote-User": user.name, "X-Remote-Group": ",".join(map(quote, user.groups))}
    if user.uid:
        headers["X-Remote-Uid"] = user.uid
    for key, values in user.extra.items():
        headers[f"X-Remote-Extra-{quote(key, safe='')}"] = ",".join(map(quote, values))
    return headers


def _rows(group: str, version: str, body: bytes) -> tuple[Resource, ...]:
    """The resources of an APIResourceList. The server may be anything: what is malformed is left out."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ()
    listed = document.get("resources") if isinstance(document, dict) else None
    entries = [entry for entry in listed or () if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    rows = []
    for entry in entries:
        name = entry["name"]
        if "/" in name:
            continue
        below = [other for other in entries if other["name"].startswith(f"{name}/")]
        rows.append(
            Resource(
                group,
                version,
                name,
                str(entry.get("kind", "")),
                namespaced=bool(entry.get("namespaced")),
                singular=str(entry.get("singularName", "")),
                short_names=_words(entry, "shortNames"),
                categories=_words(entry, "categories"),
                verbs=_words(entry, "verbs"),
                subresources=tuple(
                    Subresource(
                        other["name"].partition("/")[2], _words(other, "verbs"), kind=str(other.get("kind", ""))
                    )
                    for other in below
                ),
            )
        )
    return tuple(rows)


def _words(entry: Obj, key: str) -> tuple[str, ...]:
    found = entry.get(key)
    return tuple(word for word in found if isinstance(word, str)) if isinstance(found, list) else ()
