"""xenon: leader election among the MySQL servers of a StatefulSet; scripts announce the role.

The leader sends heartbeats every few seconds; a member without a heartbeat for a while polls the others itself. A
leader that a majority follows stays; without one, the healthy member with the lowest name becomes leader. The scripts
in the environment run in the pod's shell, with its network and token, so their effect on labels depends on RBAC.
Followers take over what the leader's server has written, every few seconds.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from srearena.cluster.program_models import (
    PATH,
    ExecError,
    HttpRequest,
    HttpResponse,
    Outcome,
    Process,
    Program,
    go_bind_error,
    program,
    stamp,
    stop_signal,
)
from srearena.service.products.mysql.server import MysqlServer

RPC_PORT = 8801
MYSQL_PORT = 3306
HEARTBEAT_SECONDS = 5.0
ELECTION_SECONDS = 15.0
"""Seconds without a heartbeat after which a follower starts an election."""
REPLICATION_SECONDS = 20.0
"""Chosen: real replication is a stream; copying at this interval costs the simulation little."""
_LEADER, _POSITION = "X-Leader", "X-Position"
_TIMEOUT = 1.0


class Member:
    """One xenon process: its peers, its leader and its role."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.name = f"{process.env.get('HOST') or process.container.host.hostname}:{RPC_PORT}"
        self.peers: list[str] = [self.name]
        self.leader = ""
        self.healthy = False
        self._heard_at = float("-inf")
        self._role = ""
        self._replicated = ""
        """The leader and its position at the last replication."""
        self._replicated_at = float("-inf")

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/cluster/add" and request.method == "POST":
            added = [peer.strip() for peer in request.body.decode(errors="replace").split(",") if peer.strip()]
            if not all(peer.rpartition(":")[2].isdigit() for peer in added):
                return HttpResponse.text("cluster.add.error[missing port in address]\n", 400)
            self.peers = sorted({*self.peers, *added})
            return HttpResponse.text("OK\n")
        if request.path in ("/ping", "/status"):
            if leader := request.header(_LEADER):
                self.leader, self._heard_at = leader, self.process.clock.now
            view = {"name": self.name, "leader": self.leader, "healthy": self.healthy, "peers": self.peers}
            return HttpResponse(200, json.dumps(view).encode(), {"Content-Type": "application/json"})
        if request.path == "/binlog" and (server := self._mysql()) is not None:
            position = f"{self.name} {server.process.started_at} {server.changes}"
            unchanged = request.header(_POSITION) == position
            document = {"position": position} | ({} if unchanged else server.dump())
            return HttpResponse(200, json.dumps(document).encode(), {"Content-Type": "application/json"})
        return HttpResponse.text("not found\n", 404)

    def _mysql(self) -> MysqlServer | None:
        """The server in this pod."""
        listener = self.process.container.namespace.find("127.0.0.1", MYSQL_PORT)
        return listener.server if listener is not None and isinstance(listener.server, MysqlServer) else None

    async def _replicate(self) -> None:
        """Get what the leader has and this member has not."""
        server = self._mysql()
        if server is None or not self.leader or self.process.clock.now - self._replicated_at < REPLICATION_SECONDS:
            return
        host, _, port = self.leader.rpartition(":")
        request = HttpRequest("GET", "/binlog", {"Host": self.leader, _POSITION: self._replicated})
        result = await self.process.container.network.http(host, int(port), request, timeout=_TIMEOUT)
        if result.response is None or result.response.status != 200:
            return
        document = _document(result.response)
        if "position" not in document:
            return
        if "databases" in document:
            server.apply_dump(document)
        self._replicated, self._replicated_at = document["position"], self.process.clock.now

    async def tick(self) -> None:
        if self.leader == self.name or self.process.clock.now - self._heard_at > ELECTION_SECONDS:
            await self._elect()
        if self.leader != self.name:
            await self._replicate()
        await self._apply_role("leader" if self.leader == self.name else "follower")

    async def _elect(self) -> None:
        """Poll the peers and determine the leader."""
        network = self.process.container.network
        local = await network.connect("127.0.0.1", MYSQL_PORT, timeout=_TIMEOUT)
        self.healthy = local.outcome is Outcome.CONNECTED
        if local.connection is not None:
            local.connection.close()
        views: dict[str, Any] = {}
        for peer in self.peers:
            if peer != self.name and (view := await self._ping(peer)) is not None:
                views[peer] = view
        able = sorted([peer for peer, view in views.items() if view["healthy"]] + [self.name] * self.healthy)
        if len(able) * 2 <= len(self.peers):
            self.leader = ""
        else:
            followed = [view["leader"] for view in views.values()] + [self.leader]
            confirmed = [name for name in able if followed.count(name) * 2 > len(self.peers)]
            self.leader = confirmed[0] if confirmed else able[0]

    async def _ping(self, peer: str) -> Any:
        host, _, port = peer.rpartition(":")
        headers = {"Host": peer, **({_LEADER: self.name} if self.leader == self.name else {})}
        request = HttpRequest("GET", "/ping", headers)
        result = await self.process.container.network.http(host, int(port), request, timeout=_TIMEOUT)
        if result.response is None or result.response.status != 200:
            return None
        view = _document(result.response)
        return view if {"healthy", "leader"} <= view.keys() else None

    async def _apply_role(self, role: str) -> None:
        """Run the script of a role when the role changes."""
        if role == self._role:
            return
        variable = "LEADER_START_COMMAND" if role == "leader" else "LEADER_STOP_COMMAND"
        command = self.process.env.get(variable, "")
        when = stamp(self.process, "%Y/%m/%d %H:%M:%S.%f")
        await self.process.error(f"{when}  [INFO]  {role.upper()}[ID:{self.name}, L:{self.leader}].state.init\n")
        if command:
            try:
                status = await self.process.wait(self.process.spawn(["sh", "-c", command]))
            except ExecError as problem:
                status = problem.status
            if status:
                await self.process.error(f"{when}  [ERROR]  {variable.lower()}[{command}].exit.status[{status}]\n")
                return
        self._role = role


