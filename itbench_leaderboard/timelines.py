"""Timelines and charts of incidents for the website, computed once and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from itbench_leaderboard.files import read_json, write_json
from itbench_leaderboard.incidents import Incident
from srearena.conductor.results.signals import SIGNALS
from srearena.errors import SreArenaError
from srearena.view.incidents.finished import finished_system
from srearena.view.incidents.recorded import RecordedIncident

SCHEMA = "leaderboard-timeline-v2"
_ENTRIES = 60  # chosen: what a page shows
_CHARTED = 6  # services, the worst first; chosen: two rows of charts
_MEASURES = ("requests", "errors", "latency")


def write_missing(root: Path, incidents: Sequence[Incident]) -> None:
    """Write timelines of incidents that have none. An unreadable recording gets an empty one with the reason."""
    for incident in incidents:
        path = root / "results" / "timelines" / f"{incident.name}.json"
        if (read_json(path) or {}).get("schema_version") == SCHEMA:
            continue
        if incident.kind == "snapshot":
            document = {**_timeline(incident), "charts": _recorded_charts(incident)}
        else:
            charts = _live_charts(root, incident)
            if charts is None:
                continue  # no run has ended yet
            document = {"entries": [], "problem": None, "charts": charts}
        write_json(path, {"schema_version": SCHEMA, "incident": incident.name, **document})


def _timeline(incident: Incident) -> dict[str, object]:
    from sre_tools.offline_incident_analysis import Workspace, call_tool

    try:
        with Workspace(incident.path) as workspace:
            reply = call_tool(workspace, "incident_timeline", {"limit": _ENTRIES})
    except (SreArenaError, OSError, ValueError) as problem:
        return {"entries": [], "problem": str(problem)}
    return {"entries": reply.get("data", reply), "problem": None}


def _recorded_charts(incident: Incident) -> dict[str, Any] | None:
    recorded = RecordedIncident(incident.name, Path(incident.path))
    try:
        overview = recorded.overview()
    except (SreArenaError, OSError, ValueError):
        return None
    finally:
        recorded.close()
    return _charts(overview["times"], overview["baseline"], overview["services"])


def _live_charts(root: Path, incident: Incident) -> dict[str, Any] | None:
    """Of the first run that kept its signals, until the agent started: what follows is the agent's."""
    for path in sorted(root.glob(f"*/{incident.name}/*/{SIGNALS}")):
        system = finished_system(read_json(path) or {})
        if system is not None:
            start = next(mark["at"] for mark in system["marks"] if mark["kind"] == "phase")
            times = [time for time in system["times"] if time <= start]
            return _charts(times, system["baseline"], system["start"]["services"])
    return None


def _charts(
    times: Sequence[int], baseline: Sequence[float] | None, services: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    measured = [service for service in services if service.get("requests")]
    measured.sort(key=lambda service: (-service["level"], -(service["requests"]["usual"] or 0.0), service["name"]))
    return {
        "times": list(times),
        "baseline": baseline,
        "services": [
            {
                "name": service["name"],
                "level": service["level"],
                **{measure: service["series"][measure][: len(times)] for measure in _MEASURES},
            }
            for service in measured[:_CHARTED]
        ],
    }
