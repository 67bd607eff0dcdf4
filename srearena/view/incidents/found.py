"""The incidents that can be looked at: running clusters of `srearena up`, running episodes, and recordings."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from srearena.cluster import registry
from srearena.cluster.base import ClusterError, TelemetryEndpoints
from srearena.cluster.launcher import telemetry_of
from srearena.conductor.episode.disclosure import OperatorKey
from srearena.conductor.session import is_written
from srearena.view.incidents.base import Incident
from srearena.view.incidents.live import CLUSTER, EPISODE, Access, LiveIncident
from srearena.view.incidents.recorded import RecordedIncident
from srearena.view.trials import mapping, read_json, text


class Incidents:
    """Incidents by id: found again on every request, kept while they run. Safe to use from several threads."""

    def __init__(
        self, folders: Sequence[Path], recordings: Sequence[Path] = (), operator: OperatorKey | None = None
    ) -> None:
        """With the key of an operator, episodes that are sealed to it disclose their truth on request."""
        self._folders = tuple(folders)
        self._operator = operator
        self._recordings: dict[str, Incident] = {}
        for number, directory in enumerate(recordings):
            identity = f"recording:{number}"
            self._recordings[identity] = RecordedIncident(identity, directory)
        self._open: dict[str, Incident] = {}
        self._lock = threading.Lock()

    def rows(self) -> list[dict[str, Any]]:
        return [incident.row() for incident in self._found().values()]

    def find(self, identity: str) -> Incident | None:
        return self._found().get(identity)

    def of_kubeconfig(self, kubeconfig: str) -> Incident | None:
        """The running episode with that kubeconfig."""
        for incident in self._found().values():
            if isinstance(incident, LiveIncident) and kubeconfig and str(incident.access.kubeconfig) == kubeconfig:
                return incident
        return None

    def _found(self) -> dict[str, Incident]:
        with self._lock:
            present: dict[str, Incident] = {}
            for entry in registry.all_running():
                # A cluster of the same name that was started later is another one.
                identity = f"cluster:{entry.name}"
                known = self._open.get(identity)
                if isinstance(known, LiveIncident) and known.access.facts.get("started") == entry.started:
                    present[identity] = known
                    continue
                try:
                    present[identity] = _cluster(identity, entry)
                except ClusterError:
                    continue  # it is starting, or it has no telemetry
            for log in _running_logs(self._folders):
                identity = f"episode:{log.stem}"
                incident = self._open.get(identity) or _episode(identity, log, self._operator)
                if incident is not None:
                    present[identity] = incident
            for identity in self._open.keys() - present.keys():
                self._open[identity].close()
            for identity, known in self._open.items():
                if present.get(identity, known) is not known:
                    known.close()
            self._open = present
            return {**present, **self._recordings}


def _cluster(identity: str, entry: registry.RunningCluster) -> Incident:
    directory = registry.directory_of(entry.name)
    facts = {"started": entry.started}
    access = Access(Path(entry.kubeconfig), telemetry_of(directory), directory, entry.speed, facts)
    return LiveIncident(identity, entry.name, CLUSTER, access)


def _running_logs(folders: Sequence[Path]) -> list[Path]:
    """Event logs that a process still writes."""
    logs = [
        log for folder in folders for log in sorted([*folder.glob(".live/*.jsonl"), *folder.glob("*/.live/*.jsonl")])
    ]
    return [log for log in logs if is_written(log)]


def _episode(identity: str, log: Path, operator: OperatorKey | None) -> Incident | None:
    """The episode of an event log; None before its system is ready."""
    document = mapping(read_json(log.with_suffix(".json")))
    if not document:
        return None
    addresses = mapping(document.get("telemetry"))
    telemetry = TelemetryEndpoints(**{one.name: text(addresses.get(one.name)) for one in fields(TelemetryEndpoints)})
    truth = operator.open(text(document.get("sealed"))) if operator is not None else None
    kubeconfig = Path(text(document.get("kubeconfig")))
    access = Access(kubeconfig, telemetry, facts={"session": log.stem}, truth=truth or {})
    return LiveIncident(identity, text(document.get("application")) or "episode", EPISODE, access)
