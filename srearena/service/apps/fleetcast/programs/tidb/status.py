"""The status of a running cluster, read from PD and TiDB, and the conditions derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srearena.cluster.program_models import Process
from srearena.cluster.program_models.kubernetes import (
    Obj,
    condition_is,
    dig,
    format_time,
    labels_of,
    name_of,
    namespace_of,
    with_condition,
)
from srearena.service.apps.fleetcast.programs.tidb.http_client import RequestFailed, request_json
from srearena.service.apps.fleetcast.programs.tidb.naming import member_name

HASH = "controller-revision-hash"


def pd_url(cluster: Obj) -> str:
    return f"http://{member_name(cluster, 'pd')}.{namespace_of(cluster)}:2379"


async def read_pd(process: Process, cluster: Obj, status: Obj) -> None:
    """Members and leader into `status.pd`; RequestFailed where PD does not answer."""
    url = pd_url(cluster)
    status["synced"] = False
    healths = await request_json(process, f"{url}/pd/api/v1/health")
    members = await request_json(process, f"{url}/pd/api/v1/members")
    before = status.get("members") or {}
    found = {
        row["name"]: {
            "name": row["name"],
            "id": str(row["member_id"]),
            "clientURL": row["client_urls"][0],
            "health": row["health"],
        }
        for row in healths
    }
    status["members"] = _dated(process, before, found, "health")
    leader = (members.get("leader") or {}).get("name", "")
    status["leader"] = status["members"].get(leader, {})
    status["synced"] = True


async def read_tikv(process: Process, cluster: Obj, status: Obj) -> None:
    status["synced"] = False
    answer = await request_json(process, f"{pd_url(cluster)}/pd/api/v1/stores")
    found = {}
    for row in answer["stores"]:
        store = row["store"]
        found[str(store["id"])] = {
            "id": str(store["id"]),
            "podName": store["address"].partition(".")[0],
            "ip": store["address"].partition(":")[0],
            "leaderCount": dig(row, "status", "leader_count", default=0),
            "state": store["state_name"],
        }
    status["stores"] = _dated(process, status.get("stores") or {}, found, "state")
    status["synced"] = True


async def read_tidb(process: Process, cluster: Obj, status: Obj, pods: Mapping[str, Obj]) -> None:
    """The TiDB servers by pod; servers of unready pods are not queried."""
    found: dict[str, Obj] = {}
    name = member_name(cluster, "tidb")
    for pod in pods.values():
        healthy = False
        if condition_is(pod, "Ready"):
            url = f"http://{name_of(pod)}.{name}-peer.{namespace_of(cluster)}:10080/status"
            try:
                healthy = bool(await request_json(process, url))
            except RequestFailed:
                healthy = False
        member = {"name": name_of(pod), "health": healthy}
        if dig(pod, "spec", "nodeName"):
            member["node"] = dig(pod, "spec", "nodeName")
        found[name_of(pod)] = member
    status["members"] = _dated(process, status.get("members") or {}, found, "health")


def _dated(process: Process, before: Mapping[str, Obj], now: Mapping[str, Obj], field: str) -> dict[str, Any]:
    """The rows with the time of their last transition."""
    moment = format_time(process.clock.now)
    return {
        name: {
            **row,
            "lastTransitionTime": before[name]["lastTransitionTime"]
            if name in before and before[name].get(field) == row[field]
            else moment,
        }
        for name, row in sorted(now.items())
    }


def pd_available(status: Obj) -> bool:
    members = list((status.get("members") or {}).values())
    needed = len(members) // 2 + 1
    ready = dig(status, "statefulSet", "readyReplicas", default=0)
    healthy = sum(1 for member in members if member["health"])
    return bool(status.get("synced")) and bool(members) and healthy >= needed and ready >= needed


def tikv_available(status: Obj) -> bool:
    up = any(store["state"] == "Up" for store in (status.get("stores") or {}).values())
    return bool(status.get("synced")) and up and dig(status, "statefulSet", "readyReplicas", default=0) >= 1


def is_upgrading(stateful_set: Obj, pods: Mapping[str, Obj]) -> bool:
    update = dig(stateful_set, "status", "updateRevision", default="")
    if not update:
        return False
    if dig(stateful_set, "status", "currentRevision") != update:
        return True
    return any(labels_of(pod).get(HASH, update) != update for pod in pods.values())


def conclude(cluster: Obj, status: Obj, now: str) -> None:
    """The Ready condition, with the first reason for which it is not true."""
    reason, message = "Ready", "TiDB cluster is fully up and running"
    if not all(_up_to_date(cluster, status, component) for component in ("pd", "tikv", "tidb")):
        reason, message = "StatefulSetNotUpToDate", "Statefulset(s) are in progress"
    elif not dig(status, "pd", "synced") or not _all(status, "pd", "members", "health", True):
        reason, message = "PDUnhealthy", "PD(s) are not healthy"
    elif not _all(status, "tikv", "stores", "state", "Up"):
        reason, message = "TiKVStoreNotUp", "TiKV store(s) are not up"
    elif not _all(status, "tidb", "members", "health", True):
        reason, message = "TiDBUnhealthy", "TiDB(s) are not healthy"
    condition = {
        "type": "Ready",
        "status": "True" if reason == "Ready" else "False",
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
    }
    old = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    if old is not None and (old["status"], old["reason"]) == (condition["status"], reason):
        condition["lastUpdateTime"] = old.get("lastUpdateTime", now)
    status["conditions"] = with_condition(status.get("conditions") or [], condition, now)


def _up_to_date(cluster: Obj, status: Obj, component: str) -> bool:
    if component not in cluster["spec"]:
        return True
    found = dig(status, component, "statefulSet")
    if not found or not found.get("currentRevision"):
        return False
    return bool(found.get("currentRevision") == found.get("updateRevision"))


def _all(status: Obj, component: str, field: str, key: str, expected: object) -> bool:
    rows = dig(status, component, field)
    return bool(rows) and all(row.get(key) == expected for row in rows.values())
