"""How the operator changes what runs: one member at a time, each only when the one before is well."""

from __future__ import annotations

import json
from collections.abc import Mapping

from srearena.cluster.program_models.kubernetes import (
    Obj,
    annotations_of,
    condition_is,
    dig,
    labels_of,
    name_of,
    namespace_of,
)
from srearena.service.apps.fleetcast.programs.tidb.naming import LAST_APPLIED, member_name
from srearena.service.apps.fleetcast.programs.tidb.status import HASH


class Waiting(Exception):
    """The look ends here and is repeated soon; nothing is wrong."""


def next_size(component: str, wish: Obj, present: Obj, now: Obj) -> int:
    """The number of replicas to ask for next. TiDB servers hold no data, so any number may come or go at once."""
    wanted, there = wish["spec"]["replicas"], present["spec"]["replicas"]
    if component == "tidb" or wanted == there:
        return int(wanted)
    if wanted < there:
        return int(there - 1 if dig(present, "status", "replicas") == there else there)
    rows = now.get("members") if component == "pd" else now.get("stores")
    well = sum(1 for row in (rows or {}).values() if row.get("health") or row.get("state") == "Up")
    return int(there + 1 if well >= there else there)


def next_partition(cluster: Obj, component: str, wish: Obj, present: Obj, pods: Mapping[str, Obj], now: Obj) -> None:
    """Let a rolling update go on to the next pod; Waiting while an updated one is not well."""
    strategy = wish["spec"]["updateStrategy"]
    if strategy["type"] != "RollingUpdate" or now.get("phase") != "Upgrade":
        return
    if _applied_template(present) != wish["spec"]["template"]:
        # A new wish is taken up at once, also in the middle of an update that is stuck.
        partition = dig(present, "spec", "updateStrategy", "rollingUpdate", "partition")
        strategy["rollingUpdate"]["partition"] = wish["spec"]["replicas"] if partition is None else partition
        return
    update = dig(present, "status", "updateRevision", default="")
    name = member_name(cluster, component)
    for ordinal in range(present["spec"]["replicas"] - 1, -1, -1):
        pod = pods.get(f"{name}-{ordinal}")
        if pod is None or labels_of(pod).get(HASH) != update:
            strategy["rollingUpdate"]["partition"] = ordinal
            return
        if not _is_well(component, pod, now):
            strategy["rollingUpdate"]["partition"] = ordinal
            if dig(present, "spec", "updateStrategy", "rollingUpdate", "partition") == ordinal:
                who = f"[{namespace_of(cluster)}/{name_of(cluster)}]"
                raise Waiting(f"tidbcluster: {who}'s upgraded {component} pod: [{name_of(pod)}] is not ready")
            return
    strategy["rollingUpdate"]["partition"] = 0


def _applied_template(present: Obj) -> Obj:
    text = annotations_of(present).get(LAST_APPLIED, "{}")
    found: Obj = json.loads(text).get("spec", {}).get("template", {})
    return found


def _is_well(component: str, pod: Obj, now: Obj) -> bool:
    if not condition_is(pod, "Ready"):
        return False
    if component == "tikv":
        stores = [row for row in (now.get("stores") or {}).values() if row["podName"] == name_of(pod)]
        return any(row["state"] == "Up" for row in stores)
    return bool(dig(now, "members", name_of(pod), "health", default=False))
