"""What an agent may name: this snapshot, nothing outside it, and never the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from sre_tools.offline_incident_analysis import ToolError, Workspace, all_tools, call_tool
from tests.snapshots import samples
from tests.sre_tools.conftest import Ask


@pytest.mark.parametrize("path", ["/etc", "../other", "alerts/../../..", "/etc/passwd", "\0"])
def test_paths_outside_the_snapshot_are_refused(ask: Ask, path: str) -> None:
    with pytest.raises(ToolError, match=r"outside what these tools may read|no path"):
        ask("alert_summary", base_dir=path)


@pytest.mark.parametrize(
    "name",
    ["ground_truth.yaml", "./ground_truth.yaml", "alerts/../GROUND_TRUTH.YAML", "ground-truth.json", "answer_key.yml"],
)
def test_the_answer_key_is_refused_by_every_name(ask: Ask, name: str) -> None:
    for tool, argument in (("event_analysis", "events_file"), ("build_topology", "arch_file")):
        with pytest.raises(ToolError, match="answer key"):
            ask(tool, **{argument: name})


def test_links_out_of_the_snapshot_are_refused(ask: Ask, directory: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"components": {}}')
    (directory / "link.json").symlink_to(secret)
    (directory / "door").symlink_to(tmp_path)
    for path in ("link.json", "door/secret.json"):
        with pytest.raises(ToolError, match="outside"):
            ask("build_topology", arch_file=path)


def test_a_link_to_the_answer_key_is_the_answer_key(ask: Ask, directory: Path) -> None:
    (directory / "harmless.json").symlink_to(directory / "ground_truth.yaml")
    with pytest.raises(ToolError, match="answer key"):
        ask("build_topology", arch_file="harmless.json")


def test_no_reply_of_any_tool_holds_the_answer(directory: Path, tmp_path: Path) -> None:
    marker = "only-the-answer-key-says-this"
    truth = directory / "ground_truth.yaml"
    truth.write_text(truth.read_text().replace("bad image", marker))
    named = {"k8_object_name": "Deployment/payment", "entity": "payment", "k8_object": "payment"}
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        for name, tool in all_tools().items():
            required = tool.input_schema.get("required", [])
            assert marker not in str(call_tool(workspace, name, {key: named[key] for key in required}))


def test_old_style_paths_into_the_snapshot_mean_the_snapshot(ask: Ask, directory: Path) -> None:
    for path in (str(directory), str(directory / "alerts"), "alerts", "."):
        assert ask("alert_summary", base_dir=path)["total_count"] == 2
    assert ask("log_analysis", logs_file=str(directory / "otel_logs_raw.tsv"))["summary"]["total_logs"] == 29


def test_a_server_for_many_snapshots_asks_which(tmp_path: Path) -> None:
    samples.write_raw(tmp_path / "data" / "Scenario-1")
    samples.write_processed(tmp_path / "data" / "Scenario-2")
    with Workspace(tmp_path / "data", cache=tmp_path / "cache") as workspace:
        with pytest.raises(ToolError, match="say which snapshot: there are 2"):
            call_tool(workspace, "alert_summary")
        for path in ("Scenario-2", "Scenario-2/alerts", str(tmp_path / "data" / "Scenario-2" / "otel_logs.tsv")):
            assert call_tool(workspace, "alert_summary", {"base_dir": path})["snapshot"] == "Scenario-2"
        with pytest.raises(ToolError, match="there is no Scenario-3"):
            call_tool(workspace, "alert_summary", {"base_dir": "Scenario-3"})


def test_the_graph_is_written_only_where_the_server_allows(directory: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    with Workspace(directory, cache=tmp_path / "cache", output=output) as workspace:
        call_tool(workspace, "build_topology", {"output_file": "graph.json"})
        assert (output / "graph.json").exists()
        for path in ("../graph.json", str(directory / "graph.json"), "graph.tsv"):
            with pytest.raises(ToolError, match="output_file"):
                call_tool(workspace, "build_topology", {"output_file": path})
    with Workspace(directory, cache=tmp_path / "cache") as workspace:
        assert "not written" in call_tool(workspace, "build_topology", {"output_file": "graph.json"})["notes"][0]
    assert not (directory / "graph.json").exists()
