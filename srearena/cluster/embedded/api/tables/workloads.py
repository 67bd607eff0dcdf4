"""Tables of what runs pods: the kinds of apps and batch, replication controllers and pod templates."""

from __future__ import annotations

from typing import Final

from srearena.cluster.embedded.api.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    age_at,
    condition,
    count_at,
    labels_at,
    number,
    number_at,
    printer,
    selector_at,
    template_columns,
    text,
    text_at,
    wide,
)
from srearena.cluster.embedded.durations import human_duration, moment_of
from srearena.cluster.embedded.objects import Obj, controller_of, dig

_TEMPLATE: Final = template_columns("spec", "template")
_SELECTOR: Final = wide("Selector", "Labels of the pods it counts as its own.", selector_at("spec", "selector"))


def _ready_of_desired(obj: Obj, now: float) -> str:
    return f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas', missing=1)}"


def _desired(obj: Obj, now: float) -> int:
    return number(obj, "spec", "replicas", missing=1)


_READY: Final = Column("Ready", "string", "Ready pods, of those desired.", _ready_of_desired)

DEPLOYMENTS: Final = printer(
    NAME,
    _READY,
    Column("Up-to-date", "string", "Pods of the current template.", number_at("status", "updatedReplicas")),
    Column("Available", "string", "Pods ready for long enough.", number_at("status", "availableReplicas")),
    AGE,
    *_TEMPLATE,
    wide(
        "Selector",
        "Labels of the pods it counts as its own.",
        selector_at("spec", "selector", empty="", wrong="<invalid>"),
    ),
)

_REPLICAS: Final = (
    Column("Desired", "integer", "Pods wanted.", _desired),
    Column("Current", "integer", "Pods that exist.", number_at("status", "replicas")),
    Column("Ready", "integer", "Pods that are ready.", number_at("status", "readyReplicas")),
)
REPLICA_SETS: Final = printer(NAME, *_REPLICAS, AGE, *_TEMPLATE, _SELECTOR)
REPLICATION_CONTROLLERS: Final = printer(
    NAME,
    *_REPLICAS,
    AGE,
    *_TEMPLATE,
    wide("Selector", "Labels of the pods it counts as its own.", labels_at("spec", "selector")),
)
STATEFUL_SETS: Final = printer(NAME, _READY, AGE, *_TEMPLATE)
DAEMON_SETS: Final = printer(
    NAME,
    Column("Desired", "integer", "Nodes that should run the pod.", number_at("status", "desiredNumberScheduled")),
    Column("Current", "integer", "Nodes that run the pod and should.", number_at("status", "currentNumberScheduled")),
    Column("Ready", "integer", "Nodes on which the pod is ready.", number_at("status", "numberReady")),
    Column("Up-to-date", "integer", "Nodes on the current template.", number_at("status", "updatedNumberScheduled")),
    Column(
        "Available", "integer", "Nodes where the pod is ready for long enough.", number_at("status", "numberAvailable")
    ),
    Column(
        "Node Selector",
        "string",
        "Labels a node must have to run the pod.",
        labels_at("spec", "template", "spec", "nodeSelector"),
    ),
    AGE,
    *_TEMPLATE,
    _SELECTOR,
)


def _controller(obj: Obj, now: float) -> str:
    owners = dig(obj, "metadata", "ownerReferences")
    if not isinstance(owners, list) or not all(isinstance(owner, dict) for owner in owners):
        return NONE
    owner = controller_of(obj)
    if owner is None:
        return NONE
    group, slash, _ = text(owner, "apiVersion").partition("/")
    kind = f"{text(owner, 'kind')}.{group}" if slash else text(owner, "kind")
    return f"{kind.lower()}/{text(owner, 'name')}"


CONTROLLER_REVISIONS: Final = printer(
    NAME,
    Column("Controller", "string", "Who keeps this revision.", _controller),
    Column("Revision", "string", "Number of the revision.", number_at("revision")),
    AGE,
)

# Conditions in the order in which they decide; a deleted job counts as terminating before it counts as suspended.
_JOB_ENDINGS: Final = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_STATES: Final = (
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job_holds(obj: Obj, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def _job_status(obj: Obj, now: float) -> str:
    for kind, shown in _JOB_ENDINGS:
        if _job_holds(obj, kind):
            return shown
    if dig(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    for kind, shown in _JOB_STATES:
        if _job_holds(obj, kind):
            return shown
    return "Running"


def _job_completions(obj: Obj, now: float) -> str:
    succeeded = number(obj, "status", "succeeded")
    wanted = dig(obj, "spec", "completions")
    if type(wanted) is int:
        return f"{succeeded}/{wanted}"
    parallelism = number(obj, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Obj, now: float) -> str:
    started = moment_of(dig(obj, "status", "startTime"))
    if started is None:
        return ""
    completed = moment_of(dig(obj, "status", "completionTime"))
    return human_duration((now if completed is None else completed) - started)


JOBS: Final = printer(
    NAME,
    Column("Status", "string", "What became of the job.", _job_status),
    Column("Completions", "string", "Pods that succeeded, of those wanted.", _job_completions),
    Column("Duration", "string", "How long the job took, or has taken so far.", _job_duration),
    AGE,
    *_TEMPLATE,
    _SELECTOR,
)


def _suspended(obj: Obj, now: float) -> str:
    value = dig(obj, "spec", "suspend")
    return str(value) if isinstance(value, bool) else "<unset>"


CRON_JOBS: Final = printer(
    NAME,
    Column("Schedule", "string", "When jobs start, as cron writes it.", text_at("spec", "schedule")),
    Column("Timezone", "string", "Zone of the schedule.", text_at("spec", "timeZone", missing=NONE)),
    Column("Suspend", "boolean", "Whether no further jobs start.", _suspended),
    Column("Active", "integer", "Jobs that run now.", count_at("status", "active")),
    Column(
        "Last Schedule",
        "string",
        "Time since the last job was due.",
        age_at("status", "lastScheduleTime", missing=NONE),
    ),
    AGE,
    *template_columns("spec", "jobTemplate", "spec", "template"),
    wide(
        "Selector", "Labels of the pods it counts as its own.", selector_at("spec", "jobTemplate", "spec", "selector")
    ),
)

POD_TEMPLATES: Final = printer(
    NAME,
    *(Column(column.name, column.type, column.description, column.cell) for column in template_columns("template")),
    Column(
        "Pod Labels", "string", "Labels of pods made from the template.", labels_at("template", "metadata", "labels")
    ),
)

SCALES: Final = printer(
    Column("Name", "string", "Name of what is scaled.", text_at("metadata", "name")),
    Column("Desired", "integer", "Pods wanted.", number_at("spec", "replicas")),
    Column("Available", "integer", "Pods that exist.", number_at("status", "replicas")),
    AGE,
)

PRINTERS: Final = {
    ("", "podtemplates"): POD_TEMPLATES,
    ("", "replicationcontrollers"): REPLICATION_CONTROLLERS,
    ("apps", "controllerrevisions"): CONTROLLER_REVISIONS,
    ("apps", "daemonsets"): DAEMON_SETS,
    ("apps", "deployments"): DEPLOYMENTS,
    ("apps", "replicasets"): REPLICA_SETS,
    ("apps", "statefulsets"): STATEFUL_SETS,
    ("autoscaling", "scales"): SCALES,
    ("batch", "cronjobs"): CRON_JOBS,
    ("batch", "jobs"): JOBS,
}
