"""Descriptions, messages and arguments of the diagnostic tools in terms of a running system.

The tools are written for recordings. Over a running system there is no directory to name, and what they call the
snapshot or the recording is the system, observed since some time.
"""

from __future__ import annotations

import re
from typing import Any

from sre_tools.offline_incident_analysis.calls import PATHS

HIDDEN = frozenset({*PATHS, "arch_file", "output_file", "topology_file"})
"""Arguments that name files of a recording."""
# Longer phrases first.
_TERMS = (
    (r"\ba recorded incident\b", "a running system"),
    (r"\bthe whole recording\b", "the whole observed time"),
    (r"\b(?:during|in) the recording\b", "in the observed time"),
    (r"\b(?:the|this) recording\b", "the observed time"),
    (r"\b(?:this|the server's|the) snapshot's\b", "the system's"),
    (r"\b(?:this|the server's|the) snapshot\b", "the system"),
    (r"\bsrearena snapshot check\b", "srearena doctor"),
    (r"\bsnapshot\b(?!_)", "system"),
)
_KEYS = {
    "began_during_recording": "began_in_observed_time",
    "recording_began": "observed_since",
    "snapshot_timestamp": "captured_at",
    "warnings_in_snapshot": "warnings",
}
_PATTERNS = tuple((re.compile(pattern), text) for pattern, text in _TERMS)


def live_text(text: str) -> str:
    """A description or message about a running system."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def live_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """An input schema without arguments that name files, its descriptions about a running system."""
    properties = {
        name: {**part, "description": live_text(part["description"])} if "description" in part else part
        for name, part in schema.get("properties", {}).items()
        if name not in HIDDEN
    }
    return {**schema, "properties": properties}


def live_reply(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply whose notes, summary and keys are about a running system; values of rows stay as they are."""
    summary = {key: live_text(value) if isinstance(value, str) else value for key, value in reply["summary"].items()}
    return {
        **{key: value for key, value in reply.items() if key != "snapshot"},
        "summary": _renamed(summary),
        "notes": [live_text(note) for note in reply["notes"]],
        "data": _renamed(reply["data"]),
    }


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {_KEYS.get(key, key): _renamed(part) for key, part in value.items()}
    return [_renamed(part) for part in value] if isinstance(value, list) else value
