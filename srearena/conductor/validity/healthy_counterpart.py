"""The healthy counterpart: the same problem and seed without the fault. Only consequences of the fault differ.

Both worlds are read with the agent's identity. What differs and is neither an object that the fault changes, nor what
controllers, kubelets and programs make of it, is a trace of the harness, and tells where to look.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.grading.baseline import intent_of
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.validity.readable import readable_logs, readable_objects
from srearena.generators.fault.authors import managers
from srearena.service.kubernetes import Kubernetes, Obj

__all__ = ["View", "healthy_counterpart", "traces_of_the_harness", "view_of"]

_DERIVED = frozenset(
    {
        *("ControllerRevision", "Endpoints", "EndpointSlice", "Event", "Lease", "Pod", "PodMetrics", "NodeMetrics"),
        *("ComponentStatus", "ReplicaSet", "Job", "PersistentVolume", "VolumeAttachment", "CSIStorageCapacity"),
    }
)
"""Kinds that controllers, kubelets and the scheduler write: they follow from the others."""
_CERTIFICATES = frozenset({"cluster-info", "extension-apiserver-authentication", "kube-root-ca.crt"})
"""Config maps with the certificate of the cluster's authority, which is new in every cluster."""
_COMPONENTS = ("kube-", "kubelet", "kubectl", "coredns", "cloud-", "tidb-", "metrics-server")
"""Managers that also write in a healthy cluster, as they react to changes."""
_CONSEQUENCES = (
    "kube_",
    "container_",
    "kubelet_",
    "node_",
    "probe_",
    "ALERTS",
    "apiserver_",
    "scheduler_",
    "workqueue_",
    "pg_locks_",
    "locust_errors",
)
"""Beginnings of metrics that exist only while there is something to count, such as a waiting container."""
_PLATFORM = ("k8s.io", "kubernetes.io")
"""Domains of the labels and annotations that Kubernetes itself sets."""
_SOURCES = {
    "job": 'count by (job) ({job!=""})',
    "namespace": 'count by (namespace) ({namespace!=""})',
    "service_name": 'count by (service_name) ({service_name!=""})',
}
"""What tells series apart by where they come from: a query for each label."""
_CONTROLLER = "-controller as reporter of events"
"""Controllers of Kubernetes report on kinds of objects that a healthy system may not have."""
_EFFECTS = re.compile(
    r"i/o timeout|connection refused|no route to host|context deadline exceeded|EOF"
    r"|node_lifecycle_controller|taint_eviction|Volume pvc-"
)
"""What components log that lose their connections, of nodes that do not report, of their pods, and of volumes."""
_SCHEDULED = re.compile(r"-\d{8,10}$")
"""The end of the name of a CronJob's job."""
_NUMBER = re.compile(r"[0-9a-f]*\d[0-9a-f]*")
"""Times, durations, addresses, and the random parts of names."""
Key = tuple[str, str, str]
"""Kind, namespace, name."""


@dataclass(slots=True)
class View:
    """What an agent can read of one world, without times and identifiers."""

    objects: dict[Key, str] = field(default_factory=dict)
    managers: set[str] = field(default_factory=set)
    log_sources: set[tuple[str, str]] = field(default_factory=set)
    """Namespace and workload of every container with a log."""
    metrics: set[str] = field(default_factory=set)
    marks: dict[str, set[str]] = field(default_factory=dict)
    """Keys of labels and annotations, reporters of events, and what series and spans are of, with who carries them."""
    log_lines: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """By namespace and container: one line of each template, by the line without numbers."""


@contextmanager
def healthy_counterpart(problem_id: str, spec: EpisodeSpec) -> Iterator[Episode]:
    """The prepared episode of a problem whose fault is left out."""
    problem = ProblemRegistry().get_problem(problem_id, spec.variant)
    problem.inject_fault = lambda: None  # type: ignore[method-assign]
    spec = spec.pinned_by(problem)
    episode = Episode(problem, open_cluster(problem, spec), spec)
    try:
        episode.prepare()
        yield episode
    finally:
        episode.close()


def view_of(episode: Episode) -> View:
    """Read everything that the agent of an episode may list."""
    assert episode.kubeconfig is not None
    view = View()
    with Kubernetes(episode.kubeconfig) as api:
        for resource, obj in readable_objects(api):
            _add(view, resource.kind, obj)
        for log in readable_logs(api):
            lines = view.log_lines.setdefault((log.namespace, log.container), {})
            lines.update((_NUMBER.sub("#", line), line) for line in log.text.splitlines())
    with closing(Telemetry(episode.cluster)) as telemetry:
        view.metrics = set(telemetry.values('count by (__name__) ({__name__=~".+"})', "__name__"))
        for label, query in _SOURCES.items():
            for value in telemetry.values(query, label):
                view.marks.setdefault(f"{label} {value} of metrics", set()).add(value)
        for edge in telemetry.calls():
            for service in edge:
                view.marks.setdefault(f"service {service} of traces", set()).add(service)
    return view


