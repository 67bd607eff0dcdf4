"""The tools over a cluster that runs: the same replies as over a recording, and new ones when something happens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sre_tools.episode_analysis import EpisodeAnalysis
from sre_tools.errors import ToolError
from sre_tools.live.analysis import call_live
from sre_tools.live_workspace import LiveWorkspace
from sre_tools.offline_incident_analysis import all_tools, call_tool
from sre_tools.offline_incident_analysis.deployments import deployed_until
from srearena.cluster.base import TelemetryEndpoints
from srearena.conductor.episode.episode import Episode
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.raw_files import RawFiles
from srearena.observer.recording.rollouts import write_rollouts
from srearena.observer.recording.telemetry import measured_objects, write_metrics, write_metrics_of
from srearena.observer.window import Window
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


def fetched(live: LiveWorkspace) -> set[str]:
    """The files that were fetched, by what they begin with."""
    files = (path.relative_to(live.root).as_posix() for path in live.root.rglob("*") if path.is_file())
    return {re.split(r"[/_]", name.removeprefix("metrics/"))[0] for name in files}


def test_a_question_fetches_what_it_needs(episode: Episode) -> None:
    assert episode.kubeconfig is not None
    with LiveWorkspace(episode.kubeconfig, episode.cluster.telemetry, refresh=600.0) as live:
        assert call_tool(live, "alert_summary")["data"]
        assert call_tool(live, "k8s_spec_change_analysis")["data"]
        assert fetched(live) == {"alerts", "k8s"}
        assert call_tool(live, "log_analysis")["data"]
        assert fetched(live) == {"alerts", "k8s", "otel"}
        of_store = call_tool(live, "metric_analysis", {"k8_object_name": "Deployment/store"})
        assert {path.name[:10] for path in live.root.glob("metrics/pod_*")} == {"pod_store-"}
        everything = call_tool(live, "metric_analysis", {"group_by": "object_name"})["summary"]["series"]
        assert everything > of_store["summary"]["series"] > 0
        timeline = call_tool(live, "incident_timeline")
        assert "metric" not in timeline["summary"]["by_source"] and "`sources`" in timeline["notes"][0]
        assert call_tool(live, "incident_timeline", {"sources": ["metric"]})["summary"]["by_source"].keys() == {
            "metric"
        }
        assert {"pod_api-", "pod_stor"} < {path.name[:8] for path in live.root.glob("metrics/*")}
        again = call_tool(live, "metric_analysis", {"k8_object_name": "Deployment/store"})
        assert again["data"] == of_store["data"], "no sample is fetched twice"


@pytest.mark.parametrize("others", [(), ("kube-system",)], ids=["application", "with-exporters"])
def test_the_samples_of_objects_are_those_of_a_recording(
    episode: Episode, tmp_path: Path, others: tuple[str, ...]
) -> None:
    endpoints = episode.cluster.telemetry
    with MetricApi(endpoints.prometheus, endpoints.token) as prometheus:
        now = float(prometheus.data("/api/v1/query", {"query": "time()"})["result"][1])
        window, namespaces = Window(now - 120, now), (episode.problem.namespace, *others)
        objects = measured_objects(prometheus, window, namespaces)
        with RawFiles(tmp_path / "all") as files:
            write_metrics(prometheus, window, files, namespaces)
        with RawFiles(tmp_path / "some") as files:
            write_metrics_of(prometheus, window, files, namespaces, objects)
    names = {path.name for path in tmp_path.glob("all/metrics/*")}
    assert {f"{kind}_{name}_raw.tsv" for kind, name in objects} == names
    assert {name.partition("_")[0] for name in names} == {"pod", "node"}, "the corner shop has no traces"
    for name in names:
        every, some = (
            sorted((tmp_path / folder / "metrics" / name).read_text().splitlines()) for folder in ("all", "some")
        )
        assert every == some, name


def test_the_change_that_broke_the_system_comes_first_and_its_deployment_is_no_change(episode: Episode) -> None:
    assert episode.kubeconfig is not None
    with LiveWorkspace(episode.kubeconfig, episode.cluster.telemetry) as live:
        reply = call_live(live, "change_impact", {})
        alerts = call_live(live, "alert_summary", {})
    place = episode.problem.namespace
    assert [row["entity"] for row in reply["data"]] == [f"{place}/Service/api"], "the API has no older versions of it"
    assert "what it was before was not observed" in reply["data"][0]["change"]
    assert any(row["began_in_observed_time"] for row in alerts["data"])


WRONG: dict[str, list[dict[str, Any]]] = {
    "get_metric_anomalies": [{}, {"k8_object_name": "Deployment/nowhere"}],
    "metric_analysis": [{"metric_names": ["nothing"]}, {"base_directory": "x"}, {"base_dir": "/etc"}],
    "get_k8_spec": [{"k8_object_name": "Deployment/nowhere"}],
    "topology_analysis": [{"entity": "nowhere"}],
    "event_analysis": [{"filters": {"colour": "red"}}],
}


def test_replies_and_errors_speak_of_the_running_system(episode: Episode) -> None:
    assert episode.kubeconfig is not None
    analysis = EpisodeAnalysis(episode.kubeconfig, episode.cluster)
    spoken = [analysis.describe()]
    try:
        for name in all_tools():
            spoken.append(json.dumps(analysis.call(name, NAMED.get(name, {})), default=str))
        for name, calls in WRONG.items():
            for arguments in calls:
                with pytest.raises(ToolError) as problem:
                    analysis.call(name, arguments)
                spoken.append(str(problem.value))
    finally:
        analysis.close()
    for text in spoken:
        assert not re.search(r"recording|recorded|snapshot|base_dir\b", text), text[:400]


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


@pytest.mark.parametrize(
    ("since", "written"),
    [(0, ["v1", "v2"]), (150, ["v1", "v2"]), (250, ["v2"]), (350, [])],
    ids=["all", "the first rollout before", "the second before", "the present one before"],
)
def test_rollouts_before_the_observation_are_no_changes(tmp_path: Path, since: float, written: list[str]) -> None:
    """ReplicaSets at 100, 200 and 300 s: with a version to compare with each later one is a change."""

    def meta(name: str, second: int, revision: int) -> dict[str, Any]:
        stamp = datetime.fromtimestamp(second, UTC).isoformat()
        annotations = {"deployment.kubernetes.io/revision": str(revision)}
        owners = [{"kind": "Deployment", "name": "api"}]
        return {"name": name, "creationTimestamp": stamp, "annotations": annotations, "ownerReferences": owners}

    objects = {
        ("replicasets.apps", "shop", f"api-{number}"): {
            "metadata": meta(f"api-{number}", 100 * number, number),
            "spec": {"template": {"spec": {"containers": [{"name": "api", "image": f"v{number}"}]}}},
        }
        for number in (1, 2, 3)
    }
    present = objects["replicasets.apps", "shop", "api-3"]["spec"]
    objects["deployments.apps", "shop", "api"] = {"metadata": meta("api", 100, 3), "spec": present}
    with RawFiles(tmp_path) as files:
        assert write_rollouts(objects, files, since=since) == len(written)
    text = "".join(path.read_text() for path in tmp_path.iterdir())
    assert re.findall(r'""image"":""(v\d)""', text) == written


def test_what_an_application_needs_besides_is_part_of_its_deployment() -> None:
    """25 objects of four kinds at once, a policy 40 s later elsewhere; a repair ten minutes later is none of it."""
    begin = datetime(2026, 1, 5, tzinfo=UTC)
    kinds = ("deployments.apps", "replicasets.apps", "services", "configmaps")
    created = [("shop", begin, kinds[number % 4]) for number in range(25)]
    policy, repair = begin + timedelta(seconds=40), begin + timedelta(minutes=10)
    assert deployed_until([*created, ("policy", policy, "deployments.apps"), ("shop", repair, "services")]) == policy
    assert deployed_until([*created, ("other", policy, "pods")]) == begin, "pods come by themselves"


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
