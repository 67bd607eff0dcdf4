"""Log shipping, as Promtail does on every node: follow each container's log and ship its lines to the store.

A container's log is followed from its creation. Writing a line has no cost here: new lines are shipped by reference at
an interval, before every query and before the runtime rotates a log. Lines therefore stay readable after their
container, its pod and its node are gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.containers.log import ContainerLog
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.objects import Obj, controller_of, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.telemetry.logs.store import LogStore, LogStream

_TEMPLATE_HASH = re.compile(r"(.+?)(-[0-9a-f]{8,10})?")
OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_BY_POD_LABEL = {
    "app": ("app.kubernetes.io/name", "app"),
    "instance": ("app.kubernetes.io/instance", "instance"),
    "component": ("app.kubernetes.io/component", "component"),
}
"""Labels of pods that become labels of streams, as in the Helm chart of Promtail."""


class Shipper:
    def __init__(self, store: LogStore, clock: Clock) -> None:
        self.store = store
        self._clock = clock
        self._followers: dict[str, _Follower] = {}
        """By container id."""
        self.exporters: set[str] = set()
        """Files of containers that export their log records by OTLP as well."""
        store.before_reading = self.ship

    def follow(self, sandbox: Sandbox, record: ContainerRecord) -> None:
        """Ship the log of a container that was just created."""
        labels = stream_labels(sandbox.pod, sandbox.node_name, record.name, record.attempt)
        if _exports(sandbox.pod, record.name):
            self.exporters.add(labels["filename"])
        follower = self._followers[record.id] = _Follower(self.store, record, labels)
        record.log.before_rotation = partial(self._ship_before_rotation, follower)

    def ship(self) -> None:
        """Ship the lines written since the last round."""
        ended = []
        for identifier, follower in self._followers.items():
            if follower.record.exited:
                ended.append(identifier)
            follower.ship_new_lines()
        for identifier in ended:
            # A log is written only while its container runs, so this was its last round.
            follower = self._followers.pop(identifier)
            follower.record.log.before_rotation = None

    def round(self) -> None:
        """Ship new lines at an interval, then apply the limits of the store."""
        self.ship()
        self.store.make_room(self._clock.now)

    def _ship_before_rotation(self, follower: _Follower) -> None:
        follower.ship_new_lines()
        self.store.make_room(self._clock.now)


class _Follower:
    """The position up to which one container's log was shipped."""

    __slots__ = ("_labels", "_next", "_partial", "_store", "record")

    def __init__(self, store: LogStore, record: ContainerRecord, labels: Mapping[str, str]) -> None:
        self.record = record
        self._store = store
        self._labels = labels
        self._partial: dict[str, bytes] = {}
        self._next = 0

    def ship_new_lines(self) -> None:
        log: ContainerLog = self.record.log
        end = log.end
        if end == self._next:
            return
        streams: dict[str, LogStream] = {}
        for moment, stream, text, is_partial in log.lines(self._next):
            if is_partial:
                self._partial[stream] = self._partial.get(stream, b"") + text
                continue
            if self._partial:
                text = self._partial.pop(stream, b"") + text
            target = streams.get(stream)
            if target is None:
                target = streams[stream] = self._store.stream({**self._labels, "stream": stream})
            target.append(moment, text)
        self._next = end


def stream_labels(pod: Obj, node: str, container: str, attempt: int) -> dict[str, str]:
    """Return the labels that Promtail adds to a container's lines."""
    namespace, name = namespace_of(pod), name_of(pod)
    pod_labels = meta(pod).get("labels") or {}
    labels = {
        label: next((pod_labels[key] for key in keys if pod_labels.get(key)), "")
        for label, keys in _BY_POD_LABEL.items()
    }
    app = labels["app"] or _controller_name(pod) or name
    labels |= {
        "app": app,
        "container": container,
        "filename": f"/var/log/pods/{namespace}_{name}_{uid_of(pod)}/{container}/{attempt}.log",
        "job": f"{namespace}/{app}",
        "namespace": namespace,
        "node_name": node,
        "pod": name,
        "service_name": app,
    }
    return {label: value for label, value in labels.items() if value}


def _exports(pod: Obj, container: str) -> bool:
    """Whether the SDK in a container is given an OTLP endpoint."""
    found: Obj = next((one for one in pod["spec"]["containers"] if one["name"] == container), {})
    return any(variable["name"] == OTLP_ENDPOINT for variable in found.get("env") or ())


def _controller_name(pod: Obj) -> str:
    """Return the owner's name, without the hash in the names of a Deployment's ReplicaSets."""
    owner = controller_of(pod)
    found = _TEMPLATE_HASH.fullmatch(owner["name"]) if owner else None
    return found[1] if found else ""
