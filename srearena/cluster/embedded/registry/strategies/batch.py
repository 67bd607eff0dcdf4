"""Jobs and cron jobs."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, meta, name_of, uid_of
from srearena.cluster.embedded.registry.strategies.amounts import reading
from srearena.cluster.embedded.registry.strategies.job_rules import (
    CONTROLLER_UID,
    JOB_NAME,
    LEGACY_CONTROLLER_UID,
    LEGACY_JOB_NAME,
    validate_cron_job,
    validate_job,
    validate_job_update,
    validate_new_cron_job,
    validate_new_job,
)
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items, part
from srearena.cluster.embedded.registry.strategies.pod_defaults import default_template
from srearena.cluster.embedded.registry.strategies.pod_warnings import name_warnings, template_warnings
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_UNLIMITED = 2**31 - 1
_POD_NAMES = "Pod names and hostnames"


def _default_job_spec(spec: Obj) -> None:
    """What a job and the job template of a cron job have in common."""
    default_template(part(spec, "template"))
    for rule in items(spec.get("podFailurePolicy"), "rules"):
        for pattern in items(rule, "onPodConditions"):
            fill_empty(pattern, {"status": "True"})


def _default_job(obj: Obj) -> None:
    spec = part(obj, "spec")
    _default_job_spec(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": 6 if spec.get("backoffLimitPerIndex") is None else _UNLIMITED,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed",
            "manualSelector": False,
        },
    )
    labels = meta(spec["template"]).get("labels")
    if labels and not meta(obj).get("labels"):
        # The very same labels, so that the job shows those that its pods will be found by as well.
        part(obj, "metadata")["labels"] = labels
    part(obj, "status")


def _prepare_job(obj: Obj, context: WriteContext) -> None:
    """A job finds its pods by a label with its own UID, unless its author took that upon themselves."""
    spec = obj["spec"]
    if spec["manualSelector"]:
        return
    labels = part(spec["template"]["metadata"], "labels")
    fill(labels, {LEGACY_JOB_NAME: name_of(obj), JOB_NAME: name_of(obj)})
    fill(labels, {LEGACY_CONTROLLER_UID: uid_of(obj), CONTROLLER_UID: uid_of(obj)})
    fill(part(part(spec, "selector"), "matchLabels"), {CONTROLLER_UID: uid_of(obj)})


def _default_cron_job(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill_empty(spec, {"concurrencyPolicy": "Allow"})
    fill(spec, {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})
    template = part(spec, "jobTemplate")
    part(template, "metadata")
    _default_job_spec(part(template, "spec"))
    part(obj, "status")


def _spec_warnings(spec: Obj, path: str) -> list[str]:
    found: list[str] = []
    many = (spec.get("completions") or 0) > 10**5 and (spec.get("parallelism") or 0) > 10**4
    if spec.get("completionMode") == "Indexed" and many:
        text = (
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
            "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
        found.append(f"{path}: {text}")
    return [*found, *template_warnings(spec.get("template") or {}, f"{path}.template")]


def _job_warnings(obj: Obj) -> list[str]:
    return [*name_warnings(obj, _POD_NAMES), *_spec_warnings(obj.get("spec") or {}, "spec")]


def _cron_job_warnings(obj: Obj) -> list[str]:
    job = ((obj.get("spec") or {}).get("jobTemplate") or {}).get("spec") or {}
    return [*name_warnings(obj, _POD_NAMES), *_spec_warnings(job, "spec.jobTemplate.spec")]


STRATEGIES = {
    "jobs.batch": Strategy(
        default=reading(_default_job),
        prepare_create=_prepare_job,
        defaults_when_read=True,
        validate=validate_job,
        validate_create=validate_new_job,
        validate_update=validate_job_update,
        warnings=_job_warnings,
    ),
    "cronjobs.batch": Strategy(
        default=reading(_default_cron_job),
        validate=validate_cron_job,
        validate_create=validate_new_cron_job,
        warnings=_cron_job_warnings,
    ),
}
