"""Reconciliation of a TidbCluster: discovery, then PD, then TiKV when PD runs, then TiDB when TiKV runs.

The first step that fails or has to wait ends the reconciliation; the steps before it stay in effect, and the status
reports them. What the API server validates is not validated here: an invalid object is rejected by it.
"""

from __future__ import annotations

from srearena.cluster.program_models import Process
from srearena.cluster.program_models.kubernetes import (
    JSON_PATCH,
    MERGE_PATCH,
    ApiFailure,
    ApiPath,
    Obj,
    copy_of,
    dig,
    format_time,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    parse,
)
from srearena.service.apps.fleetcast.programs.tidb import components, status
from srearena.service.apps.fleetcast.programs.tidb.http_client import RequestFailed, request_json
from srearena.service.apps.fleetcast.programs.tidb.kube import Kube, path_of
from srearena.service.apps.fleetcast.programs.tidb.loglines import klog
from srearena.service.apps.fleetcast.programs.tidb.naming import (
    CLUSTER_ID,
    GROUP,
    MEMBER_ID,
    PLURAL,
    STORE_ID,
    VERSION,
    member_name,
    selector,
)
from srearena.service.apps.fleetcast.programs.tidb.rollouts import Waiting, next_partition, next_size


class _Seen:
    """The objects of a cluster at the start of the reconciliation (the operator's informer cache)."""

    def __init__(self) -> None:
        self.services: dict[str, Obj] = {}
        self.config_maps: dict[str, Obj] = {}
        self.sets: dict[str, Obj] = {}
        self.pods: dict[str, dict[str, Obj]] = {}


