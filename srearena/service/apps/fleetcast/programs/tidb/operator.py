"""tidb-operator's image: the controller manager that reconciles TidbClusters, and the discovery service.

The controller is an ordinary client of the API, with the identity of its pod: it is gone when its image cannot be
pulled, and helpless where RBAC forbids what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from srearena.cluster.program_models import (
    PATH,
    Change,
    HttpRequest,
    HttpResponse,
    Process,
    Program,
    go_bind_error,
    program,
    stop_signal,
)
from srearena.cluster.program_models.kubernetes import (
    ApiFailure,
    ApiPath,
    ClusterApi,
    NotInCluster,
    Obj,
    controller_of,
    dig,
    format_micro_time,
    key_of,
    namespace_of,
    parse_time,
)
from srearena.service.apps.fleetcast.programs.tidb.discovery import Discovery
from srearena.service.apps.fleetcast.programs.tidb.kube import Kube
from srearena.service.apps.fleetcast.programs.tidb.loglines import klog
from srearena.service.apps.fleetcast.programs.tidb.naming import GROUP, PLURAL, VERSION
from srearena.service.apps.fleetcast.programs.tidb.reconciler import Reconciler
from srearena.service.apps.fleetcast.programs.tidb.rollouts import Waiting

HEALTH_PORT = 6060
RESYNC_SECONDS = 30.0
WATCH_SECONDS = 300
LEASE_SECONDS = 15.0
RENEW_SECONDS = 5.0
MEMBERS_PER_SECOND = 50
"""How many members a look can ask for their health in a second; a look at a huge cluster takes accordingly long."""
_RETRY_FIRST, _RETRY_LAST = 0.005, 1000.0
_CONTROLLER = "tidb_cluster_controller.go"
_LEASE = "tidb-controller-manager"


@program("pingcap/tidb-operator")
class TidbOperator(Program):
    threads = 12
    cmd = ("/usr/local/bin/tidb-controller-manager",)
    base = "alpine"
    follows_tag = False
    env: ClassVar = {"PATH": PATH}
    binaries = (
        "/usr/local/bin/tidb-controller-manager",
        "/usr/local/bin/tidb-discovery",
        "/usr/local/bin/tidb-scheduler",
    )
    idle_cpu = 0.004
    idle_memory = 34 * 1024 * 1024
    default_version = "1.6.3"

    async def run(self, process: Process) -> int:
        process.set_memory(self.idle_memory)
        try:
            api = ClusterApi(process, f"{process.binary}/v{self.version}")
        except NotInCluster as problem:
            await klog(process, "F", "main.go:96", f"failed to get config: {problem}")
            return 255
        if process.binary == "tidb-discovery":
            return await Discovery(process, api).serve()
        return await Manager(process, api, self.version).run()


class Manager:
    """The work queue of clusters, and the loops that fill and process it."""

    def __init__(self, process: Process, api: ClusterApi, version: str) -> None:
        self._process = process
        self._api = api
        self._version = version
        image = process.container.config.image
        self._reconciler = Reconciler(process, Kube(process, api), image)
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._busy: dict[str, float] = {}
        """Until when the last look at a cluster takes."""
        self._changed = Change(process.clock)

    async def run(self) -> int:
        process = self._process
        stop = stop_signal(process)
        await self._log("I", "version.go:38", f"Welcome to TiDB Operator. Version: v{self._version}")

        async def health(request: HttpRequest) -> HttpResponse:
            return HttpResponse.text("ok")

        try:
            process.container.namespace.listen(process, HEALTH_PORT, http=health)
        except OSError as error:
            await self._log("F", "main.go:262", go_bind_error(HEALTH_PORT, error))
            return 255
        where = f"{self._api.namespace}/{_LEASE}"
        await self._log("I", "leaderelection.go:250", f"attempting to acquire leader lease {where}...")
        while not await self._lead():
            if await stop.wait(RENEW_SECONDS):
                return 0
        await self._log("I", "leaderelection.go:260", f"successfully acquired lease {where}")
        await self._log("I", f"{_CONTROLLER}:89", "Starting tidbcluster controller")
        process.spawn_thread(self._watch(ApiPath(GROUP, VERSION, PLURAL), key_of))
        process.spawn_thread(self._watch(ApiPath("apps", "v1", "statefulsets"), _cluster_of))
        process.spawn_thread(self._work())
        while not await stop.wait(RENEW_SECONDS):
            if not await self._lead():
                await self._log("F", "main.go:236", "leader election lost")
                return 255
        await self._log("I", f"{_CONTROLLER}:98", "Shutting down tidbcluster controller")
        return 0

    # Who leads

    async def _lead(self) -> bool:
        """Acquire or renew the lease; False where another process holds it."""
        process = self._process
        identity = process.container.host.hostname
        now = format_micro_time(process.clock.now)
        path = ApiPath("coordination.k8s.io", "v1", "leases", self._api.namespace, _LEASE)
        spec: Obj = {"holderIdentity": identity, "leaseDurationSeconds": int(LEASE_SECONDS), "renewTime": now}
        try:
            lease = await self._api.find(path)
            if lease is None:
                meta = {"name": _LEASE, "namespace": self._api.namespace}
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
                await self._api.call("POST", ApiPath(path.group, path.version, path.resource, path.namespace), body)
                return True
            current = lease["spec"]
            renewed = parse_time(current["renewTime"]) if current.get("renewTime") else 0.0
            if (
                current.get("holderIdentity") not in (identity, "", None)
                and renewed + LEASE_SECONDS > process.clock.now
            ):
                return False
            await self._api.call("PUT", path, {**lease, "spec": {**current, **spec}})
        except ApiFailure as failure:
            if failure.conflict:
                return False
            text = f"error retrieving resource lock {self._api.namespace}/{_LEASE}: {failure.message}"
            await self._log("E", "leaderelection.go:332", text)
            return False
        return True

    # Work queue

    async def _watch(self, path: ApiPath, key_for: Callable[[Obj], str]) -> None:
        """List, then watch for ever; after a failure, list again."""
        pause = 1.0
        while True:
            try:
                path.query = {}
                listed = await self._api.call("GET", path)
                for obj in listed["items"]:
                    self._add(key_for(obj))
                revision = listed["metadata"]["resourceVersion"]
                while revision:
                    events, revision = await self._api.watch(path, revision, WATCH_SECONDS)
                    for event in events:
                        self._add(key_for(event["object"]))
                pause = 1.0
            except ApiFailure as failure:
                path.query = {}
                text = f"failed to list *{path.resource}: {failure.message}"
                await self._log("E", "reflector.go:147", text)
                await self._process.sleep(pause)
                pause = min(pause * 2, 30.0)

    def _add(self, key: str, delay: float = 0.0) -> None:
        if not key:
            return
        due = max(self._process.clock.now + delay, self._busy.get(key, 0.0))
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._changed.notify()

    async def _work(self) -> None:
        clock = self._process.clock
        while True:
            key, due = min(self._due.items(), key=lambda pair: (pair[1], pair[0]), default=("", float("inf")))
            if due > clock.now:
                await self._changed.wait(None if due == float("inf") else due - clock.now)
                continue
            del self._due[key]
            await self._sync(key)

    async def _sync(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        try:
            members = await self._reconciler.sync(namespace, name)
            self._busy[key] = self._process.clock.now + members / MEMBERS_PER_SECOND
        except Waiting as wait:
            text = f"TidbCluster: {key}, still need sync: {wait}, requeuing"
            await self._log("I", f"{_CONTROLLER}:142", text)
            self._again(key)
            return
        except ApiFailure as failure:
            text = f"TidbCluster: {key}, sync failed {failure.message}, requeuing"
            await self._log("E", f"{_CONTROLLER}:144", text)
            self._again(key)
            return
        self._failures.pop(key, None)
        self._add(key, RESYNC_SECONDS)

    def _again(self, key: str) -> None:
        """Later and later, but with every resync at the latest."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._add(key, min(_RETRY_FIRST * 2 ** min(failures, 30), RESYNC_SECONDS, _RETRY_LAST))

    async def _log(self, level: str, where: str, text: str) -> None:
        await klog(self._process, level, where, text)


def _cluster_of(stateful_set: Obj) -> str:
    """The key of the TidbCluster that a StatefulSet belongs to."""
    owner = controller_of(stateful_set)
    if owner is None or owner["kind"] != "TidbCluster":
        return ""
    return f"{namespace_of(stateful_set)}/{dig(owner, 'name')}"
