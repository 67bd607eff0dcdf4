"""Autoscalers that cannot count, and rollouts that stop all pods at once."""

from __future__ import annotations

from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import edited
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, containers_of, name_of, path_of


@runbook
def cannot_compute_utilization(system: System) -> Iterator[Hypothesis]:
    """Utilization is a share of the request: without one there is none."""
    for scaler in system.own("horizontalpodautoscalers"):
        conditions = (scaler.get("status") or {}).get("conditions") or ()
        message = next(
            (str(c.get("message")) for c in conditions if c["type"] == "ScalingActive" and c["status"] == "False"), ""
        )
        workload = system.workload(str(scaler["spec"]["scaleTargetRef"]["name"]))
        if "missing request for" not in message or workload is None:
            continue
        repairs: list[Repair] = []
        for index, one in enumerate(containers_of(workload)):
            resources = one.get("resources") or {}
            if "cpu" not in (resources.get("requests") or {}):
                requests = {**(resources.get("requests") or {}), "cpu": "100m"}
                path = ("spec", "template", "spec", "containers", index, "resources")
                repairs.append(commands.patch(workload, [(path, {**resources, "requests": requests})]))
        yield Hypothesis(
            path_of(workload),
            f"its autoscaler cannot compute utilization: {message[:160]}",
            Strength.CONFIRMED,
            repairs,
            frozenset({name_of(workload), name_of(scaler)}),
        )


@runbook
def all_at_once(system: System) -> Iterator[Hypothesis]:
    """A rollout may stop every pod before a new one is ready."""
    for workload in system.own("deployments"):
        rolling = (workload["spec"].get("strategy") or {}).get("rollingUpdate") or {}
        unavailable = str(rolling.get("maxUnavailable", "25%"))
        most = unavailable == "100%" or (unavailable.isdigit() and int(unavailable) >= max(system.desired(workload), 1))
        if not most or not edited(workload, "spec", "strategy") or _single(workload, unavailable):
            continue
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
        yield Hypothesis(
            path_of(workload),
            f"its strategy was edited: a rollout stops all pods at once (maxUnavailable {unavailable})",
            Strength.CONFIRMED,
            [commands.patch(workload, [(("spec", "strategy"), strategy)])],
        )


def _single(workload: Obj, unavailable: str) -> bool:
    """One pod that may be away during a rollout is common where it holds a volume."""
    volumes = workload["spec"]["template"]["spec"].get("volumes") or ()
    return unavailable == "1" and any("persistentVolumeClaim" in one for one in volumes)
