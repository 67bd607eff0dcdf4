"""PD, the placement driver: members that agree on a leader, and the register of TiKV's stores.

Members keep who they are in their data directory, so a restarted one goes on where it was, and one that lost its
volume has to join again. Of consensus there is only what can be seen from outside: without a majority of members
nothing but `health` is answered.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from srearena.cluster.program_models import (
    PATH,
    Flags,
    HttpRequest,
    HttpResponse,
    Process,
    Program,
    go_bind_error,
    program,
    stop_signal,
)
from srearena.service.apps.fleetcast.programs.tidb.http_client import RequestFailed, json_response, request_json
from srearena.service.apps.fleetcast.programs.tidb.loglines import unified
from srearena.service.apps.fleetcast.programs.tidb.stores import AddressTaken, Stores

CLIENT_PORT, PEER_PORT = 2379, 2380
LOOK_SECONDS = 5.0
_API = "/pd/api/v1"
_NO_LEADER = "no leader"


class PdMember:
    """One running member, as its HTTP API shows it (`Listener.server` of its client port)."""

    def __init__(self, process: Process, flags: Flags, version: str) -> None:
        self.process = process
        self.version = version
        self.name = flags.get("name", process.container.host.hostname)
        self.url = flags.get("advertise-client-urls", f"http://127.0.0.1:{CLIENT_PORT}")
        self.peer_url = flags.get("advertise-peer-urls", f"http://127.0.0.1:{PEER_PORT}")
        self.data = flags.get("data-dir", "/var/lib/pd")
        self.cluster_id = 0
        self.members: dict[str, dict[str, Any]] = {}
        self.healthy: set[str] = {self.name}
        self.leader = ""
        self.stores = Stores(process.clock)

    # Its data

    def load(self) -> bool:
        """Load the state in the data directory; False where there is none."""
        try:
            kept = json.loads(self.process.files.read_text(f"{self.data}/member/state.json"))
            self.cluster_id, self.members = kept["cluster_id"], kept["members"]
            self.stores.restore(kept["stores"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False
        return True

    def save(self) -> None:
        kept = {"cluster_id": self.cluster_id, "members": self.members, "stores": self.stores.rows()}
        self.process.files.mkdir(f"{self.data}/member", 0o700, parents=True)
        self.process.files.write_bytes(f"{self.data}/member/state.json", json.dumps(kept).encode(), 0o600)

    def found(self) -> None:
        """Create a new cluster with this member only."""
        random = self.process.container.host.random
        self.cluster_id = random.getrandbits(62)
        self.members = {self.name: self._own(random.getrandbits(63))}
        self.save()

    def _own(self, identifier: int) -> dict[str, Any]:
        return {"name": self.name, "member_id": identifier, "peer_urls": [self.peer_url], "client_urls": [self.url]}

    async def join(self, urls: list[str]) -> bool:
        """Join a cluster through any of its members."""
        own = self._own(self.process.container.host.random.getrandbits(63))
        for url in urls:
            try:
                answer = await request_json(self.process, f"{url}{_API}/members", method="POST", body=own)
            except RequestFailed:
                continue
            self.cluster_id, self.members = answer["cluster_id"], answer["members"]
            self.stores.restore(answer["stores"])
            self.save()
            self.process.files.write_bytes(f"{self.data}/join", ",".join(urls).encode(), 0o600)
            return True
        return False

    # Who is there

    @property
    def has_quorum(self) -> bool:
        return len(self.healthy & set(self.members)) * 2 > len(self.members)

    async def look_around(self) -> None:
        healthy = {self.name}
        for name, member in sorted(self.members.items()):
            if name == self.name:
                continue
            try:
                await request_json(self.process, f"{member['client_urls'][0]}{_API}/ping", timeout=2.0)
                healthy.add(name)
            except RequestFailed:
                continue
        self.healthy = healthy
        able = sorted(healthy & set(self.members))
        leader = "" if not self.has_quorum else self.leader if self.leader in able else able[0]
        if leader != self.leader:
            self.leader = leader
            text = "PD leader changed" if leader else "no leader, the majority of members is unreachable"
            await unified(self.process, "INFO" if leader else "WARN", "server.go:1712", text, leader_name=leader)

    async def _spread(self, method: str, path: str, body: Any) -> None:
        """Replicate a request to the other members."""
        for name, member in sorted(self.members.items()):
            if name == self.name:
                continue
            try:
                url = f"{member['client_urls'][0]}{path}?spread=false"
                await request_json(self.process, url, method=method, body=body, timeout=2.0)
            except RequestFailed:
                continue

    # What it answers

    async def answer(self, request: HttpRequest) -> HttpResponse:
        await self.process.spend(0.0001)
        path = request.path.removeprefix(_API)
        if path in ("/ping", "/status"):
            return json_response({"version": f"v{self.version}", "start_timestamp": int(self.process.started_at)})
        if path == "/health" and request.method == "GET":
            return json_response([{**row, "health": name in self.healthy} for name, row in self._rows()])
        if request.path == "/metrics":
            return HttpResponse.text(self.stores.metrics(self.leader == self.name))
        if not self.has_quorum:
            return HttpResponse.text(f'"{_NO_LEADER}"\n', 503)
        return await self._governed(request, path)

    async def _governed(self, request: HttpRequest, path: str) -> HttpResponse:
        """Handle a request that needs a leader."""
        try:
            body: Any = json.loads(request.body) if request.body else None
        except ValueError as problem:
            return json_response(str(problem), 400)
        wanted = {"/stores": "address", "/members": "name"}.get(path, "") if request.method == "POST" else ""
        if wanted and not (isinstance(body, dict) and isinstance(body.get(wanted), str)):
            return json_response(f"{wanted} is required", 400)
        first = "spread" not in request.query
        match request.method, path.strip("/").split("/"):
            case "GET", ["members"]:
                rows = [row for _, row in self._rows()]
                leader = self.members.get(self.leader)
                return json_response({"header": {"cluster_id": self.cluster_id}, "members": rows, "leader": leader})
            case "GET", ["leader"]:
                return json_response(self.members.get(self.leader))
            case "GET", ["cluster"]:
                return json_response({"id": self.cluster_id, "max_peer_count": 3})
            case "POST", ["members"]:
                self.members[body["name"]] = {**body, **self.members.get(body["name"], {})}
                self.healthy.add(body["name"])
                kept = {"cluster_id": self.cluster_id, "members": self.members, "stores": self.stores.rows()}
                answer = json_response(kept)
            case "DELETE", ["members", "name", name]:
                self.members.pop(name, None)
                answer = json_response(f"removed, pd: {name}")
            case "GET", ["stores"]:
                return json_response(self.stores.listed())
            case "POST", ["stores"]:
                try:
                    answer = json_response({"id": self.stores.beat(body)})
                except AddressTaken as taken:
                    return json_response(str(taken), 400)
            case "DELETE", ["store", identifier]:
                if not self.stores.bury(identifier):
                    return HttpResponse.text(f'"store {identifier} not found"\n', 404)
                answer = json_response("The store is set as Offline.")
            case _:
                return HttpResponse.text("404 page not found\n", 404)
        self.save()
        if first and len(self.members) > 1:
            await self._spread(request.method, request.path, body)
        return answer

    def _rows(self) -> list[tuple[str, dict[str, Any]]]:
        return sorted(self.members.items())


@program("pingcap/pd")
class PlacementDriver(Program):
    threads = 14
    entrypoint = ("/pd-server",)
    base = "alpine"
    follows_tag = False
    env: ClassVar = {"PATH": PATH}
    tools = ("curl",)
    binaries = ("/pd-server", "/pd-ctl")
    ports = (CLIENT_PORT, PEER_PORT)
    idle_cpu = 0.015
    idle_memory = 95 * 1024 * 1024
    default_version = "8.1.0"

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        member = PdMember(process, flags, self.version)
        await unified(process, "INFO", "versioninfo.go:89", "Welcome to Placement Driver (PD)")
        await unified(process, "INFO", "versioninfo.go:90", "PD", release_version=f"v{self.version}")
        try:
            status = await self._begin(process, member, flags)
        except OSError as error:
            await unified(process, "FATAL", "main.go:234", "run server failed", error=str(error.strerror).lower())
            return 1
        if status:
            return status
        try:
            client = process.container.namespace.listen(process, CLIENT_PORT, http=member.answer)
            process.container.namespace.listen(process, PEER_PORT, http=member.answer)
        except OSError as error:
            reason = go_bind_error(CLIENT_PORT, error)
            await unified(process, "FATAL", "main.go:234", "run server failed", error=reason)
            return 1
        client.server = member
        await unified(process, "INFO", "server.go:521", "server enable region storage")
        while not stop.is_set:
            if len(member.members) > 1 or not member.leader:
                await member.look_around()
            await stop.wait(LOOK_SECONDS)
        await unified(process, "INFO", "main.go:246", "Got signal to exit", signal="terminated")
        return 0

    async def _begin(self, process: Process, member: PdMember, flags: Flags) -> int:
        if member.load():
            return 0
        if join := flags.get("join"):
            if not await member.join(join.split(",")):
                why = "[PD:etcd:ErrNewEtcdClient]context deadline exceeded"
                await unified(process, "FATAL", "main.go:204", "join meet error", error=why)
                return 1
            return 0
        member.found()
        await unified(process, "INFO", "server.go:390", "init cluster id", cluster_id=member.cluster_id)
        return 0
