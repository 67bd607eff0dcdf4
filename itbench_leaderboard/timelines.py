"""Timelines of recorded incidents for the website, computed once and stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from itbench_leaderboard.files import read_json, write_json
from itbench_leaderboard.incidents import Incident
from srearena.errors import SreArenaError

SCHEMA = "leaderboard-timeline-v1"
_ENTRIES = 60  # chosen: what a page shows


def write_missing(root: Path, incidents: Sequence[Incident]) -> None:
    """Write timelines of recordings that have none. An unreadable recording gets an empty one with the reason."""
    for incident in incidents:
        path = root / "results" / "timelines" / f"{incident.name}.json"
        if incident.kind != "snapshot" or read_json(path) is not None:
            continue
        write_json(path, {"schema_version": SCHEMA, "incident": incident.name, **_timeline(incident)})


def _timeline(incident: Incident) -> dict[str, object]:
    from sre_tools.offline_incident_analysis import Workspace, call_tool

    try:
        with Workspace(incident.path) as workspace:
            reply = call_tool(workspace, "incident_timeline", {"limit": _ENTRIES})
    except (SreArenaError, OSError, ValueError) as problem:
        return {"entries": [], "problem": str(problem)}
    return {"entries": reply.get("data", reply), "problem": None}
