"""Families about workloads: deployments, replica sets, stateful sets, daemon sets."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Kind,
    Reading,
    conditions,
    created,
    generation,
    info,
    named,
    number,
    observed,
    owners,
    truth,
)


def _scaled(name: str, help: str, field: str, *, up: bool) -> Family:
    """Return a bound of a rolling update in pods, from a number or a percentage."""

    def read(deployment: Obj) -> Iterable[Reading]:
        bound = dig(deployment, "spec", "strategy", "rollingUpdate", field)
        if bound is None:
            return ()
        if isinstance(bound, str):
            exact = dig(deployment, "spec", "replicas", default=0) * float(bound.rstrip("%")) / 100
            return (({}, float(ceil(exact) if up else floor(exact))),)
        return (({}, float(bound)),)

    return Family(name, help, read)


def _paused(deployment: Obj) -> Iterable[Reading]:
    return (({}, truth(dig(deployment, "spec", "paused"))),)


def _replicas(prefix: str, **fields: str) -> tuple[Family, ...]:
    """Counts of pods in an object's status, by the end of the metric's name."""
    return tuple(
        number(f"{prefix}_{end}", f"Pods by status: {field}.", "status", field) for end, field in fields.items()
    )


def _retention(stateful_set: Obj) -> Iterable[Reading]:
    policy = dig(stateful_set, "spec", "persistentVolumeClaimRetentionPolicy")
    if not policy:
        return ()
    labels = {"when_deleted": policy.get("whenDeleted") or "", "when_scaled": policy.get("whenScaled") or ""}
    return ((labels, 1.0),)


_D, _R, _S, _DS = "kube_deployment", "kube_replicaset", "kube_statefulset", "kube_daemonset"

DEPLOYMENTS = Kind(
    "deployments.apps",
    named("deployment"),
    (
        created(_D),
        *_replicas(
            _D,
            status_replicas="replicas",
            status_replicas_ready="readyReplicas",
            status_replicas_available="availableReplicas",
            status_replicas_unavailable="unavailableReplicas",
            status_replicas_updated="updatedReplicas",
        ),
        observed(_D),
        conditions(f"{_D}_status_condition", "Conditions of the deployment."),
        number(f"{_D}_spec_replicas", "Desired pods.", "spec", "replicas"),
        Family(f"{_D}_spec_paused", "Whether the rollout is paused.", _paused),
        _scaled(
            f"{_D}_spec_strategy_rollingupdate_max_unavailable",
            "How many pods may be missing during an update.",
            "maxUnavailable",
            up=False,
        ),
        _scaled(
            f"{_D}_spec_strategy_rollingupdate_max_surge",
            "How many pods too many there may be during an update.",
            "maxSurge",
            up=True,
        ),
        generation(_D),
    ),
)

REPLICA_SETS = Kind(
    "replicasets.apps",
    named("replicaset"),
    (
        created(_R),
        *_replicas(
            _R,
            status_replicas="replicas",
            status_fully_labeled_replicas="fullyLabeledReplicas",
            status_ready_replicas="readyReplicas",
        ),
        observed(_R),
        number(f"{_R}_spec_replicas", "Desired pods.", "spec", "replicas", default=None),
        generation(_R),
        owners(f"{_R}_owner"),
    ),
)

STATEFUL_SETS = Kind(
    "statefulsets.apps",
    named("statefulset"),
    (
        created(_S),
        *_replicas(
            _S,
            status_replicas="replicas",
            status_replicas_available="availableReplicas",
            status_replicas_current="currentReplicas",
            status_replicas_ready="readyReplicas",
            status_replicas_updated="updatedReplicas",
        ),
        observed(_S),
        number(f"{_S}_replicas", "Desired pods.", "spec", "replicas", default=None),
        number(f"{_S}_ordinals_start", "The first pod's number.", "spec", "ordinals", "start", default=None),
        generation(_S),
        Family(
            f"{_S}_persistentvolumeclaim_retention_policy",
            "What becomes of claims the set no longer needs.",
            _retention,
        ),
        info(f"{_S}_status_current_revision", "The template of older pods.", revision=("status", "currentRevision")),
        info(f"{_S}_status_update_revision", "The template of newer pods.", revision=("status", "updateRevision")),
    ),
)

DAEMON_SETS = Kind(
    "daemonsets.apps",
    named("daemonset"),
    (
        created(_DS),
        *_replicas(
            _DS,
            status_current_number_scheduled="currentNumberScheduled",
            status_desired_number_scheduled="desiredNumberScheduled",
            status_number_available="numberAvailable",
            status_number_misscheduled="numberMisscheduled",
            status_number_ready="numberReady",
            status_number_unavailable="numberUnavailable",
            status_updated_number_scheduled="updatedNumberScheduled",
        ),
        observed(_DS),
        generation(_DS),
    ),
)

KINDS = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS)
