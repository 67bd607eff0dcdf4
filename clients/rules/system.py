"""The observed system: every object that the agent may read, with the relations between them.

Objects are read with the agent's own kubeconfig, as `kubectl get -o json --show-managed-fields` prints them: an answer
of an action is cut at 20,000 characters, which is less than the Deployments of a small application take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from clients.rules.signals import Signal
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
RESOURCES = tuple(
    """namespaces nodes pods services configmaps events persistentvolumeclaims persistentvolumes resourcequotas
    limitranges serviceaccounts endpointslices deployments statefulsets daemonsets replicasets jobs cronjobs
    horizontalpodautoscalers networkpolicies ingresses poddisruptionbudgets roles rolebindings
    mutatingwebhookconfigurations validatingwebhookconfigurations validatingadmissionpolicies
    validatingadmissionpolicybindings priorityclasses storageclasses customresourcedefinitions""".split()
)
WORKLOADS = ("deployments", "statefulsets", "daemonsets")
SYSTEM_NAMESPACE = "kube-system"
_ALERT = re.compile(r"firing (\S+) since (\S+) (\{.*?\}) ?(.*)$")
_REVISION = "deployment.kubernetes.io/revision"
_PLATFORM = re.compile(r"^(kube-.*|default|)$")
_LOG_LINES = 80
_SHORTLY = 180.0
"""Seconds from a change to the first alert: alerts wait for a minute or two before they fire."""


def name_of(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Obj) -> str:
    return str(obj["metadata"].get("namespace") or "")


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def path_of(obj: Obj) -> str:
    """namespace/Kind/name, or Kind/name of a cluster-wide object: how answers name an object."""
    return "/".join(filter(None, (namespace_of(obj), str(obj["kind"]), name_of(obj))))


def template_of(workload: Obj) -> Obj:
    template: Obj = workload["spec"]["template"]
    return template


def containers_of(workload: Obj) -> list[Obj]:
    spec = template_of(workload)["spec"]
    return [*spec.get("containers", ())]


def moment(text: str) -> float:
    """Seconds since the epoch of a timestamp of the API."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector (matchLabels and matchExpressions) selects these labels."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for term in selector.get("matchExpressions") or ():
        key, values, value = term["key"], term.get("values") or (), labels.get(term["key"])
        if {
            "In": value not in values,
            "NotIn": value is not None and value in values,
            "Exists": key not in labels,
            "DoesNotExist": key in labels,
        }.get(term["operator"], False):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Alert:
    """A firing alert."""

    name: str
    since: float
    labels: Mapping[str, str]
    text: str

    @classmethod
    def parse(cls, text: str) -> list[Alert]:
        found = []
        for line in text.splitlines():
            match = _ALERT.match(line)
            if match:
                labels = dict(re.findall(r"'([^']+)': '([^']*)'", match[3]))
                found.append(cls(match[1], moment(match[2]), labels, match[4]))
        return found

    @property
    def subject(self) -> str:
        """The workload, Service or pod that it is about."""
        for label in ("deployment", "statefulset", "daemonset", "service", "service_name", "pod", "node", "instance"):
            if self.labels.get(label):
                return str(self.labels[label])
        return ""


