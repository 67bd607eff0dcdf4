"""Logs of pods in memory: read through the Kubernetes API, and kept for pods that have been deleted since.

A log store is not needed, so this works on every cluster. What an agent has read once stays readable after a rollout
or an eviction has deleted the pod; what it never asked for is not collected.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

_MOST_PODS = 200
"""Chosen: more than an application of ours has; the pods that were read longest ago are dropped."""


@dataclass(slots=True)
class _PodLog:
    """The sections of a pod's log as they were last read: heading and lines."""

    name: str
    labels: frozenset[str]
    sections: list[tuple[str, str]] = field(default_factory=list)

    def belongs_to(self, service: str) -> bool:
        return (
            self.name == service
            or re.match(rf"{re.escape(service)}(-[a-z0-9]+)+$", self.name) is not None
            or service in self.labels
        )


class PodLogs:
    """The logs of pods that were asked for."""

    def __init__(self, api: Kubernetes) -> None:
        self._api = api
        self._pods: OrderedDict[tuple[str, str, str], _PodLog] = OrderedDict()
        """By namespace, name and UID: a pod of a StatefulSet that is replaced keeps its name."""

    def of_service(self, namespace: str, service: str, tail: int, check: Callable[[], None] = lambda: None) -> str:
        """The last lines of a service's pods, or of one pod; `check` is called before each and may raise."""
        present: set[tuple[str, str, str]] = set()
        for pod in self._api.list("pods", namespace):
            labels = frozenset(str(value) for value in (pod["metadata"].get("labels") or {}).values())
            log = _PodLog(pod["metadata"]["name"], labels)
            if log.belongs_to(service):
                check()
                key = (namespace, log.name, str(pod["metadata"].get("uid", "")))
                log.sections = self._read(pod, namespace, tail)
                self._keep(key, log)
                present.add(key)
        lines: list[str] = []
        for key, log in self._pods.items():
            if key[0] == namespace and log.belongs_to(service):
                mark = "" if key in present else " (deleted; as it was last read)"
                for heading, text in log.sections:
                    lines.append(f"==> {heading}{mark} <==")
                    if text:
                        lines.append(text)
        return "\n".join(lines) if lines else f"no pod in {namespace} belongs to {service}"

    def _keep(self, key: tuple[str, str, str], log: _PodLog) -> None:
        self._pods[key] = log
        self._pods.move_to_end(key)
        while len(self._pods) > _MOST_PODS:
            self._pods.popitem(last=False)

    def _read(self, pod: Obj, namespace: str, tail: int) -> list[tuple[str, str]]:
        name = pod["metadata"]["name"]
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        if not statuses:
            return [(f"{name}: nothing has run yet", "")]
        sections = []
        for status in statuses:
            for previous in (True, False) if status.get("restartCount") else (False,):
                mark = " (before its restart)" if previous else ""
                try:
                    text = self._api.logs(name, namespace, container=status["name"], previous=previous, tail=tail)
                except ServiceError as problem:
                    text = str(problem)
                sections.append((f"{name}/{status['name']}{mark}", text.rstrip()))
        return sections
