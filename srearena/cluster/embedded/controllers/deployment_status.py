"""The status of a deployment: counts, availability, and progress of the rollout. Pure functions.

A condition is replaced only when its status or reason changes; `lastTransitionTime` moves with the status alone. The
progress deadline is counted from `lastUpdateTime` of `Progressing`, which moves with every step forward.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.deployment_rollout import bounds_of, replicas_of
from srearena.cluster.embedded.durations import format_time, parse_time
from srearena.cluster.embedded.objects import Obj, condition, dig, meta, name_of, uid_of

TIMED_OUT = "ProgressDeadlineExceeded"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
AVAILABLE = "NewReplicaSetAvailable"
UPDATED = "ReplicaSetUpdated"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
CREATE_FAILED = "ReplicaSetCreateError"
_NO_DEADLINE = 2**31 - 1


def progress_deadline(deployment: Obj) -> int | None:
    """The progress deadline in seconds; None where there is none."""
    found: int | None = dig(deployment, "spec", "progressDeadlineSeconds")
    return None if found == _NO_DEADLINE else found


def new_condition(kind: str, status: str, reason: str, message: str, now: float) -> Obj:
    moment = format_time(now)
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def with_new(conditions: list[Obj], new: Obj) -> list[Obj]:
    known = next((c for c in conditions if c["type"] == new["type"]), None)
    if known is not None and known.get("status") == new["status"]:
        if known.get("reason") == new["reason"]:
            return conditions
        new = {**new, "lastTransitionTime": known.get("lastTransitionTime", new["lastTransitionTime"])}
    return [*without(conditions, new["type"]), new]


def without(conditions: list[Obj], kind: str) -> list[Obj]:
    return [c for c in conditions if c["type"] != kind]


def counted_status(deployment: Obj, sets: list[Obj], newest: Obj | None, now: float) -> Obj:
    """The status with updated counts and availability; progress is unchanged."""
    before = deployment.get("status") or {}
    available = _total(sets, "availableReplicas")
    counts = {
        "observedGeneration": meta(deployment).get("generation", 0),
        "replicas": _total(sets, "replicas"),
        "updatedReplicas": dig(newest, "status", "replicas", default=0) if newest is not None else 0,
        "readyReplicas": _total(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(replicas_of(obj) for obj in sets) - available),
        "collisionCount": before.get("collisionCount", 0),
    }
    status: Obj = {key: value for key, value in counts.items() if value}
    if available >= replicas_of(deployment) - bounds_of(deployment).unavailable:
        verdict = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        verdict = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = with_new(list(before.get("conditions") or ()), new_condition("Available", *verdict, now))
    return status


def _total(sets: list[Obj], key: str) -> int:
    return sum(dig(obj, "status", key, default=0) for obj in sets)


def rollout_status(deployment: Obj, sets: list[Obj], newest: Obj | None, now: float) -> Obj:
    """The status during a rollout: counts, progress, and failures to create pods."""
    status = counted_status(deployment, sets, newest, now)
    conditions: list[Obj] = status["conditions"]
    known = condition(deployment, "Progressing")
    if progress_deadline(deployment) is None:
        conditions = without(conditions, "Progressing")
    elif not _was_complete(status, known):
        conditions = _with_progress(deployment, status, newest, known, now)
    failure = _replica_failure(sets, newest)
    if failure is not None:
        conditions = with_new(conditions, failure)
    else:
        conditions = without(conditions, "ReplicaFailure")
    return {**status, "conditions": conditions}


def _was_complete(status: Obj, known: Obj | None) -> bool:
    """A deployment whose last rollout ended and that has but one generation is not rolling out."""
    return (
        known is not None
        and known.get("reason") == AVAILABLE
        and status.get("replicas", 0) == status.get("updatedReplicas", 0)
    )


def _with_progress(deployment: Obj, status: Obj, newest: Obj | None, known: Obj | None, now: float) -> list[Obj]:
    conditions: list[Obj] = status["conditions"]
    what = f'ReplicaSet "{name_of(newest)}"' if newest is not None else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        new = new_condition("Progressing", "True", AVAILABLE, f"{what} has successfully progressed.", now)
        return with_new(conditions, new)
    if _has_moved(deployment.get("status") or {}, status):
        new = new_condition("Progressing", "True", UPDATED, f"{what} is progressing.", now)
        if known is not None and known.get("status") == "True":
            new["lastTransitionTime"] = known["lastTransitionTime"]
        return [*without(conditions, "Progressing"), new]
    if _has_timed_out(deployment, known, now):
        new = new_condition("Progressing", "False", TIMED_OUT, f"{what} has timed out progressing.", now)
        return with_new(conditions, new)
    return conditions


def is_complete(deployment: Obj, status: Obj) -> bool:
    wanted = replicas_of(deployment)
    return all(
        status.get(key, 0) == wanted for key in ("updatedReplicas", "replicas", "availableReplicas")
    ) and status.get("observedGeneration", 0) >= meta(deployment).get("generation", 0)


def _has_moved(before: Obj, after: Obj) -> bool:
    def old_replicas(status: Obj) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    return old_replicas(after) < old_replicas(before) or any(
        after.get(key, 0) > before.get(key, 0) for key in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _has_timed_out(deployment: Obj, known: Obj | None, now: float) -> bool:
    deadline = progress_deadline(deployment)
    if known is None or deadline is None or known.get("reason") == AVAILABLE:
        return False
    return known.get("reason") == TIMED_OUT or parse_time(known["lastUpdateTime"]) + deadline < now


def seconds_to_deadline(deployment: Obj, status: Obj, now: float) -> float | None:
    """When to check the progress deadline again; None where it does not apply."""
    deadline = progress_deadline(deployment)
    known = next((c for c in status.get("conditions") or () if c["type"] == "Progressing"), None)
    if deadline is None or known is None or dig(deployment, "spec", "paused"):
        return None
    if is_complete(deployment, status) or known.get("reason") in (TIMED_OUT, AVAILABLE):
        return None
    return max(0.0, parse_time(known["lastUpdateTime"]) + deadline - now)


def _replica_failure(sets: list[Obj], newest: Obj | None) -> Obj | None:
    """The newest ReplicaSet's failure to create pods, or else any other's, as a condition of the deployment."""
    first = [newest] if newest is not None else []
    others = [obj for obj in sets if newest is None or uid_of(obj) != uid_of(newest)]
    for obj in (*first, *others):
        found = condition(obj, "ReplicaFailure")
        if found is not None:
            return {
                "type": "ReplicaFailure",
                "status": found["status"],
                "lastUpdateTime": found.get("lastTransitionTime"),
                "lastTransitionTime": found.get("lastTransitionTime"),
                "reason": found.get("reason", ""),
                "message": found.get("message", ""),
            }
    return None
