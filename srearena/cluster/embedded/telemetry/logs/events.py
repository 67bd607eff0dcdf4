"""Kubernetes events as log lines: the stream `{job="kubernetes-events"}`, one line per occurrence.

The fields are those of Grafana's collectors, in logfmt.
"""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, dig, namespace_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.telemetry.logs.store import LogStore
from srearena.cluster.embedded.world import World

JOB = "kubernetes-events"


class EventLog:
    def __init__(self, world: World, store: LogStore) -> None:
        self._clock = world.clock
        self._store = store
        world.on_change("events", self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        event = change.new
        labels = {"job": JOB, "app": JOB, "service_name": JOB, "namespace": namespace_of(event)}
        self._store.stream(labels).append(self._clock.now, line(event).encode())


def line(event: Obj) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    count = event.get("count") or dig(event, "series", "count") or 1
    fields = {
        "name": about.get("name", ""),
        "kind": about.get("kind", ""),
        "action": event.get("action", ""),
        "objectAPIversion": about.get("apiVersion", ""),
        "objectRV": about.get("resourceVersion", ""),
        "eventRV": dig(event, "metadata", "resourceVersion", default=""),
        "reportinginstance": event.get("reportingInstance", ""),
        "reportingcontroller": event.get("reportingComponent") or event.get("reportingController", ""),
        "sourcecomponent": dig(event, "source", "component", default=""),
        "sourcehost": dig(event, "source", "host", default=""),
        "reason": event.get("reason", ""),
        "type": event.get("type", ""),
        "count": str(count),
        "msg": event.get("message") or event.get("note", ""),
    }
    return " ".join(f"{key}={_value(str(value))}" for key, value in fields.items() if value)


def _value(text: str) -> str:
    if text and not any(char in ' ="\n\t\\' for char in text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
