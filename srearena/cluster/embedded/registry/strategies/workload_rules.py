"""What workloads that keep pods running may say, and what of it may change."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from srearena.cluster.embedded.objects import Obj, labels_of, meta
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.selectors import NOTHING, LabelSelector, SelectorError, label_selector_of
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems, in_order, selector_in_order
from srearena.cluster.embedded.registry.strategies.claims import claim_spec
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.pod_spec import check_template

NO_MATCH = "`selector` does not match template `labels`"
_STATEFUL_SET_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_SET_CHANGEABLE = frozenset(
    {
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    }
)


def validate_deployment(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    checks.nonnegative(problems, "spec.replicas", spec.get("replicas"))
    _selected_template(problems, spec, "deployment")
    _deployment_strategy(problems, "spec.strategy", spec.get("strategy") or {})
    ready = spec.get("minReadySeconds") or 0
    checks.nonnegative(problems, "spec.minReadySeconds", ready)
    checks.nonnegative(problems, "spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    checks.nonnegative(problems, "spec.progressDeadlineSeconds", deadline)
    if deadline is not None and deadline <= ready:
        text = "must be greater than minReadySeconds"
        problems.append(FieldError.invalid("spec.progressDeadlineSeconds", deadline, text))
    return problems


def validate_replica_set(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    checks.nonnegative(problems, "spec.replicas", spec.get("replicas"))
    checks.nonnegative(problems, "spec.minReadySeconds", spec.get("minReadySeconds"))
    _selected_template(problems, spec, "deployment")
    return problems


def selector_is_fixed(new: Obj, old: Obj) -> Problems:
    wanted = (new.get("spec") or {}).get("selector")
    if wanted == old["spec"].get("selector"):
        return []
    return [FieldError.invalid("spec.selector", selector_in_order(wanted), checks.IMMUTABLE)]


def _selected_template(problems: Problems, spec: Obj, kind: str) -> None:
    """The selector, the template and how they go together, for what rolls out through ReplicaSets."""
    chosen = _selector(problems, spec, kind, invalid="invalid label selector")
    if chosen is None:
        return
    template = spec.get("template") or {}
    if not chosen.empty:
        _matches(problems, chosen, template)
    check_template(problems, "spec.template", template)
    _always(problems, template, "ReplicaSet")


def _selector(problems: Problems, spec: Obj, kind: str, invalid: str) -> LabelSelector | None:
    """The compiled selector; None where it cannot be one, which has been said then."""
    wanted = spec.get("selector")
    if wanted is None:
        problems.append(FieldError.required("spec.selector"))
        return NOTHING
    checks.selector(problems, "spec.selector", wanted)
    if not wanted.get("matchLabels") and not wanted.get("matchExpressions"):
        problems.append(
            FieldError.invalid("spec.selector", selector_in_order(wanted), f"empty selector is invalid for {kind}")
        )
    try:
        return label_selector_of(wanted)
    except SelectorError:
        problems.append(FieldError.invalid("spec.selector", selector_in_order(wanted), invalid))
        return None


def _matches(problems: Problems, chosen: LabelSelector, template: Obj) -> None:
    if not chosen.matches(labels_of(template)):
        shown = in_order(meta(template).get("labels"))
        problems.append(FieldError.invalid("spec.template.metadata.labels", shown, NO_MATCH))


def _always(problems: Problems, template: Obj, kind: str) -> None:
    """Pods that are kept running restart always and have no deadline."""
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") != "Always":
        where = "spec.template.spec.restartPolicy"
        problems.append(FieldError.not_supported(where, spec.get("restartPolicy") or "", ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        where = "spec.template.spec.activeDeadlineSeconds"
        problems.append(FieldError.forbidden(where, f"activeDeadlineSeconds in {kind} is not Supported"))


def _deployment_strategy(problems: Problems, path: str, strategy: Obj) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            problems.append(FieldError.forbidden(f"{path}.rollingUpdate", text))
    elif kind == "RollingUpdate":
        rolling = rolling or {}
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        checks.positive_number_or_percent(problems, f"{path}.rollingUpdate.maxUnavailable", unavailable)
        checks.positive_number_or_percent(problems, f"{path}.rollingUpdate.maxSurge", surge)
        if _is_nothing(unavailable) and _is_nothing(surge):
            text = "may not be 0 when `maxSurge` is 0"
            problems.append(FieldError.invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, text))
        checks.at_most_hundred_percent(problems, f"{path}.rollingUpdate.maxUnavailable", unavailable)
    else:
        shown = {"Type": kind, "RollingUpdate": _rolling_as_go(rolling)}
        problems.append(FieldError.not_supported(path, shown, ("Recreate", "RollingUpdate")))


def _rolling_as_go(rolling: Obj | None) -> dict[str, Any] | None:
    if rolling is None:
        return None
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


def _is_nothing(amount: int | str | None) -> bool:
    """Whether a number or percentage comes to zero; what is neither is read as zero too."""
    if isinstance(amount, str):
        digits = amount.removesuffix("%")
        return not digits.isascii() or not digits.isdigit() or int(digits) == 0
    return not amount


def validate_daemon_set(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    wanted, template = spec.get("selector"), spec.get("template") or {}
    checks.selector(problems, "spec.selector", wanted)
    with suppress(SelectorError):  # what is wrong with it has been said
        _matches(problems, label_selector_of(wanted), template)
    if wanted is not None and not wanted.get("matchLabels") and not wanted.get("matchExpressions"):
        problems.append(
            FieldError.invalid("spec.selector", selector_in_order(wanted), "empty selector is invalid for daemonset")
        )
    check_template(problems, "spec.template", template)
    _always(problems, template, "DaemonSet")
    checks.nonnegative(problems, "spec.minReadySeconds", spec.get("minReadySeconds"))
    _daemon_strategy(problems, "spec.updateStrategy", spec.get("updateStrategy") or {})
    checks.nonnegative(problems, "spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    return problems


def _daemon_strategy(problems: Problems, path: str, strategy: Obj) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate") or {}
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": _rolling_as_go(strategy.get("rollingUpdate"))}
        problems.append(FieldError.not_supported(path, shown, ("RollingUpdate", "OnDelete")))
        return
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    for check in (checks.positive_number_or_percent, checks.at_most_hundred_percent):
        check(problems, f"{path}.rollingUpdate.maxUnavailable", unavailable)
        check(problems, f"{path}.rollingUpdate.maxSurge", surge)
    if not _is_nothing(unavailable) and not _is_nothing(surge):
        text = "may not be set when maxUnavailable is non-zero"
        problems.append(FieldError.invalid(f"{path}.rollingUpdate.maxSurge", surge, text))
    elif _is_nothing(unavailable) and _is_nothing(surge):
        text = "cannot be 0 when maxSurge is 0"
        problems.append(FieldError.required(f"{path}.rollingUpdate.maxUnavailable", text))


def validate_stateful_set(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy") or ""
    if policy not in ("OrderedReady", "Parallel"):
        text = "must be 'OrderedReady' or 'Parallel'"
        problems.append(FieldError.invalid("spec.podManagementPolicy", policy, text))
    _stateful_strategy(problems, "spec.updateStrategy", spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        where = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
        checks.one_of(problems, where, retention.get(key) or "", ("Retain", "Delete"))
    claims = items(spec, "volumeClaimTemplates")
    for index, claim in enumerate(claims):
        claim_spec(problems, f"spec.volumeClaimTemplates[{index}].spec", claim.get("spec") or {})
    checks.nonnegative(problems, "spec.replicas", spec.get("replicas"))
    checks.nonnegative(problems, "spec.minReadySeconds", spec.get("minReadySeconds"))
    checks.nonnegative(problems, "spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    if spec.get("serviceName"):
        checks.label(problems, "spec.serviceName", spec["serviceName"])
    template = spec.get("template") or {}
    chosen = _selector(problems, spec, "statefulset", invalid="")
    if chosen is not None:
        if not chosen.empty:
            _matches(problems, chosen, template)
        check_template(problems, "spec.template", _as_a_pod_of(template, claims))
    _always(problems, template, "StatefulSet")
    return problems


def _as_a_pod_of(template: Obj, claims: list[Obj]) -> Obj:
    """The template as its pods will be: named by the set, with a volume for every claim template."""
    pod_spec = template.get("spec") or {}
    if not claims and not pod_spec.get("hostname") and not pod_spec.get("subdomain"):
        return template
    named = {(claim.get("metadata") or {}).get("name") or "" for claim in claims}
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(named)]
    kept = [volume for volume in items(pod_spec, "volumes") if (volume.get("name") or "") not in named]
    return {**template, "spec": {**pod_spec, "hostname": "", "subdomain": "", "volumes": [*added, *kept]}}


def _stateful_strategy(problems: Problems, path: str, strategy: Obj) -> None:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        checks.nonnegative(problems, f"{path}.rollingUpdate.partition", (rolling or {}).get("partition"))
    elif kind == "OnDelete":
        if rolling is not None:
            text = "only allowed for updateStrategy 'RollingUpdate'"
            problems.append(FieldError.invalid(f"{path}.rollingUpdate", _partition_as_go(rolling), text))
    else:
        shown = {"Type": kind, "RollingUpdate": None if rolling is None else _partition_as_go(rolling)}
        problems.append(FieldError.invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))


def _partition_as_go(rolling: Obj) -> Obj:
    return {"Partition": rolling.get("partition") or 0, "MaxUnavailable": None}


def validate_stateful_set_update(new: Obj, old: Obj) -> Problems:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    fixed = {*spec, *before} - _STATEFUL_SET_CHANGEABLE
    if any((spec.get(key) or None) != (before.get(key) or None) for key in fixed):
        return [FieldError.forbidden("spec", _STATEFUL_SET_FIXED)]
    return []


def validate_replication_controller(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    checks.nonnegative(problems, "spec.minReadySeconds", spec.get("minReadySeconds"))
    wanted, template = spec.get("selector") or {}, spec.get("template")
    if not wanted:
        problems.append(FieldError.required("spec.selector"))
    checks.nonnegative(problems, "spec.replicas", spec.get("replicas"))
    if template is None:
        problems.append(FieldError.required("spec.template"))
        return problems
    labels = labels_of(template)
    if wanted and any(labels.get(key) != value for key, value in wanted.items()):
        problems.append(
            FieldError.invalid("spec.template.metadata.labels", in_order(meta(template).get("labels")), NO_MATCH)
        )
    check_template(problems, "spec.template", template)
    _always(problems, template, "ReplicationController")
    return problems


def validate_revision(obj: Obj) -> Problems:
    problems: Problems = []
    checks.nonnegative(problems, "revision", obj.get("revision"))
    return problems


def validate_new_revision(obj: Obj) -> Problems:
    data = obj.get("data")
    if data is None:
        return [FieldError.required("data", "data is mandatory")]
    return [] if isinstance(data, dict) else [FieldError.required("data", "data must be a valid JSON object")]


def validate_revision_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    checks.immutable(problems, "data", new.get("data"), old.get("data"))
    return problems
