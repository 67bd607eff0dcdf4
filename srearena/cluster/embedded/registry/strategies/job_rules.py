"""What jobs and cron jobs may say, and what of it may change."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig, labels_of, meta, name_of, uid_of
from srearena.cluster.embedded.registry import cron, names
from srearena.cluster.embedded.registry.errors import OMITTED, FieldError
from srearena.cluster.embedded.registry.selectors import SelectorError, label_selector_of
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems, in_order, selector_in_order
from srearena.cluster.embedded.registry.strategies.go_shapes import same, shape_of
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.pod_spec import check_template
from srearena.cluster.embedded.registry.strategies.workload_rules import NO_MATCH

JOB_NAME = "batch.kubernetes.io/job-name"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
LEGACY_JOB_NAME = "job-name"
LEGACY_CONTROLLER_UID = "controller-uid"

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MOST_INDEXES = 100_000
_MOST_INDEXES_AT_ONCE = 10_000
_MOST_RULES = 20
_MOST_EXIT_CODES = 255
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")


def validate_new_job(obj: Obj) -> Problems:
    """The pods of an indexed job must have hostnames."""
    problems: Problems = []
    spec = obj.get("spec") or {}
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        last = f"{name_of(obj)}-{completions - 1}"
        if names.label_errors(last):
            text = f"will not able to create pod with invalid DNS label: {last}"
            problems.append(FieldError.invalid("metadata.name", name_of(obj), text))
    return problems


def _generated_selector(problems: Problems, obj: Obj) -> None:
    labels = labels_of(obj["spec"].get("template") or {})
    expected = {
        LEGACY_CONTROLLER_UID: uid_of(obj),
        LEGACY_JOB_NAME: name_of(obj),
        CONTROLLER_UID: uid_of(obj),
        JOB_NAME: name_of(obj),
    }
    for key, value in expected.items():
        where = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            problems.append(FieldError.required(where, f"must be '{value}'"))
        elif labels[key] != value:
            problems.append(FieldError.invalid(where, in_order(labels), f"must be '{value}'"))
    wanted = obj["spec"]["selector"]
    try:
        generated = label_selector_of(wanted).matches(expected)
    except SelectorError:
        return
    if not generated:
        problems.append(FieldError.invalid("spec.selector", selector_in_order(wanted), "`selector` not auto-generated"))


def validate_job(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    wanted = spec.get("selector")
    if not spec.get("manualSelector") and wanted is not None:
        _generated_selector(problems, obj)
    _job_spec(problems, "spec", spec)
    if wanted is None:
        problems.append(FieldError.required("spec.selector"))
    checks.selector(problems, "spec.selector", wanted)
    template = spec.get("template") or {}
    try:
        if not label_selector_of(wanted).matches(labels_of(template)):
            shown = in_order(meta(template).get("labels"))
            problems.append(FieldError.invalid("spec.template.metadata.labels", shown, NO_MATCH))
    except SelectorError:
        return problems  # what is wrong with it has been said
    return problems


def _job_spec(problems: Problems, path: str, spec: Obj) -> None:
    for key in _COUNTS:
        checks.nonnegative(problems, f"{path}.{key}", spec.get(key))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        problems.append(FieldError.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        checks.domain_prefixed_path(problems, f"{path}.managedBy", spec["managedBy"])
        if len(spec["managedBy"]) > 63:
            problems.append(FieldError.too_long(f"{path}.managedBy", 63))
    mode = spec.get("completionMode")
    if mode is not None:
        checks.one_of(problems, f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        _indexed(problems, path, spec)
    elif mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                problems.append(FieldError.invalid(f"{path}.{key}", spec[key], "requires indexed completion mode"))
    if spec.get("podFailurePolicy") is not None:
        _failure_policy(problems, f"{path}.podFailurePolicy", spec)
    if spec.get("successPolicy") is not None:
        _success_policy(problems, f"{path}.successPolicy", spec)
    _replacement_policy(problems, f"{path}.podReplacementPolicy", spec)
    template = spec.get("template") or {}
    check_template(problems, f"{path}.template", template)
    where, policy = f"{path}.template.spec.restartPolicy", dig(template, "spec", "restartPolicy", default="")
    if policy in ("", "Always"):
        problems.append(FieldError.required(where, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        problems.append(FieldError.not_supported(where, policy, ("OnFailure", "Never")))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        text = 'only "Never" is supported when podFailurePolicy is specified'
        problems.append(FieldError.invalid(where, policy, text))


def _indexed(problems: Problems, path: str, spec: Obj) -> None:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        problems.append(FieldError.required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MOST_INDEXES:
        text = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
        problems.append(FieldError.invalid(f"{path}.parallelism", parallelism, text))
    if failed is not None and completions is not None and failed > completions:
        text = "must be less than or equal to completions"
        problems.append(FieldError.invalid(f"{path}.maxFailedIndexes", failed, text))
    if failed is not None and failed > _MOST_INDEXES:
        text = f"must be less than or equal to {_MOST_INDEXES}"
        problems.append(FieldError.invalid(f"{path}.maxFailedIndexes", failed, text))
    if (completions or 0) > _MOST_INDEXES and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            text = f"must be specified when completions is above {_MOST_INDEXES}"
            problems.append(FieldError.required(f"{path}.maxFailedIndexes", text))
        text = (
            f"must be less than or equal to {_MOST_INDEXES_AT_ONCE} when completions are above {_MOST_INDEXES} and "
            "used with backoff limit per index"
        )
        for key, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
            if value > _MOST_INDEXES_AT_ONCE:
                problems.append(FieldError.invalid(f"{path}.{key}", value, text))


def _failure_policy(problems: Problems, path: str, spec: Obj) -> None:
    rules = items(spec["podFailurePolicy"], "rules")
    if len(rules) > _MOST_RULES:
        problems.append(FieldError.too_many(f"{path}.rules", len(rules), _MOST_RULES))
    pod_spec = dig(spec, "template", "spec", default={})
    known = {c.get("name") or "" for key in ("containers", "initContainers") for c in items(pod_spec, key)}
    for index, rule in enumerate(rules):
        where = f"{path}.rules[{index}]"
        _failure_action(problems, f"{where}.action", rule.get("action") or "", spec)
        codes, conditions = rule.get("onExitCodes"), items(rule, "onPodConditions")
        if codes is not None:
            _exit_codes(problems, f"{where}.onExitCodes", codes, known)
        if len(conditions) > _MOST_RULES:
            problems.append(FieldError.too_many(f"{where}.onPodConditions", len(conditions), _MOST_RULES))
        for number, pattern in enumerate(conditions):
            place = f"{where}.onPodConditions[{number}]"
            checks.qualified_name(problems, f"{place}.type", pattern.get("type") or "")
            checks.one_of(problems, f"{place}.status", pattern.get("status") or "", _STATUSES)
        if codes is not None and conditions:
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            problems.append(FieldError.invalid(where, OMITTED, text))
        if codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            problems.append(FieldError.invalid(where, OMITTED, text))


def _failure_action(problems: Problems, path: str, action: str, spec: Obj) -> None:
    if not action:
        valid = " ".join(map(quoted, _ACTIONS))
        problems.append(FieldError.required(path, f"valid values: [{valid}]"))
    elif action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            problems.append(FieldError.invalid(path, action, "requires the backoffLimitPerIndex to be set"))
    else:
        checks.one_of(problems, path, action, _ACTIONS)


def _exit_codes(problems: Problems, path: str, rule: Obj, known: set[str]) -> None:
    operator, container, values = rule.get("operator") or "", rule.get("containerName"), items(rule, "values")
    if not operator:
        problems.append(FieldError.required(f"{path}.operator", 'valid values: ["In" "NotIn"]'))
    else:
        checks.one_of(problems, f"{path}.operator", operator, ("In", "NotIn"))
    if container is not None and container not in known:
        text = "must be one of the container or initContainer names in the pod template"
        problems.append(FieldError.invalid(f"{path}.containerName", container, text))
    if not values:
        problems.append(FieldError.invalid(f"{path}.values", rule.get("values"), "at least one value is required"))
    elif len(values) > _MOST_EXIT_CODES:
        problems.append(FieldError.too_many(f"{path}.values", len(values), _MOST_EXIT_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            problems.append(FieldError.invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            problems.append(FieldError.duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    if any(left > right for left, right in pairwise(values)):
        problems.append(FieldError.invalid(f"{path}.values", values, "must be ordered"))


def _success_policy(problems: Problems, path: str, spec: Obj) -> None:
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        rules = policy.get("rules")
        shown = {
            "Rules": rules
            and [
                {"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
                for rule in rules
            ]
        }
        problems.append(FieldError.invalid(path, shown, "requires indexed completion mode"))
        return
    rules = items(policy, "rules")
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        problems.append(FieldError.required(f"{path}.rules", text))
    if len(rules) > _MOST_RULES:
        problems.append(FieldError.too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        _success_rule(problems, f"{path}.rules[{index}]", rule, spec.get("completions") or 0)


def _success_rule(problems: Problems, path: str, rule: Obj, completions: int) -> None:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        problems.append(FieldError.required(path, text))
    total = 0
    if indexes is not None:
        total, error = _count_indexes(indexes, completions)
        if error:
            text = f"error parsing succeededIndexes: {error}"
            problems.append(FieldError.invalid(f"{path}.succeededIndexes", indexes, text))
    if count is not None:
        checks.nonnegative(problems, f"{path}.succeededCount", count)
        text = "must be less than or equal to {} (the number of {})"
        if count > completions:
            shown = text.format(completions, "specified completions")
            problems.append(FieldError.invalid(f"{path}.succeededCount", count, shown))
        if indexes is not None and count > total:
            shown = text.format(total, "indexes in the specified succeededIndexes field")
            problems.append(FieldError.invalid(f"{path}.succeededCount", count, shown))


def _count_indexes(text: str, completions: int) -> tuple[int, str]:
    """How many indexes `0,2-4` names, and what is wrong with it."""
    total, last = 0, -1
    for interval in text.split(",") if text else ():
        ends = interval.split("-")
        if len(ends) > 2:
            rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
            return 0, f"the fragment {quoted(interval)} {rule}"
        for end in ends:
            if not end.isascii() or not end.isdigit():
                return 0, f"cannot convert string to integer for index: {quoted(end)}"
            if int(end) >= completions:
                return 0, f"too large index: {quoted(end)}"
        first, final = int(ends[0]), int(ends[-1])
        if len(ends) == 2 and first >= final:
            return 0, f"non-increasing order, previous: {first}, current: {final}"
        if last >= first:
            return 0, f"non-increasing order, previous: {last}, current: {first}"
        total += final - first + 1
        last = final
    return total, ""


def _replacement_policy(problems: Problems, path: str, spec: Obj) -> None:
    policy = spec.get("podReplacementPolicy")
    if policy is not None:
        strict = spec.get("podFailurePolicy") is not None
        checks.one_of(problems, path, policy, ("Failed",) if strict else ("Failed", "TerminatingOrFailed"))


def validate_job_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _completions_change(problems, spec, before)
    if spec.get("selector") != before.get("selector"):
        shown = selector_in_order(spec.get("selector"))
        problems.append(FieldError.invalid("spec.selector", shown, checks.IMMUTABLE))
    template, was = spec.get("template") or {}, before.get("template") or {}
    if before.get("suspend") and dig(old, "status", "startTime") is None:
        was = _with_placement_of(was, template)
    if not same("PodTemplateSpec", template, was):
        shown = shape_of("PodTemplateSpec", template)
        problems.append(FieldError.invalid("spec.template", shown, checks.IMMUTABLE))
    for key in _FIXED:
        checks.immutable(problems, f"spec.{key}", spec.get(key), before.get(key))
    return problems


def _completions_change(problems: Problems, spec: Obj, before: Obj) -> None:
    completions, was = spec.get("completions"), before.get("completions")
    if completions == was:
        return
    if spec.get("completionMode") != "Indexed":
        problems.append(FieldError.invalid("spec.completions", completions, checks.IMMUTABLE))
    elif completions is not None and completions != spec.get("parallelism"):
        text = "can only be modified in tandem with spec.parallelism"
        problems.append(FieldError.invalid("spec.completions", completions, text))


def _with_placement_of(template: Obj, other: Obj) -> Obj:
    """The template with what decides where its pods go taken from another: changeable before a job first starts."""
    metadata: dict[str, Any] = {**(template.get("metadata") or {})}
    spec: dict[str, Any] = {**(template.get("spec") or {})}
    wanted = other.get("spec") or {}
    for holder, source, keys in (
        (metadata, other.get("metadata") or {}, ("labels", "annotations")),
        (spec, wanted, ("nodeSelector", "tolerations", "schedulingGates")),
    ):
        for key in keys:
            holder.pop(key, None)
            if key in source:
                holder[key] = source[key]
    rest = {key: value for key, value in (spec.get("affinity") or {}).items() if key != "nodeAffinity"}
    spec.pop("affinity", None)
    if (wanted.get("affinity") or {}).get("nodeAffinity") is not None:
        rest["nodeAffinity"] = wanted["affinity"]["nodeAffinity"]
    if rest or "affinity" in wanted:
        spec["affinity"] = rest
    return {**template, "metadata": metadata, "spec": spec}


def validate_cron_job(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    if checks.required(problems, "spec.schedule", schedule):
        try:
            cron.parse(schedule)
        except cron.CronError as error:
            problems.append(FieldError.invalid("spec.schedule", schedule, str(error)))
        if "TZ" in schedule:
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            problems.append(FieldError.invalid("spec.schedule", schedule, text))
    checks.nonnegative(problems, "spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if zone is not None:
        _time_zone(problems, "spec.timeZone", zone)
    checks.required_one_of(problems, "spec.concurrencyPolicy", spec.get("concurrencyPolicy"), _CONCURRENCY)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    _job_spec(problems, "spec.jobTemplate.spec", job)
    if job.get("selector") is not None:
        text = "`selector` will be auto-generated"
        problems.append(FieldError.invalid("spec.jobTemplate.spec.selector", job["selector"], text))
    if job.get("manualSelector"):
        problems.append(FieldError.not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        checks.nonnegative(problems, f"spec.{key}", spec.get(key))
    return problems


def validate_new_cron_job(obj: Obj) -> Problems:
    """A job's name is the cron job's and eleven characters more."""
    name = name_of(obj)
    if len(name) > 52:
        return [FieldError.invalid("metadata.name", name, "must be no more than 52 characters")]
    return []


def _time_zone(problems: Problems, path: str, zone: str) -> None:
    if not zone:
        problems.append(FieldError.invalid(path, zone, "timeZone must be nil or non-empty string"))
        return
    for piece in zone.split("/"):
        if piece in (".", "..") or piece.startswith("-") or not _ZONE_PART.fullmatch(piece):
            problems.append(FieldError.invalid(path, zone, f"unknown time zone {zone}"))
            return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        problems.append(FieldError.invalid(path, zone, text))
    try:
        cron.zone_named(zone)
    except cron.CronError as error:
        problems.append(FieldError.invalid(path, zone, str(error)))
