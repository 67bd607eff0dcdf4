"""Calls of a tool by name: arguments checked, the snapshot opened, the reply within its budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.replies import Window, envelope, read_cursor
from sre_tools.offline_incident_analysis.workspace import Workspace
from sre_tools.registry import Tool, lookup, tools_in
from srearena.snapshots import Snapshot, SnapshotError
from srearena.snapshots.errors import DataError

PATHS = ("base_dir", "snapshot_dir", "events_file", "logs_file", "trace_file", "k8s_objects_file")
"""Arguments that may name a path into the snapshot."""


@dataclass(frozen=True, slots=True)
class Call:
    """The context of one call."""

    snapshot: Snapshot
    workspace: Workspace
    window: Window


def all_tools() -> dict[str, Tool]:
    """The diagnostic tools by name, in listing order."""
    return dict(tools_in("sre_tools.offline_incident_analysis.tools"))


def call_tool(workspace: Workspace, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Call a tool by name; the reply is its envelope, an error is a `ToolError`."""
    tool = lookup(all_tools(), name)
    checked = tool.validate({key: value for key, value in (arguments or {}).items() if value is not None})
    plain = checked.model_dump(exclude={"cursor", "max_tokens", "offset"})
    offset = getattr(checked, "offset", 0)
    if checked.cursor:
        offset = read_cursor(checked.cursor, name, plain)
    window = Window(offset, getattr(checked, "limit", None) or None)
    try:
        snapshot = workspace.snapshot(*(getattr(checked, path, None) for path in PATHS))
        answer = tool.run(Call(snapshot, workspace, window), checked)
    except DataError as problem:
        raise ToolError(f"{name} could not read this snapshot's data: {str(problem).splitlines()[0]}") from problem
    except SnapshotError as problem:
        raise ToolError(f"{problem}. `srearena snapshot check` tells more about this snapshot") from problem
    return envelope(name, snapshot.root.name, plain, answer, window, checked.max_tokens)
