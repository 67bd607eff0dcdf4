"""The discovery service: determines for each new PD member whether it creates the cluster or joins it.

While there is no cluster, requests of members are recorded and rejected until all members of the TidbCluster have sent
one; the last one creates the cluster. From then on the response is the list of members to join.
"""

from __future__ import annotations

import base64
import binascii

from srearena.cluster.program_models import (
    HttpRequest,
    HttpResponse,
    Process,
    go_bind_error,
    stop_signal,
    until_stopped,
)
from srearena.cluster.program_models.kubernetes import ApiFailure, ApiPath, ClusterApi, dig
from srearena.service.apps.fleetcast.programs.tidb.http_client import RequestFailed, request_json
from srearena.service.apps.fleetcast.programs.tidb.loglines import klog
from srearena.service.apps.fleetcast.programs.tidb.naming import GROUP, PLURAL, VERSION

PORT, PROXY_PORT = 10261, 10262


class Refused(Exception):
    """The member has to retry later."""


class Discovery:
    def __init__(self, process: Process, api: ClusterApi) -> None:
        self._process = process
        self._api = api
        self._namespace = process.env.get("MY_POD_NAMESPACE") or api.namespace
        self._cluster = process.env.get("TC_NAME", "")
        self._requesting_members: set[str] = set()

    async def serve(self) -> int:
        process = self._process
        stop = stop_signal(process)
        try:
            listeners = [
                process.container.namespace.listen(process, port, http=self._answer) for port in (PORT, PROXY_PORT)
            ]
        except OSError as error:
            await klog(process, "F", "main.go:90", go_bind_error(PORT, error))
            return 255
        await klog(process, "I", "server.go:72", f"starting TiDB Discovery server, listening on 0.0.0.0:{PORT}")
        await until_stopped(process, stop, listeners, grace=1.0)
        return 0

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/new/"):
            return HttpResponse.text("404: Page Not Found", 404)
        try:
            peer = base64.b64decode(request.path.removeprefix("/new/"), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return HttpResponse.text("failed to decode advertise-peer-url", 500)
        try:
            return HttpResponse.text(await self._directions(peer))
        except Refused as reason:
            await klog(self._process, "E", "server.go:96", f"failed to discover: {peer}, {reason}")
            return HttpResponse.text(str(reason), 500)

    async def _directions(self, peer: str) -> str:
        name = peer.partition(".")[0]
        try:
            cluster = await self._api.call("GET", ApiPath(GROUP, VERSION, PLURAL, self._namespace, self._cluster))
        except ApiFailure as failure:
            raise Refused(failure.message) from None
        members = await self._members()
        if members:
            self._requesting_members.discard(name)
            return f"--join={','.join(members)}"
        self._requesting_members.add(name)
        wanted = int(dig(cluster, "spec", "pd", "replicas", default=1))
        if len(self._requesting_members) < wanted:
            raise Refused(f"there are not enough peers: {len(self._requesting_members)} of {wanted} have asked")
        self._requesting_members.discard(name)
        return f"--initial-cluster={name}=http://{peer}"

    async def _members(self) -> list[str]:
        url = f"http://{self._cluster}-pd.{self._namespace}:2379/pd/api/v1/members"
        try:
            document = await request_json(self._process, url, timeout=2.0)
        except RequestFailed:
            return []
        return sorted(member["client_urls"][0] for member in document["members"])
