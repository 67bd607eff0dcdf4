"""Scaling and rolling updates by the operator: one member at a time, each when the previous one is healthy."""

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
    """The reconciliation ends here and is repeated soon; not an error."""


def next_size(component: str, wish: Obj, present: Obj, now: Obj) -> int:
    """The next number of replicas. TiDB servers are stateless, so any number is added or removed at once."""
    desired, current = wish["spec"]["replicas"], present["spec"]["replicas"]
    if component == "tidb" or desired == current:
        return int(desired)
    if desired < current:
        return int(current - 1 if dig(present, "status", "replicas") == current else current)
    rows = now.get("members") if component == "pd" else now.get("stores")
    healthy = sum(1 for row in (rows or {}).values() if row.get("health") or row.get("state") == "Up")
    return int(current + 1 if healthy >= current else current)


def next_partition(cluster: Obj, component: str, wish: Obj, present: Obj, pods: Mapping[str, Obj], now: Obj) -> None:
    """Continue a rolling update with the next pod; Waiting while an updated one is not healthy."""
    strategy = wish["spec"]["updateStrategy"]
    if strategy["type"] != "RollingUpdate" or now.get("phase") != "Upgrade":
        return
    if _applied_template(present) != wish["spec"]["template"]:
        # A new template takes effect immediately, also during an update that is stuck.
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
        if not _is_healthy(component, pod, now):
            strategy["rollingUpdate"]["partition"] = ordinal
            if dig(present, "spec", "updateStrategy", "rollingUpdate", "partition") == ordinal:
                who = f"[{namespace_of(cluster)}/{name_of(cluster)}]"
                raise Waiting(f"tidbcluster: {who}'s upgraded {component} pod: [{name_of(pod)}] is not ready")
            return
    strategy["rollingUpdate"]["partition"] = 0


def _applied_template(present: Obj) -> Obj:
    text = annotations_of(present).get(LAST_APPLIED, "{}")
    template: Obj = json.loads(text).get("spec", {}).get("template", {})
    return template


def _is_healthy(component: str, pod: Obj, now: Obj) -> bool:
    if not condition_is(pod, "Ready"):
        return False
    if component == "tikv":
        stores = [row for row in (now.get("stores") or {}).values() if row["podName"] == name_of(pod)]
        return any(row["state"] == "Up" for row in stores)
    return bool(dig(now, "members", name_of(pod), "health", default=False))
