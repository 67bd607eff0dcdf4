"""The tool registry: a new tool is one decorated function in one new file, served without any other edit."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sre_tools import registry
from sre_tools.errors import ToolError
from sre_tools.live.toolset import _analysis_tools, _live_tools
from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool
from sre_tools.offline_incident_analysis import tools as diagnostic_tools

DOCUMENT = Path(__file__).parents[2] / "docs" / "sre-tools.md"


@pytest.fixture
def new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that the walk over the diagnostic tools' package finds; the registry is restored afterwards."""
    all_tools()
    folder = tmp_path / "more_tools"
    folder.mkdir()
    monkeypatch.setattr(diagnostic_tools, "__path__", [*diagnostic_tools.__path__, str(folder)])
    monkeypatch.setattr(registry, "_TOOLS", dict(registry._TOOLS))
    registry.tools_in.cache_clear()
    yield folder / "extra.py"
    registry.tools_in.cache_clear()
    sys.modules.pop("sre_tools.offline_incident_analysis.tools.extra", None)


def test_the_documented_example_is_served_once_its_file_exists(new_file: Path, workspace: Workspace) -> None:
    examples = re.findall(r"```py\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    new_file.write_text(examples[0])
    assert list(all_tools())[-1] == "event_reasons"
    reply = call_tool(workspace, "event_reasons", {"kind": "Warning"})
    assert reply["data"] and set(reply["data"][0]) == {"reason", "events"}
    with pytest.raises(ToolError, match=r"extra inputs are not permitted\. It takes: cursor, max_tokens, kind"):
        call_tool(workspace, "event_reasons", {"colour": "red"})
    assert "event_reasons" in {tool.name for tool in _analysis_tools()}, "the live server offers it too"


def test_a_name_can_be_used_once(new_file: Path) -> None:
    new_file.write_text(
        "from sre_tools.registry import NoArguments, tool\n\n\n"
        "@tool()\ndef alert_summary(call: object, arguments: NoArguments) -> None:\n    'Again.'\n"
    )
    with pytest.raises(ValueError, match=r"alert_summary is defined in .*\.alerts and in .*\.extra"):
        all_tools()


def test_every_tool_has_a_description_and_a_place_in_the_list() -> None:
    for mode in ("read-only", "safe", "full"):
        tools = [*_live_tools(mode), *_analysis_tools()]
        assert len({tool.order for tool in tools}) == len(tools)
        for tool in tools:
            assert tool.description and "{mode}" not in tool.description, tool.name
