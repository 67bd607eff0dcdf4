"""`Incident`: what the pages ask of a cluster, an episode or a recording. All answers are documents for JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from srearena.errors import SreArenaError


class IncidentError(SreArenaError):
    """An incident cannot answer; the text says why."""


@dataclass(slots=True, frozen=True)
class LogQuery:
    """Which lines of the log to show: all conditions must hold."""

    text: str = ""
    namespace: str = ""
    workload: str = ""
    """The beginning of the pods' names."""
    limit: int = 300


class Incident(ABC):
    """One incident. Safe to use from several threads; what several tabs ask for is computed once."""

    kind: str

    def __init__(self, identity: str, name: str) -> None:
        self.id = identity
        self.name = name

    def row(self) -> dict[str, Any]:
        """One line of the list of incidents."""
        return {"id": self.id, "name": self.name, "kind": self.kind}

    @abstractmethod
    def overview(self) -> dict[str, Any]:
        """Services and the calls between them with their signals, alerts, and the clock."""

    @abstractmethod
    def cluster(self) -> dict[str, Any]:
        """Nodes, pods and events."""

    @abstractmethod
    def logs(self, query: LogQuery) -> dict[str, Any]:
        """The newest log lines that fit, the newest first."""

    @abstractmethod
    def traces(self, service: str, failed: bool) -> dict[str, Any]:
        """The newest traces of a service, or of the services where requests enter."""

    @abstractmethod
    def trace(self, identity: str) -> dict[str, Any]:
        """The spans of one trace."""

    @abstractmethod
    def objects(self, kind: str) -> dict[str, Any]:
        """The objects of a kind, and which of them have changed since the first observation."""

    @abstractmethod
    def object(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """One object as YAML, and its differences from the first observation."""

    def query(self, expression: str, seconds: float) -> dict[str, Any]:
        """The result of an expression over the last seconds."""
        raise IncidentError("expressions are evaluated by Prometheus, and this incident has none")

    def set_clock(self, action: str, value: float) -> dict[str, Any]:
        """Pause the clock, let it flow, or advance it."""
        raise IncidentError("the clock of this incident cannot be set")

    def truth(self) -> dict[str, Any]:
        """What is wrong, on an operator's request."""
        raise IncidentError("the truth of this incident is not known here")

    @abstractmethod
    def close(self) -> None:
        """Close connections."""
