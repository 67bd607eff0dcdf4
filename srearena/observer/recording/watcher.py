"""Periodic captures of a cluster: firing alerts, events, and the state of every object.

Captures use the Kubernetes and Prometheus APIs with the client's identity; what that may not read is not recorded. An
object that has disappeared since the last capture is written once more, as deleted.
"""

from __future__ import annotations

from typing import Any

import orjson

from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.raw_files import EVENTS, LOG_COLUMNS, OBJECTS, RawFiles, log_row, mapping
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj, Resource

# Resources that are the same in every cluster, or change with every heartbeat, and do not help a diagnosis.
_EXCLUDED = frozenset(
    "events componentstatuses leases apiservices flowschemas prioritylevelconfigurations clusterroles "
    "clusterrolebindings controllerrevisions csinodes ipaddresses servicecidrs certificatesigningrequests "
    "customresourcedefinitions priorityclasses".split()
)
_METRICS_GROUP = "metrics.k8s.io"
_FIRING = "firing"


class Watcher:
    """Captures one cluster to raw files, and keeps the last state."""

    def __init__(self, api: Kubernetes, prometheus: MetricApi, files: RawFiles) -> None:
        self.api = api
        self._prometheus = prometheus
        self._files = files
        self._resources: tuple[Resource, ...] = ()
        self._events: dict[str, str] = {}
        self.objects: dict[tuple[str, str, str], Obj] = {}
        """The objects at the last capture, by resource, namespace and name."""
        self.firing_alerts: dict[float, list[Any]] = {}
        """The firing alerts of each capture, by its time."""
        self._deployments: dict[tuple[str, str], str] = {}

    def now(self) -> float:
        """The cluster's current time."""
        return float(self._prometheus.data("/api/v1/query", {"query": "time()"})["result"][1])

    def capture(self, *, final: bool = False) -> float:
        """Write the current state; returns the time of the capture."""
        time = self.now()
        unchanged = time in self.firing_alerts  # the clock has not advanced since the last capture
        alerts = self._prometheus.data("/api/v1/alerts", {})["alerts"]
        self.firing_alerts[time] = [alert for alert in alerts if alert.get("state") == _FIRING]
        self._files.alerts(time, self.firing_alerts[time], final=final)
        if not unchanged:
            stamp = round(time * 1e6) * 1000
            self._capture_events(stamp)
            self._capture_objects(stamp)
        return time

    def deployment_of(self, namespace: str, pod: str) -> str:
        """The Deployment of a pod of any capture; "" where there is none."""
        return self._deployments.get((namespace, pod), "")

    def _list(self, resource: str) -> list[Obj]:
        try:
            return self.api.list(resource)
        except ServiceError:
            return []  # no permission, or the resource was removed

    def _capture_events(self, stamp: int) -> None:
        for event in sorted(self._list("events"), key=lambda e: int(e["metadata"].get("resourceVersion") or 0)):
            metadata = event["metadata"]
            version = str(metadata.get("resourceVersion"))
            recorded = self._events.get(metadata["uid"])
            if recorded == version:
                continue
            self._events[metadata["uid"]] = version
            body = orjson.dumps({"type": "MODIFIED" if recorded else "ADDED", "object": event}).decode()
            resource = mapping({"k8s.namespace.name": metadata.get("namespace", "")})
            self._files.add(EVENTS, LOG_COLUMNS, log_row(stamp, body, resource))

    def _capture_objects(self, stamp: int) -> None:
        if not self._resources:
            rows = {row.name: row for row in self.api.resources() if _is_recorded(row)}
            self._resources = tuple(rows.values())
        current: dict[tuple[str, str, str], Obj] = {}
        for row in self._resources:
            for obj in self._list(row.name):
                metadata = obj["metadata"]
                current[row.name, metadata.get("namespace", ""), metadata["name"]] = obj
        for key, obj in current.items():
            self._write_object(stamp, key, orjson.dumps(obj).decode())
        for key, obj in self.objects.items():
            if key not in current:
                self._write_object(stamp, key, orjson.dumps({"type": "DELETED", "object": obj}).decode())
        self.objects = current
        self._update_owners()

    def _write_object(self, stamp: int, key: tuple[str, str, str], body: str) -> None:
        resource, namespace, _ = key
        scope = {"k8s.namespace.name": namespace} if namespace else {}
        attributes = mapping({"k8s.resource.name": resource.partition(".")[0]})
        self._files.add(OBJECTS, LOG_COLUMNS, log_row(stamp, body, mapping(scope), LogAttributes=attributes))

    def _update_owners(self) -> None:
        sets = {
            (namespace, name): owner
            for (resource, namespace, name), obj in self.objects.items()
            if resource == "replicasets.apps" and (owner := _controller(obj, "Deployment"))
        }
        for (resource, namespace, name), obj in self.objects.items():
            if resource == "pods" and (owner := _controller(obj, "ReplicaSet")):
                self._deployments[namespace, name] = sets.get((namespace, owner), "")


def _is_recorded(row: Resource) -> bool:
    return "list" in row.verbs and row.plural not in _EXCLUDED and row.group != _METRICS_GROUP


def _controller(obj: Obj, kind: str) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((str(owner["name"]) for owner in owners if owner.get("controller") and owner.get("kind") == kind), "")
