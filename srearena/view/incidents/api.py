"""The JSON API of incidents: one route per question, each with the id of an incident."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srearena.view.incidents.base import Incident, IncidentError, LogQuery
from srearena.view.incidents.found import Incidents
from srearena.view.incidents.live import LiveIncident
from srearena.view.playing import Plays
from srearena.view.worlds import Worlds

Query = dict[str, str]
_LONGEST_TEXT = 10_000


class NoSuchIncident(IncidentError):
    """No incident has that id: it has ended, or never was."""


class IncidentApi:
    """Handlers by method and path. They take the fields of a request and return a document."""

    def __init__(self, incidents: Incidents, plays: Plays, worlds: Worlds) -> None:
        self._incidents = incidents
        self._plays = plays
        self._worlds = worlds
        self.routes: dict[tuple[str, str], Callable[[Query], Any]] = {
            ("GET", "/api/incidents"): lambda query: {"incidents": self._rows()},
            ("GET", "/api/incident"): self._overview,
            ("GET", "/api/incident/cluster"): lambda query: self._find(query).cluster(),
            ("GET", "/api/incident/logs"): self._logs,
            ("GET", "/api/incident/traces"): self._traces,
            ("GET", "/api/incident/trace"): lambda query: self._find(query).trace(query.get("trace", "")),
            ("GET", "/api/incident/objects"): lambda query: self._find(query).objects(query.get("kind", "")),
            ("GET", "/api/incident/object"): self._object,
            ("GET", "/api/incident/query"): self._expression,
            ("GET", "/api/incident/truth"): lambda query: self._find(query).truth(),
            ("POST", "/api/incident/clock"): self._clock,
            ("GET", "/api/play"): self._play,
            **plays.routes,
            **worlds.routes,
        }

    def _rows(self) -> list[dict[str, Any]]:
        return [*self._incidents.rows(), *(incident.row() for incident in self._worlds.incidents().values())]

    def _find(self, query: Query) -> Incident:
        identity = query.get("id", "")
        incident = self._worlds.incidents().get(identity) or self._incidents.find(identity)
        if incident is None:
            raise NoSuchIncident(f"there is no incident {identity!r}: it has ended")
        return incident

    def _overview(self, query: Query) -> Any:
        incident = self._find(query)
        play = self._plays.of_kubeconfig(str(incident.access.kubeconfig)) if isinstance(incident, LiveIncident) else ""
        return {**incident.overview(), **({"play": play} if play else {})}

    def _play(self, query: Query) -> Any:
        """An episode in play, with the id of its incident as soon as there is one."""
        document = self._plays.document(query.get("play", ""))
        incident = self._incidents.of_kubeconfig(self._plays.kubeconfig_of(query.get("play", "")))
        return {**document, **({"incident": incident.id} if incident is not None else {})}

    def _logs(self, query: Query) -> Any:
        text, namespace, workload = (query.get(name, "")[:_LONGEST_TEXT] for name in ("text", "namespace", "workload"))
        return self._find(query).logs(LogQuery(text, namespace, workload))

    def _traces(self, query: Query) -> Any:
        return self._find(query).traces(query.get("service", ""), query.get("failed") == "true")

    def _object(self, query: Query) -> Any:
        place = (query.get(name, "") for name in ("kind", "namespace", "name"))
        return self._find(query).object(*place)

    def _expression(self, query: Query) -> Any:
        return self._find(query).query(query.get("query", "")[:_LONGEST_TEXT], _number(query, "seconds", 900.0))

    def _clock(self, query: Query) -> Any:
        return self._find(query).set_clock(query.get("action", ""), _number(query, "value", 0.0))


def _number(query: Query, name: str, default: float) -> float:
    try:
        value = float(query.get(name, default))
    except ValueError as problem:
        raise IncidentError(f"{name} is not a number: {query[name]!r}") from problem
    if value != value or value in (float("inf"), float("-inf")):
        raise IncidentError(f"{name} is not a number: {query[name]!r}")
    return value