@dataclass
class System:
    """Objects by resource, logs by pod, and alerts."""

    namespace: str
    objects: dict[str, list[Obj]] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    """Last lines of containers by `pod/container`, and of their previous run by `pod/container/previous`."""
    signals: list[Signal] = field(default_factory=list)
    now: float = 0.0
    first: System | None = None
    """The first observation: what was changed after it is the agent's own work."""

    # Lists

    def all(self, resource: str) -> list[Obj]:
        return self.objects.get(resource, [])

    def own(self, resource: str) -> list[Obj]:
        """The objects of the application's namespaces: all but those of the platform, the named one first."""
        found = [obj for obj in self.all(resource) if not _PLATFORM.match(namespace_of(obj))]
        return sorted(found, key=lambda obj: namespace_of(obj) != self.namespace)

    def find(self, resource: str, name: str, namespace: str | None = None) -> Obj | None:
        """An object by name; without a namespace, of the application."""
        if namespace is None:
            return next((obj for obj in self.own(resource) if name_of(obj) == name), None)
        return next((o for o in self.all(resource) if name_of(o) == name and namespace_of(o) == namespace), None)

    @cached_property
    def workloads(self) -> list[Obj]:
        return [obj for resource in WORKLOADS for obj in self.own(resource)]

    def workload(self, name: str) -> Obj | None:
        return next((obj for obj in self.workloads if name_of(obj) == name), None)

    @cached_property
    def custom_objects(self) -> list[Obj]:
        return [obj for resource, found in self.objects.items() if resource not in RESOURCES for obj in found]

    # Relations

    @cached_property
    def _owners(self) -> dict[str, str]:
        """The name of the workload (Deployment, StatefulSet, DaemonSet, Job) of each pod and ReplicaSet."""
        owners: dict[str, str] = {}
        for replica_set in self.own("replicasets"):
            for ref in replica_set["metadata"].get("ownerReferences") or ():
                owners[name_of(replica_set)] = str(ref["name"])
        for pod in self.own("pods"):
            for ref in pod["metadata"].get("ownerReferences") or ():
                owners[name_of(pod)] = owners.get(str(ref["name"]), str(ref["name"]))
        return owners

    def owner_of(self, name: str) -> str:
        """The workload that a pod, ReplicaSet, Service or workload of this name belongs to; empty if unknown."""
        if name in self._owners:
            return self._owners[name]
        if self.workload(name):
            return name
        service = self.find("services", name)
        if service is not None:
            behind = self.behind(service)
            if behind:
                return name_of(behind[0])
        known = sorted((name_of(obj) for obj in self.workloads), key=len, reverse=True)
        return next((one for one in known if name.startswith(f"{one}-")), "")

    def pods_of(self, workload: str) -> list[Obj]:
        return [pod for pod in self.own("pods") if self._owners.get(name_of(pod)) == workload]

    def behind(self, service: Obj) -> list[Obj]:
        """The workloads whose pod template a Service selects."""
        selector = service["spec"].get("selector") or {}
        if not selector:
            return []
        return [
            obj
            for obj in self.workloads
            if namespace_of(obj) == namespace_of(service)
            and selector.items() <= (template_of(obj)["metadata"].get("labels") or {}).items()
        ]

    def services_of(self, workload: Obj) -> list[Obj]:
        return [service for service in self.own("services") if workload in self.behind(service)]

    def revisions(self, deployment: Obj) -> list[Obj]:
        """The ReplicaSets of a Deployment, the oldest revision first."""
        owned = [
            one
            for one in self.all("replicasets")
            if any(ref["uid"] == deployment["metadata"]["uid"] for ref in one["metadata"].get("ownerReferences") or ())
        ]
        return sorted(owned, key=lambda one: int((one["metadata"].get("annotations") or {}).get(_REVISION, 0)))

    def desired(self, workload: Obj) -> int:
        if workload["kind"] == "DaemonSet":
            return int((workload.get("status") or {}).get("desiredNumberScheduled") or 0)
        replicas = workload["spec"].get("replicas")
        return 1 if replicas is None else int(replicas)

    def unready(self, workload: Obj) -> bool:
        """Whether pods are missing, not ready, or of an older revision."""
        status, desired = workload.get("status") or {}, self.desired(workload)
        if workload["kind"] == "DaemonSet":
            return int(status.get("numberAvailable") or 0) < desired
        available = int(status.get("availableReplicas") or 0)
        return available < desired or int(status.get("updatedReplicas") or 0) < desired

    def warnings(self) -> Iterator[tuple[Obj, str, str]]:
        """Events of type Warning: the object, the reason and the message."""
        for event in self.own("events"):
            if event.get("type") == "Warning":
                yield event.get("involvedObject") or {}, str(event.get("reason")), str(event.get("message"))

    @cached_property
    def onset(self) -> float:
        """When the trouble began, by the first alert; now where none fires."""
        alerts = (self.first or self).alerts
        return min((alert.since for alert in alerts), default=(self.first or self).now)

    @cached_property
    def suffering(self) -> set[str]:
        """The workloads that alerts are about, and those that are not ready."""
        found = {self.owner_of(alert.subject.replace("_", "-")) for alert in self.alerts if alert.subject}
        found |= {name_of(one) for one in self.workloads if self.desired(one) and self.unready(one)}
        return found - {""}

    def preceded_trouble(self, at: float) -> bool:
        """Whether a change was shortly before the trouble began (or later, where it is still under way)."""
        return at >= self.onset - _SHORTLY

    def logs_of(self, workload: str) -> str:
        """The last lines of all containers of a workload, those of the previous run first."""
        texts = []
        for pod in self.pods_of(workload):
            keys = sorted((key for key in self.logs if key.startswith(f"{name_of(pod)}/")), reverse=True)
            texts += [self.logs[key] for key in keys]
        return "\n".join(texts)


def read_system(api: Kubernetes, namespace: str, first: System | None = None) -> System:
    """Read all objects; what may not be read is left out."""
    system = System(namespace, first=first)
    for resource in RESOURCES:
        try:
            system.objects[resource] = api.list(resource)
        except ServiceError:
            system.objects[resource] = []
    try:
        system.objects["secrets"] = api.list("secrets", namespace)
    except ServiceError:
        system.objects["secrets"] = []
    for definition in system.all("customresourcedefinitions"):
        try:
            name = f"{definition['spec']['names']['plural']}.{definition['spec']['group']}"
            system.objects[name] = api.list(name)
        except ServiceError:
            continue
    try:
        system.now = moment(api.now())
    except ServiceError:
        system.now = max((moment(e["metadata"]["creationTimestamp"]) for e in system.all("events")), default=0.0)
    if first is not None:
        _forget_changes(system, first.now)
    return system


def _forget_changes(system: System, since: float) -> None:
    """Drop the marks of changes since a moment: while the agent repairs, changes are its own."""
    for objects in system.objects.values():
        for obj in objects:
            entries = obj["metadata"].get("managedFields") or []
            obj["metadata"]["managedFields"] = [one for one in entries if moment(str(one.get("time", ""))) <= since]


def read_logs(api: Kubernetes, system: System, workloads: Iterable[str]) -> None:
    """Read the last lines of the containers of these workloads, and of their previous run."""
    for workload in workloads:
        for pod in system.pods_of(workload):
            states = pod.get("status") or {}
            for status in [*states.get("initContainerStatuses", ()), *states.get("containerStatuses", ())]:
                container = str(status["name"])
                for previous in (False, True) if status.get("restartCount") else (False,):
                    key = f"{name_of(pod)}/{container}" + ("/previous" if previous else "")
                    try:
                        system.logs[key] = api.logs(
                            name_of(pod), namespace_of(pod), container=container, previous=previous, tail=_LOG_LINES
                        )
                    except ServiceError:
                        continue


def namespace_in(text: str) -> str:
    """The namespace in a task's description."""
    match = re.search(r"namespace '([a-z0-9-]+)'", text)
    return match.group(1) if match else "default"
