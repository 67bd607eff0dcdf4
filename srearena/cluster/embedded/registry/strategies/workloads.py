"""Workloads that keep pods running: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController."""

from __future__ import annotations

from collections.abc import Callable

from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.strategies import workload_rules as rules
from srearena.cluster.embedded.registry.strategies.amounts import reading
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items, part
from srearena.cluster.embedded.registry.strategies.pod_defaults import default_claim_spec, default_template
from srearena.cluster.embedded.registry.strategies.pod_warnings import claim_warnings, name_warnings, template_warnings
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_HISTORY = {"revisionHistoryLimit": 10}
# What a status says even when there is nothing to say.
_COUNTED_NODES = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}
_COUNTED_REPLICAS = {"replicas": 0}
_COUNTED_ORDINALS = {"replicas": 0, "availableReplicas": 0}


def _default_deployment(obj: Obj) -> None:
    spec = part(obj, "spec")
    default_template(part(spec, "template"))
    fill(spec, {"replicas": 1, **_HISTORY, "progressDeadlineSeconds": 600})
    _default_rolling(part(spec, "strategy"), {"maxUnavailable": "25%", "maxSurge": "25%"})
    part(obj, "status")


def _default_daemon_set(obj: Obj) -> None:
    spec = part(obj, "spec")
    default_template(part(spec, "template"))
    fill(spec, _HISTORY)
    _default_rolling(part(spec, "updateStrategy"), {"maxUnavailable": 1, "maxSurge": 0})
    fill(part(obj, "status"), _COUNTED_NODES)


def _default_rolling(strategy: Obj, defaults: Obj) -> None:
    fill_empty(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        fill(part(strategy, "rollingUpdate"), defaults)


def _default_stateful_set(obj: Obj) -> None:
    spec = part(obj, "spec")
    default_template(part(spec, "template"))
    fill(spec, {"serviceName": ""})
    fill_empty(spec, {"podManagementPolicy": "OrderedReady"})
    strategy = part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        part(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        fill(strategy["rollingUpdate"], {"partition": 0})
    fill_empty(part(spec, "persistentVolumeClaimRetentionPolicy"), {"whenDeleted": "Retain", "whenScaled": "Retain"})
    fill(spec, {"replicas": 1, **_HISTORY})
    for claim in items(spec, "volumeClaimTemplates"):
        fill_empty(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
        part(claim, "metadata")
        default_claim_spec(part(claim, "spec"))
        fill_empty(part(claim, "status"), {"phase": "Pending"})
    fill(part(obj, "status"), _COUNTED_ORDINALS)


def _default_replica_set(obj: Obj) -> None:
    spec = part(obj, "spec")
    default_template(part(spec, "template"))
    fill(spec, {"replicas": 1})
    fill(part(obj, "status"), _COUNTED_REPLICAS)


def _default_replication_controller(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, {"replicas": 1})
    template = spec.get("template")
    if template is not None:
        default_template(template)
        labels = meta(template).get("labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not meta(obj).get("labels"):
                part(obj, "metadata")["labels"] = dict(labels)
    fill(part(obj, "status"), _COUNTED_REPLICAS)


def _prepare_deployment_update(new: Obj, old: Obj, context: WriteContext) -> None:
    # The rollout controller keeps its bookkeeping in annotations, so a change of those counts as well.
    if (meta(new).get("annotations") or {}) != (meta(old).get("annotations") or {}):
        new["metadata"]["generation"] = meta(old).get("generation", 0) + 1


def _prepare_daemon_set(obj: Obj, context: WriteContext) -> None:
    annotations = part(obj["metadata"], "annotations")
    annotations[TEMPLATE_GENERATION] = "1"


def _prepare_daemon_set_update(new: Obj, old: Obj, context: WriteContext) -> None:
    count = int((meta(old).get("annotations") or {}).get(TEMPLATE_GENERATION, "1"))
    if new["spec"]["template"] != old["spec"]["template"]:
        count += 1
    part(new["metadata"], "annotations")[TEMPLATE_GENERATION] = str(count)


def _counting(counts: Obj) -> Callable[[Obj, Obj, WriteContext], None]:
    """Preparation of a status that always has these counts."""

    def prepare(new: Obj, old: Obj, context: WriteContext) -> None:
        if any(key not in (new.get("status") or {}) for key in counts):
            new["status"] = {**counts, **(new.get("status") or {})}

    return prepare


_POD_NAMES = "Pod names and hostnames"


def _warnings(obj: Obj) -> list[str]:
    template = (obj.get("spec") or {}).get("template") or {}
    return [*name_warnings(obj, _POD_NAMES), *template_warnings(template, "spec.template")]


def _daemon_set_warnings(obj: Obj) -> list[str]:
    return template_warnings((obj.get("spec") or {}).get("template") or {}, "spec.template")


def _stateful_set_warnings(obj: Obj) -> list[str]:
    spec = obj.get("spec") or {}
    found = template_warnings(spec.get("template") or {}, "spec.template")
    for index, claim in enumerate(items(spec, "volumeClaimTemplates")):
        found += claim_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]")
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {text}")
    return found


STRATEGIES = {
    "deployments.apps": Strategy(
        default=reading(_default_deployment),
        prepare_update=_prepare_deployment_update,
        validate=rules.validate_deployment,
        warnings=_warnings,
        validate_update=rules.selector_is_fixed,
    ),
    "replicasets.apps": Strategy(
        default=reading(_default_replica_set),
        prepare_status=_counting(_COUNTED_REPLICAS),
        validate=rules.validate_replica_set,
        warnings=_warnings,
        validate_update=rules.selector_is_fixed,
    ),
    "statefulsets.apps": Strategy(
        default=reading(_default_stateful_set),
        prepare_status=_counting(_COUNTED_ORDINALS),
        validate=rules.validate_stateful_set,
        warnings=_stateful_set_warnings,
        validate_update=rules.validate_stateful_set_update,
        name_errors=names.label_errors,
    ),
    "daemonsets.apps": Strategy(
        default=reading(_default_daemon_set),
        prepare_create=_prepare_daemon_set,
        prepare_update=_prepare_daemon_set_update,
        prepare_status=_counting(_COUNTED_NODES),
        validate=rules.validate_daemon_set,
        warnings=_daemon_set_warnings,
        validate_update=rules.selector_is_fixed,
    ),
    "replicationcontrollers": Strategy(
        default=reading(_default_replication_controller),
        prepare_status=_counting(_COUNTED_REPLICAS),
        validate=rules.validate_replication_controller,
        warnings=_warnings,
    ),
    "controllerrevisions.apps": Strategy(
        validate=rules.validate_revision,
        validate_create=rules.validate_new_revision,
        validate_update=rules.validate_revision_update,
    ),
}
