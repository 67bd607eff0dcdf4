"""agnhost nettest: pods of one Service that find each other through the API and exchange messages."""

from __future__ import annotations

import json
from collections import Counter

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.programs.agnhost.commands import command, hostname, log_time, serve
from srearena.cluster.embedded.programs.serving import Flags
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiFailure, ApiPath, ClusterApi, NotInCluster

_ROUNDS = 15
_PAUSE = 5.0
_PATIENCE = 300.0
_LOG_LINES = 500


@command("nettest")
async def nettest(process: Process, flags: Flags) -> int:
    peers = flags.get("peers", "8")
    state = _Peer(process, flags.get("namespace", "default"), flags.get("service", "nettest"), int(peers))
    try:
        api = ClusterApi(process, "agnhost")
    except NotInCluster as problem:
        await process.error(f"{log_time(process)} Unable to create config; error: {problem}\n")
        return 1
    process.spawn_thread(state.contact_others(api))
    return await serve(process, {flags.port("port", 8080): state.answer})


class _Peer:
    """What one pod has sent and received."""

    def __init__(self, process: Process, namespace: str, service: str, peers: int) -> None:
        self._process = process
        self._namespace = namespace
        self._service = service
        self._peers = peers
        self._sent: Counter[str] = Counter()
        self._received: Counter[str] = Counter()
        self._errors: list[str] = []
        self._log: list[str] = []
        self._contacting = True

    async def answer(self, request: HttpRequest) -> HttpResponse:
        match request.path:
            case "/quit":
                self._process.end(0)
                return HttpResponse(200)
            case "/read":
                return HttpResponse.text(json.dumps(self._document(), indent="\t"))
            case "/write":
                self._receive(request.body)
                return HttpResponse.text(json.dumps({"Hostname": hostname(self._process)}) + "\n")
            case "/status":
                done = min(len(self._sent), len(self._received)) >= self._peers
                return HttpResponse.text("pass" if done else "running" if self._contacting else "fail")
        return HttpResponse.text("404 page not found\n", 404)

    def _document(self) -> Obj:
        return {
            "Hostname": hostname(self._process),
            "Sent": dict(self._sent) or None,
            "Received": dict(self._received) or None,
            "Errors": self._errors or None,
            "Log": self._log or None,
            "StillContactingPeers": self._contacting,
        }

    def _receive(self, body: bytes) -> None:
        try:
            message = json.loads(body)
            source = str(message.get("Source") or "")
        except (ValueError, AttributeError) as problem:
            self._errors.append(str(problem))
            source = ""
        if source:
            self._received[source] += 1
        else:
            self._errors.append(f"{hostname(self._process)}: Got request with no source")

    def _note(self, text: str) -> None:
        self._log = [*self._log, text][-_LOG_LINES:]

    async def contact_others(self, api: ClusterApi) -> None:
        process = self._process
        deadline = process.clock.now + _PATIENCE
        while process.clock.now < deadline:
            found = await self._endpoints(api)
            if len(found) >= self._peers:
                break
            where = f"{self._namespace}/{self._service}"
            self._note(
                f"{where} has {len(found)} endpoints ({sorted(found)}), which is less than {self._peers} as expected. "
                "Waiting for all endpoints to come up."
            )
            await process.sleep(_PAUSE)
        for _ in range(_ROUNDS):
            for address in sorted(await self._endpoints(api)):
                self._note(f"Attempting to contact http://{address}")
                await self._contact(address)
            await process.sleep(_PAUSE)
        self._contacting = False

    async def _endpoints(self, api: ClusterApi) -> set[str]:
        try:
            found = await api.call("GET", ApiPath("", "v1", "endpoints", self._namespace, self._service))
        except ApiFailure as failure:
            self._note(f"Unable to read the endpoints for {self._namespace}/{self._service}: {failure}.")
            return set()
        return {
            f"{address['ip']}:{port['port']}"
            for subset in found.get("subsets") or ()
            for address in subset.get("addresses") or ()
            for port in subset.get("ports") or ()
        }

    async def _contact(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        body = json.dumps({"Dest": f"http://{address}", "Source": hostname(self._process)}).encode()
        request = HttpRequest("POST", "/write", {"Host": address, "Content-Type": "application/json"}, body)
        result = await self._process.container.network.http(host, int(port), request, timeout=30.0)
        if result.response is None:
            self._note(f'Warning: unable to contact the endpoint "http://{address}": {result.outcome}')
            return
        try:
            self._sent[json.loads(result.response.body)["Hostname"]] += 1
        except (ValueError, KeyError, TypeError) as problem:
            self._note(f"Warning: unable to unmarshal response from 'http://{address}': '{problem}'")