class Reconciler:
    def __init__(self, process: Process, kube: Kube, image: str) -> None:
        self._process = process
        self._kube = kube
        self._image = image
        """The operator's own image: discovery runs from it."""

    async def sync(self, namespace: str, name: str) -> int:
        """Reconcile a cluster; returns the number of its pods."""
        path = ApiPath(GROUP, VERSION, PLURAL, namespace, name)
        cluster = await self._kube.api.find(path)
        if cluster is None:
            await self._log("I", "tidb_cluster_controller.go:165", f"TidbCluster has been deleted {namespace}/{name}")
            return 0
        if is_terminating(cluster) or dig(cluster, "spec", "paused"):
            return 0
        problems = complaints(cluster)
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            where = f"tidb cluster {namespace}/{name} is not valid and must be fixed first, aggregated error: {text}"
            await self._log("E", "tidb_cluster_control.go:143", where)
            await self._kube.event(cluster, "Warning", "FailedValidation", text)
            return 0
        known = copy_of(cluster.get("status") or {})
        seen = await self._look(cluster)
        try:
            await self._components(cluster, seen, known)
        finally:
            status.conclude(cluster, known, format_time(self._process.clock.now))
            if known != cluster.get("status"):
                change = [{"op": "add", "path": "/status", "value": known}]
                await self._kube.api.call("PATCH", path, change, content_type=JSON_PATCH)
        return sum(len(pods) for pods in seen.pods.values())

    async def _components(self, cluster: Obj, seen: _Seen, known: Obj) -> None:
        namespace = namespace_of(cluster)
        for wish in components.discovery(cluster, self._image):
            present = await self._kube.find(wish["kind"], namespace, name_of(wish))
            await self._kube.apply(cluster, wish, present)
        if "pd" in cluster["spec"]:
            await self._component(cluster, "pd", seen, known)
        if "tikv" in cluster["spec"]:
            if "pd" in cluster["spec"] and not status.pd_available(known["pd"]):
                raise _waiting(cluster, "waiting for PD cluster running")
            await self._component(cluster, "tikv", seen, known)
        if "tidb" in cluster["spec"]:
            if "tikv" in cluster["spec"] and not status.tikv_available(known["tikv"]):
                raise _waiting(cluster, "waiting for TiKV cluster running")
            await self._component(cluster, "tidb", seen, known)
        await self._mark_pods(seen, known)

    async def _look(self, cluster: Obj) -> _Seen:
        namespace, mine = namespace_of(cluster), selector(cluster)
        seen = _Seen()
        seen.services = await self._kube.listed("Service", namespace, mine)
        seen.config_maps = await self._kube.listed("ConfigMap", namespace, mine)
        seen.sets = await self._kube.listed("StatefulSet", namespace, mine)
        for name, pod in (await self._kube.listed("Pod", namespace, mine)).items():
            component = labels_of(pod).get("app.kubernetes.io/component", "")
            seen.pods.setdefault(component, {})[name] = pod
        return seen

    async def _component(self, cluster: Obj, component: str, seen: _Seen, known: Obj) -> None:
        """Services, ConfigMap, status and StatefulSet of one component."""
        for service in components.services(cluster, component):
            await self._kube.apply(cluster, service, seen.services.get(name_of(service)))
        now = known.setdefault(component, {})
        present = seen.sets.get(member_name(cluster, component))
        if present is not None:
            await self._read(cluster, component, present, seen, known)
        settings = components.config_map(cluster, component)
        await self._kube.apply(cluster, settings, seen.config_maps.get(name_of(settings)))
        wish = components.stateful_set(cluster, component, name_of(settings))
        if present is None:
            created = await self._kube.apply(cluster, wish, None)
            now["statefulSet"] = created.get("status") or {"replicas": 0}
            now["phase"] = "Normal"
            if component == "pd":
                raise _waiting(cluster, "waiting for PD cluster running")
            return
        await self._resize(cluster, component, wish, present, now)
        next_partition(cluster, component, wish, present, seen.pods.get(component, {}), now)
        await self._kube.apply(cluster, wish, present)

    async def _read(self, cluster: Obj, component: str, present: Obj, seen: _Seen, known: Obj) -> None:
        now, pods = known[component], seen.pods.get(component, {})
        now["statefulSet"] = present.get("status") or {"replicas": 0}
        now["image"] = next(
            (c["image"] for c in dig(present, "spec", "template", "spec", "containers") if c["name"] == component), ""
        )
        if dig(cluster, "spec", component, "replicas") != present["spec"]["replicas"]:
            now["phase"] = "Scale"
        else:
            now["phase"] = "Upgrade" if status.is_upgrading(present, pods) else "Normal"
        try:
            if component == "pd":
                await status.read_pd(self._process, cluster, now)
                answer = await request_json(self._process, f"{status.pd_url(cluster)}/pd/api/v1/cluster")
                known["clusterID"] = str(answer["id"])
            elif component == "tikv":
                await status.read_tikv(self._process, cluster, now)
            else:
                await status.read_tidb(self._process, cluster, now, pods)
        except RequestFailed as failure:
            who = f"[{namespace_of(cluster)}/{name_of(cluster)}]"
            text = f"failed to sync TidbCluster: {who}'s status, error: {failure}"
            await self._log("E", f"{component}_member_manager.go:195", text)

    async def _resize(self, cluster: Obj, component: str, wish: Obj, present: Obj, now: Obj) -> None:
        """PD members and TiKV stores are added and removed one at a time; before removal they are notified."""
        size = next_size(component, wish, present, now)
        wish["spec"]["replicas"] = size
        leaving = f"{member_name(cluster, component)}-{size}"
        if component == "tidb" or size >= present["spec"]["replicas"]:
            return
        try:
            if component == "pd":
                # Asked of a member that stays, so that the answer does not leave with the one who gives it.
                name = member_name(cluster, "pd")
                staying = f"http://{name}-0.{name}-peer.{namespace_of(cluster)}:2379"
                await request_json(self._process, f"{staying}/pd/api/v1/members/name/{leaving}", method="DELETE")
                return
            for store in (now.get("stores") or {}).values():
                if store["podName"] == leaving and store["state"] != "Tombstone":
                    await request_json(
                        self._process, f"{status.pd_url(cluster)}/pd/api/v1/store/{store['id']}", method="DELETE"
                    )
        except RequestFailed as failure:
            raise _waiting(cluster, f"{leaving} cannot leave yet: {failure}") from None

    async def _mark_pods(self, seen: _Seen, known: Obj) -> None:
        """Labels that say which member or store a pod is."""
        members = {row["name"]: row["id"] for row in (dig(known, "pd", "members") or {}).values()}
        stores = {row["podName"]: row["id"] for row in (dig(known, "tikv", "stores") or {}).values()}
        for component in components.COMPONENTS:
            for name, pod in seen.pods.get(component, {}).items():
                wanted = {CLUSTER_ID: known.get("clusterID", "")}
                wanted |= {MEMBER_ID: members.get(name, "")} if component == "pd" else {}
                wanted |= {STORE_ID: stores.get(name, "")} if component == "tikv" else {}
                missing = {k: v for k, v in wanted.items() if v and labels_of(pod).get(k) != v}
                if missing and not is_terminating(pod):
                    path = path_of("Pod", namespace_of(pod), name)
                    try:
                        change = {"metadata": {"labels": missing}}
                        await self._kube.api.call("PATCH", path, change, content_type=MERGE_PATCH)
                    except ApiFailure as failure:
                        if not failure.not_found:
                            raise

    async def _log(self, level: str, where: str, text: str) -> None:
        await klog(self._process, level, where, text)


def _waiting(cluster: Obj, text: str) -> Waiting:
    return Waiting(f"TidbCluster: [{namespace_of(cluster)}/{name_of(cluster)}], {text}")


def complaints(cluster: Obj) -> list[str]:
    """The errors that the operator itself reports before it changes anything."""
    found: list[str] = []
    for component in ("pd", "tikv"):
        spec = dig(cluster, "spec", component)
        if spec is None:
            continue
        size = dig(spec, "requests", "storage")
        where = f"spec.{component}.requests.storage"
        if not size:
            found.append(f'{where}: Invalid value: "": storage request is required')
            continue
        try:
            parse(size)
        except ValueError:
            found.append(f'{where}: Invalid value: "{size}": quantities must match the regular expression')
    return found
