"""What a deployment says of itself: counts, availability, and whether its rollout gets anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.controllers.deployment_rollout import bounds_of
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, condition, dig, key_of, meta, name_of, uid_of, with_condition

if TYPE_CHECKING:
    from srearena.cluster.embedded.controllers.controller import Controller

RESOURCE = "deployments.apps"
_TIMED_OUT = "ProgressDeadlineExceeded"
_CREATED = "NewReplicaSetCreated"
_FOUND = "FoundNewReplicaSet"
_AVAILABLE = "NewReplicaSetAvailable"
_UPDATED = "ReplicaSetUpdated"
_PAUSED = "DeploymentPaused"
_RESUMED = "DeploymentResumed"


class DeploymentStatus:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    # Moments of a rollout

    def note_created(self, deployment: Obj, replica_set: Obj) -> None:
        self._progress(deployment, "True", _CREATED, f'Created new replica set "{name_of(replica_set)}"')

    def note_found(self, deployment: Obj, replica_set: Obj) -> None:
        if condition(deployment, "Progressing") is None:
            self._progress(deployment, "True", _FOUND, f'Found new replica set "{name_of(replica_set)}"')

    def note_failure(self, deployment: Obj, message: str) -> None:
        self._progress(deployment, "False", "ReplicaSetCreateError", message)

    def note_paused(self, deployment: Obj) -> None:
        known = condition(deployment, "Progressing")
        if known is not None and known.get("reason") not in (_TIMED_OUT, _PAUSED):
            self._progress(deployment, "Unknown", _PAUSED, "Deployment is paused")

    def _progress(self, deployment: Obj, status: str, reason: str, message: str) -> None:
        if dig(deployment, "spec", "progressDeadlineSeconds") is None:
            return
        current = self._controller.store.get(RESOURCE, meta(deployment)["namespace"], name_of(deployment))
        if current is None:
            return
        state = dict(current.get("status") or {})
        state["conditions"] = self._with(state.get("conditions") or [], "Progressing", status, reason, message)
        self._controller.client.set_status(RESOURCE, current, state)

    def _with(self, conditions: list[Obj], kind: str, status: str, reason: str, message: str) -> list[Obj]:
        now = self._controller.clock.timestamp()
        new = {"type": kind, "status": status, "reason": reason, "message": message, "lastUpdateTime": now}
        known = next((c for c in conditions if c["type"] == kind), None)
        if known is not None and (known["status"], known["reason"], known["message"]) == (status, reason, message):
            return conditions
        return with_condition(conditions, new, now)

    # The whole

    def sync(self, deployment: Obj, sets: list[Obj], newest: Obj | None) -> None:
        """Write the status if it changed."""
        before = deployment.get("status") or {}
        available = sum(dig(obj, "status", "availableReplicas", default=0) for obj in sets)
        total = sum(dig(obj, "status", "replicas", default=0) for obj in sets)
        wanted = dig(deployment, "spec", "replicas", default=1)
        counts = {
            "replicas": total,
            "updatedReplicas": dig(newest, "status", "replicas", default=0) if newest is not None else 0,
            "readyReplicas": sum(dig(obj, "status", "readyReplicas", default=0) for obj in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum(dig(obj, "spec", "replicas", default=0) for obj in sets) - available),
        }
        status: Obj = {
            "observedGeneration": meta(deployment).get("generation", 1),
            **{key: value for key, value in counts.items() if value},
        }
        if before.get("collisionCount"):
            status["collisionCount"] = before["collisionCount"]
        conditions = list(before.get("conditions") or [])
        if available >= wanted - bounds_of(deployment).unavailable:
            text = "Deployment has minimum availability."
            conditions = self._with(conditions, "Available", "True", "MinimumReplicasAvailable", text)
        else:
            text = "Deployment does not have minimum availability."
            conditions = self._with(conditions, "Available", "False", "MinimumReplicasUnavailable", text)
        conditions = self._progressed(deployment, before, counts, newest, conditions)
        conditions = self._failed(sets, newest, conditions)
        status["conditions"] = conditions
        if status != before:
            self._controller.client.set_status(RESOURCE, deployment, status)

    def _progressed(
        self, deployment: Obj, before: Obj, counts: dict[str, int], newest: Obj | None, conditions: list[Obj]
    ) -> list[Obj]:
        deadline = dig(deployment, "spec", "progressDeadlineSeconds")
        if deadline is None:
            return [c for c in conditions if c["type"] != "Progressing"]
        if dig(deployment, "spec", "paused"):
            return conditions
        known = next((c for c in conditions if c["type"] == "Progressing"), None)
        if known is not None and known["reason"] == _PAUSED:
            conditions = self._with(conditions, "Progressing", "Unknown", _RESUMED, "Deployment is resumed")
            known = next(c for c in conditions if c["type"] == "Progressing")
        what = f'ReplicaSet "{name_of(newest)}"' if newest is not None else f'Deployment "{name_of(deployment)}"'
        wanted = dig(deployment, "spec", "replicas", default=1)
        current = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted
        observed = dig(newest, "spec", "replicas") == wanted if newest is not None else False
        if current and observed:
            return self._with(conditions, "Progressing", "True", _AVAILABLE, f"{what} has successfully progressed.")
        if known is not None and known["reason"] == _AVAILABLE and _same_counts(before, counts):
            return conditions  # it once was complete; a pod that fails later is no rollout
        if _advanced(before, counts):
            # Progress moves lastUpdateTime, which the deadline is counted from, also where nothing else changes.
            text = f"{what} is progressing."
            rest = [c for c in conditions if c["type"] != "Progressing"]
            status = "True"
            moved = {
                "type": "Progressing",
                "status": status,
                "reason": _UPDATED,
                "message": text,
                "lastUpdateTime": self._controller.clock.timestamp(),
                "lastTransitionTime": (known or {}).get("lastTransitionTime", self._controller.clock.timestamp())
                if (known or {}).get("status") == status
                else self._controller.clock.timestamp(),
            }
            conditions = [*rest, moved]
            known = moved
        return self._check_deadline(deployment, deadline, what, known, conditions)

    def _check_deadline(
        self, deployment: Obj, deadline: int, what: str, known: Obj | None, conditions: list[Obj]
    ) -> list[Obj]:
        if known is None or known["reason"] in (_TIMED_OUT, _AVAILABLE):
            return conditions
        left = parse_time(known["lastUpdateTime"]) + deadline - self._controller.clock.now
        if left > 0:
            self._controller.enqueue(key_of(deployment), left + 0.001)
            return conditions
        return self._with(conditions, "Progressing", "False", _TIMED_OUT, f"{what} has timed out progressing.")

    def _failed(self, sets: list[Obj], newest: Obj | None, conditions: list[Obj]) -> list[Obj]:
        ordered = [
            *([newest] if newest is not None else []),
            *(o for o in sets if newest is None or uid_of(o) != uid_of(newest)),
        ]
        for obj in ordered:
            failure = condition(obj, "ReplicaFailure")
            if failure is not None and failure.get("status") == "True":
                return self._with(conditions, "ReplicaFailure", "True", failure["reason"], failure["message"])
        return [c for c in conditions if c["type"] != "ReplicaFailure"]


def _same_counts(before: Obj, counts: dict[str, int]) -> bool:
    return all(before.get(key, 0) == counts[key] for key in ("updatedReplicas", "replicas"))


def _advanced(before: Obj, counts: dict[str, int]) -> bool:
    """Whether the rollout moved since the status was last written."""
    old_before: int = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    old_now = counts["replicas"] - counts["updatedReplicas"]
    return bool(
        counts["updatedReplicas"] > before.get("updatedReplicas", 0)
        or old_now < old_before
        or counts["readyReplicas"] > before.get("readyReplicas", 0)
        or counts["availableReplicas"] > before.get("availableReplicas", 0)
    )
