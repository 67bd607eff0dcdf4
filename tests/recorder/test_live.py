"""The tools over a cluster that runs: the same replies as over a recording, and new ones when something happens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sre_tools.errors import ToolError
from sre_tools.live_workspace import LiveWorkspace
from sre_tools.offline_incident_analysis import all_tools, call_tool
from srearena.cluster.base import TelemetryEndpoints
from srearena.conductor.episode.episode import Episode
from srearena.conductor.problems.registry import ProblemRegistry
from tests.arena.episodes import PORT, prepared_episode

NAMED = {
    "get_metric_anomalies": {"k8_object_name": "Deployment/api"},
    "topology_analysis": {"entity": "Deployment/api"},
    "get_k8_spec": {"k8_object_name": "Deployment/api"},
    "get_context_contract": {"k8_object": "Deployment/api"},
}


@pytest.fixture(scope="module")
def episode() -> Iterator[Episode]:
    """The corner shop with a Service that leads nowhere, as the agent finds it."""
    with prepared_episode(ProblemRegistry().get_problem(PORT)) as running:
        yield running


@pytest.fixture
def workspace(episode: Episode) -> Iterator[LiveWorkspace]:
    assert episode.kubeconfig is not None
    with LiveWorkspace(episode.kubeconfig, episode.cluster.telemetry, refresh=600.0) as live:
        yield live


def test_every_tool_answers(workspace: LiveWorkspace) -> None:
    for name in all_tools():
        assert call_tool(workspace, name, NAMED.get(name))["returned_count"] >= 0
    spec = call_tool(workspace, "get_k8_spec", {"k8_object_name": "Service/api"})["data"][0]["spec"]
    assert spec["spec"]["ports"][0]["targetPort"] == 9999
    assert call_tool(workspace, "log_analysis")["data"]
    assert call_tool(workspace, "metric_analysis", {"k8_object_name": "Deployment/api"})["data"]


def test_what_happens_later_is_seen(workspace: LiveWorkspace, episode: Episode) -> None:
    api, place = episode.problem.kubernetes, episode.problem.namespace
    before = call_tool(workspace, "k8s_spec_change_analysis")["data"]
    assert not any(row["name"] == "store" for row in before)
    api.scale("deployments", "store", 0, place)
    episode.cluster.wait(30)
    workspace.refresh()
    after = call_tool(workspace, "k8s_spec_change_analysis", {"k8_object_name": "Deployment/store"})["data"]
    assert "spec.replicas" in after[0]["change"]
    events = call_tool(workspace, "event_analysis", {"filters": {"reason": "ScalingReplicaSet"}})["data"]
    assert any(row["object_name"] == "store" for row in events)


def test_an_earlier_rollout_is_read_off_the_replica_sets(episode: Episode) -> None:
    api, place = episode.problem.kubernetes, episode.problem.namespace
    container = api.get("deployments", "api", place)["spec"]["template"]["spec"]["containers"][0]["name"]
    added = {"name": container, "env": [{"name": "COLOUR", "value": "blue"}]}
    api.patch("deployments", "api", {"spec": {"template": {"spec": {"containers": [added]}}}}, place)
    episode.cluster.wait(30)
    assert episode.kubeconfig is not None
    with LiveWorkspace(episode.kubeconfig, episode.cluster.telemetry) as live:
        changes = call_tool(live, "k8s_spec_change_analysis", {"k8_object_name": "Deployment/api"})["data"]
    assert any("COLOUR" in str(row["changes"]) for row in changes)


def test_nothing_is_left_behind(episode: Episode) -> None:
    assert episode.kubeconfig is not None
    with LiveWorkspace(episode.kubeconfig, episode.cluster.telemetry) as live:
        place = live.root
        assert place.is_dir()
        with pytest.raises(ToolError, match="outside"):
            live.confine("/etc/passwd")
    assert not place.exists()


def test_an_environment_that_is_not_there_is_told(episode: Episode, tmp_path: Path) -> None:
    assert episode.kubeconfig is not None
    with pytest.raises(ToolError, match="cannot be read"):
        LiveWorkspace(episode.kubeconfig, TelemetryEndpoints(prometheus="http://127.0.0.1:9"))
    words = [sys.executable, "-m", "sre_tools.offline_incident_analysis", "--live", str(episode.kubeconfig)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "--prometheus" in done.stderr and "Traceback" not in done.stderr
