"""The diagnostic tools over a running system: their words and arguments; and architecture files outside a snapshot."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sre_tools.errors import ToolError
from sre_tools.live.terms import HIDDEN, live_reply, live_schema, live_text
from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool

_FOREIGN = re.compile(r"\b(?:recording|snapshot|base_dir)\b")


@pytest.mark.parametrize("name", sorted(all_tools()))
def test_no_tool_over_a_running_system_speaks_of_recordings(name: str) -> None:
    tool = all_tools()[name]
    schema = live_schema(tool.input_schema)
    assert not _FOREIGN.search(live_text(tool.description))
    assert not HIDDEN & schema["properties"].keys()
    for part in schema["properties"].values():
        assert not _FOREIGN.search(part.get("description", ""))


def test_replies_and_errors_are_about_the_running_system() -> None:
    reply: dict[str, Any] = {
        "snapshot": "live",
        "summary": {"window": "the whole recording", "alerts": 3},
        "notes": ["this snapshot has no alerts; try incident_timeline"],
        "data": [{"body": "a snapshot of the recording"}],
    }
    assert live_reply(reply) == {
        "summary": {"window": "the whole observed time", "alerts": 3},
        "notes": ["the system has no alerts; try incident_timeline"],
        "data": [{"body": "a snapshot of the recording"}],
    }


def test_an_architecture_file_outside_is_allowed_by_the_start_of_the_server(directory: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    dependencies = [{"source": "frontend", "target": "ledger", "protocol": "gRPC"}]
    (outside / "shop.json").write_text(json.dumps({"components": {}, "dependencies": dependencies}))
    (outside / "ground_truth.yaml").write_text("{}")
    named = {"arch_file": str(outside / "shop.json")}
    with Workspace(directory, cache=tmp_path / "cache") as closed, pytest.raises(ToolError, match="outside"):
        call_tool(closed, "build_topology", named)
    for allowed, text in ((outside / "shop.json", named["arch_file"]), (outside, "shop.json")):
        with Workspace(directory, cache=tmp_path / "cache", architecture=allowed) as opened:
            edges = call_tool(opened, "build_topology", {"arch_file": text})["data"]
            assert any("ledger" in edge["target"] for edge in edges)
            for other in ("../data", str(outside / "ground_truth.yaml"), "/etc/hostname"):
                with pytest.raises(ToolError):
                    call_tool(opened, "build_topology", {"arch_file": other})