@program("radondb/xenon")
class Xenon(Program):
    threads = 11
    entrypoint = ("/docker-entrypoint.sh",)
    cmd = ("xenon", "-c", "/etc/xenon/xenon.json")
    base = "debian"
    follows_tag = False
    env: ClassVar = {"PATH": PATH}
    tools = ("curl", "ps", "pgrep", "pkill", "kill")
    binaries = ("/docker-entrypoint.sh", "/usr/local/bin/xenon", "/usr/local/bin/xenoncli")
    ports = (RPC_PORT,)
    idle_cpu = 0.004
    idle_memory = 30 * 1024 * 1024
    default_version = "1.1.5"

    async def run(self, process: Process) -> int:
        if process.binary == "xenoncli":
            return await self._client(process)
        if process.binary == "docker-entrypoint.sh":
            process.execute(process.argv[1:] or list(self.cmd), process.env)
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        member = Member(process)
        try:
            process.container.namespace.listen(process, RPC_PORT, http=member.answer)
        except OSError as error:
            await process.error(f"{go_bind_error(RPC_PORT, error)}\n")
            return 1
        when = stamp(process, "%Y/%m/%d %H:%M:%S.%f")
        await process.error(
            f"{when}  [INFO]  raft.start...\n{when}  [INFO]  rpc.server.listening[0.0.0.0:{RPC_PORT}]\n"
        )
        while not stop.is_set:
            await member.tick()
            await stop.wait(HEARTBEAT_SECONDS)
        return 0

    async def _client(self, process: Process) -> int:
        words = process.argv[1:]
        requests = {("xenon", "ping"): ("GET", "/ping"), ("cluster", "add"): ("POST", "/cluster/add")}
        requests |= {("cluster", "status"): ("GET", "/status"), ("raft", "status"): ("GET", "/status")}
        found = requests.get((words[0], words[1])) if len(words) > 1 else None
        if found is None:
            unknown = f'Error: unknown command "{" ".join(words[:2])}" for "xenoncli"'
            await process.error(f"{unknown}\nRun 'xenoncli --help' for usage.\n")
            return 1
        body = words[2].encode() if len(words) > 2 else b""
        request = HttpRequest(found[0], found[1], {"Host": f"127.0.0.1:{RPC_PORT}"}, body)
        result = await process.container.network.http("127.0.0.1", RPC_PORT, request, timeout=5.0)
        if result.response is None or result.response.status != 200:
            await process.error(f"rpc.call.error[dial tcp 127.0.0.1:{RPC_PORT}: connect: {result.outcome}]\n")
            return 1
        text = result.response.body.decode() if found[1] == "/status" else "OK"
        await process.write(f"{text}\n")
        return 0


def _document(response: HttpResponse) -> dict[str, Any]:
    """The JSON object of a response; empty where something else answers in a member's place."""
    try:
        found = json.loads(response.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