def _add(view: View, kind: str, obj: Obj) -> None:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    for field_name in ("labels", "annotations"):
        for key in metadata.get(field_name) or ():
            if not key.partition("/")[0].endswith(_PLATFORM):
                view.marks.setdefault(f"{key} among {field_name}", set()).add(str(metadata["name"]))
    if kind == "Event":
        reporter = obj.get("reportingComponent") or (obj.get("source") or {}).get("component") or ""
        view.marks.setdefault(f"{reporter} as reporter of events", set()).add(str(reporter))
    view.managers |= {entry.get("manager", "") for entry in metadata.get("managedFields") or ()}
    if kind == "Pod":
        owner = next(iter(metadata.get("ownerReferences") or ()), {"kind": "Pod", "name": metadata["name"]})
        generated = owner["kind"] == "ReplicaSet" or _SCHEDULED.search(owner["name"])
        view.log_sources.add((namespace, owner["name"].rpartition("-")[0] if generated else owner["name"]))
    if kind == "ConfigMap" and metadata["name"] in _CERTIFICATES:
        return
    if kind not in _DERIVED and not any(owner.get("controller") for owner in metadata.get("ownerReferences") or ()):
        intent = intent_of(obj)
        if kind == "PersistentVolumeClaim":  # a provisioned volume is named after the claim's UID
            intent = {**intent, "spec": {key: value for key, value in obj["spec"].items() if key != "volumeName"}}
        view.objects[kind, namespace, metadata["name"]] = json.dumps(intent, sort_keys=True)


def traces_of_the_harness(problem: Problem, faulty: View, healthy: View) -> list[str]:
    """What differs between a world with the fault and its healthy counterpart and is no consequence of the fault."""
    caused = _caused(problem)
    traces = [
        f"{kind} {name} in {namespace or 'the cluster'} differs"
        for kind, namespace, name in sorted(faulty.objects.keys() | healthy.objects.keys())
        if faulty.objects.get((kind, namespace, name)) != healthy.objects.get((kind, namespace, name))
        and name not in caused
    ]
    foreign = {name for name in faulty.managers - healthy.managers if not name.startswith(_COMPONENTS)}
    traces += [f"{name} writes only beside the fault" for name in sorted(foreign - managers())]
    traces += [
        f"{workload} in {namespace} has pods only beside the fault"
        for namespace, workload in sorted(faulty.log_sources - healthy.log_sources)
        if not any(workload.startswith(name) for name in caused)
    ]
    added = {name for name in faulty.metrics - healthy.metrics if not name.startswith(_CONSEQUENCES)}
    traces += [f"the metric {name} exists only beside the fault" for name in sorted(added)]
    traces += [
        f"{mark} only beside the fault: {', '.join(sorted(carriers)[:3])}"
        for mark, carriers in sorted(faulty.marks.items())
        if mark not in healthy.marks and not mark.startswith(_COMPONENTS) and not mark.endswith(_CONTROLLER)
        if not all(any(carrier.startswith(name) for name in caused) for carrier in carriers)
    ]
    return traces + list(_foreign_lines(problem, faulty, healthy))


def _caused(problem: Problem) -> set[str]:
    """The names of what the fault changes."""
    named = (entity for origin in problem.origins for entity in (*origin.changed, *problem.roots))
    return {*problem.changed_objects, *(entity.name for entity in named)}


def _foreign_lines(problem: Problem, faulty: View, healthy: View) -> Iterator[str]:
    """Lines that the cluster's components write only beside the fault, and not about the application.

    The application's own programs say much that is new: they have the symptoms. `leaks` searches their lines for words.
    """
    about = {*_caused(problem), *problem.app.namespaces}
    for (namespace, container), lines in sorted(faulty.log_lines.items()):
        if namespace in problem.app.namespaces:
            continue
        known = healthy.log_lines.get((namespace, container), {})
        for template in sorted(lines.keys() - known.keys()):
            line = lines[template]
            public = line.replace(".", "-")  # Secrets of certificates are called like their hosts
            if not _EFFECTS.search(line) and not any(name in line or name in public for name in about):
                yield f"{container} in {namespace} logs only beside the fault: {line}"
