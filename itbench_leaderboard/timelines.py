"""What happened in a recorded incident, minute by minute, for its page on the website: made once and kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from itbench_leaderboard.files import read_json, write_json
from itbench_leaderboard.incidents import Incident
from srearena.errors import SreArenaError

SCHEMA = "leaderboard-timeline-v1"
_ENTRIES = 60


def keep(root: Path, incidents: Sequence[Incident]) -> None:
    """Timelines of those recordings that have none yet. One that cannot be read has an empty one, and says why."""
    for incident in incidents:
        place = root / "results" / "timelines" / f"{incident.name}.json"
        if incident.kind != "snapshot" or read_json(place) is not None:
            continue
        write_json(place, {"schema_version": SCHEMA, "incident": incident.name, **_made(incident)})


def _made(incident: Incident) -> dict[str, object]:
    from sre_tools.offline_incident_analysis import Workspace, call_tool

    try:
        with Workspace(incident.path) as workspace:
            reply = call_tool(workspace, "incident_timeline", {"limit": _ENTRIES})
    except (SreArenaError, OSError, ValueError) as problem:
        return {"entries": [], "problem": str(problem)}
    return {"entries": reply.get("data", reply), "problem": None}
