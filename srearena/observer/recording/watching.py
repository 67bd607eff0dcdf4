"""Looking at a cluster again and again: which alerts fire, which events happened, how every object is.

Each look is a pull through the Kubernetes and Prometheus APIs with whatever identity the client has; what that may not
read is not recorded. An object that was there at the last look and is gone is written once more, as deleted.
"""

from __future__ import annotations

from typing import Any

import orjson

from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.raw_files import EVENTS, LOG_COLUMNS, OBJECTS, RawFiles, log_row, mapping
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj, Resource

# What is the same in every cluster, or changes with every heartbeat, and tells nothing of an incident.
_LEFT_OUT = frozenset(
    "events componentstatuses leases apiservices flowschemas prioritylevelconfigurations clusterroles "
    "clusterrolebindings controllerrevisions csinodes ipaddresses servicecidrs certificatesigningrequests "
    "customresourcedefinitions priorityclasses".split()
)
_METRICS_GROUP = "metrics.k8s.io"
_FIRING = "firing"


class Watcher:
    """What was seen of one cluster so far, and where the next look is written."""

    def __init__(self, api: Kubernetes, prometheus: MetricApi, files: RawFiles) -> None:
        self.api = api
        self._prometheus = prometheus
        self._files = files
        self._resources: tuple[Resource, ...] = ()
        self._events: dict[str, str] = {}
        self.objects: dict[tuple[str, str, str], Obj] = {}
        """Resource, namespace, name, to the object at the last look."""
        self.fired: dict[float, list[Any]] = {}
        """The alerts that fired at each look."""
        self._deployments: dict[tuple[str, str], str] = {}

    def now(self) -> float:
        """The cluster's time, which need not be ours."""
        return float(self._prometheus.data("/api/v1/query", {"query": "time()"})["result"][1])

    def look(self, *, final: bool = False) -> float:
        """Write down how things are; the moment of the look."""
        moment = self.now()
        again = moment in self.fired  # time stood still since the last look: nothing is new
        alerts = self._prometheus.data("/api/v1/alerts", {})["alerts"]
        self.fired[moment] = [alert for alert in alerts if alert.get("state") == _FIRING]
        self._files.alerts(moment, self.fired[moment], final=final)
        if not again:
            stamp = round(moment * 1e6) * 1000
            self._look_at_events(stamp)
            self._look_at_objects(stamp)
        return moment

    def deployment_of(self, namespace: str, pod: str) -> str:
        """The Deployment behind a pod that was ever seen; "" where there is none."""
        return self._deployments.get((namespace, pod), "")

    def _listed(self, resource: str) -> list[Obj]:
        try:
            return self.api.list(resource)
        except ServiceError:
            return []  # not ours to read, or gone since

    def _look_at_events(self, stamp: int) -> None:
        for event in sorted(self._listed("events"), key=lambda e: int(e["metadata"].get("resourceVersion") or 0)):
            metadata = event["metadata"]
            version = str(metadata.get("resourceVersion"))
            known = self._events.get(metadata["uid"])
            if known == version:
                continue
            self._events[metadata["uid"]] = version
            body = orjson.dumps({"type": "MODIFIED" if known else "ADDED", "object": event}).decode()
            resource = {"k8s.namespace.name": metadata.get("namespace", "")}
            self._files.add(EVENTS, LOG_COLUMNS, log_row(stamp, body, resource))

    def _look_at_objects(self, stamp: int) -> None:
        if not self._resources:
            rows = {row.name: row for row in self.api.resources() if _worth_a_look(row)}
            self._resources = tuple(rows.values())
        seen: dict[tuple[str, str, str], Obj] = {}
        for row in self._resources:
            for obj in self._listed(row.name):
                metadata = obj["metadata"]
                seen[row.name, metadata.get("namespace", ""), metadata["name"]] = obj
        for key, obj in seen.items():
            self._write_object(stamp, key, orjson.dumps(obj).decode())
        for key, obj in self.objects.items():
            if key not in seen:
                self._write_object(stamp, key, orjson.dumps({"type": "DELETED", "object": obj}).decode())
        self.objects = seen
        self._remember_owners()

    def _write_object(self, stamp: int, key: tuple[str, str, str], body: str) -> None:
        resource, namespace, _ = key
        place = {"k8s.namespace.name": namespace} if namespace else {}
        named = mapping({"k8s.resource.name": resource.partition(".")[0]})
        self._files.add(OBJECTS, LOG_COLUMNS, log_row(stamp, body, place, LogAttributes=named))

    def _remember_owners(self) -> None:
        sets = {
            (place, name): owner
            for (resource, place, name), obj in self.objects.items()
            if resource == "replicasets.apps" and (owner := _controller(obj, "Deployment"))
        }
        for (resource, place, name), obj in self.objects.items():
            if resource == "pods" and (owner := _controller(obj, "ReplicaSet")):
                self._deployments[place, name] = sets.get((place, owner), "")


def _worth_a_look(row: Resource) -> bool:
    return "list" in row.verbs and row.plural not in _LEFT_OUT and row.group != _METRICS_GROUP


def _controller(obj: Obj, kind: str) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((str(owner["name"]) for owner in owners if owner.get("controller") and owner.get("kind") == kind), "")
