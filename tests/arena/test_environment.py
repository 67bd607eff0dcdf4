"""The backend of an episode follows the configuration, and a shared cluster is restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from srearena.cluster import ClusterError, NodeAccessError, start_embedded
from srearena.cluster.kubernetes import KubernetesCluster, default_kubeconfig
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.errors import ProblemError
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.config import Config, ConfigError, TelemetryConfig, load_config
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import shop_problem

EXAMPLE = Path(__file__).parents[2] / "srearena" / "config.yml.example"


def test_without_a_configuration_clusters_are_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SREARENA_CONFIG", raising=False)
    assert load_config().embedded
    assert load_config(EXAMPLE) == Config()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("k8s_hots: kind", "k8s_hots"), ("k8s_host: [1]", "k8s_host"), ("a: b: c", "not YAML"), ("[1]", "it")],
)
def test_mistakes_in_the_configuration_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        load_config(path)


def test_a_missing_kubeconfig_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ClusterError, match="no kubeconfig"):
        default_kubeconfig()
    with pytest.raises(ClusterError, match="no kubeconfig"):
        KubernetesCluster(tmp_path / "none")


def test_a_problem_that_does_not_run_there_says_so() -> None:
    problem = shop_problem(ScalePodZero, "store")
    problem.runs_on = ("embedded",)
    with pytest.raises(ProblemError, match="does not run on kubernetes"):
        open_cluster(problem, EpisodeSpec(config=Config(k8s_host="kind")))


def test_somebody_elses_cluster_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster reached by its kubeconfig alone, with a running clock."""
    monkeypatch.setenv("SREARENA_STATE_DIR", str(tmp_path))
    with start_embedded(speed=20, in_process=True) as theirs, Kubernetes.of(theirs) as api:
        before = {obj["metadata"]["name"] for obj in api.list("namespaces")}
        roles = {obj["metadata"]["name"] for obj in api.list("clusterroles")}
        problem = shop_problem(ScalePodZero, "store")
        config = Config(k8s_host="kubernetes", kubeconfig=str(theirs.kubeconfig), telemetry=TelemetryConfig())
        spec = EpisodeSpec(timeline=Timeline(before=1, after=1), config=config)
        cluster = open_cluster(problem, spec)
        with pytest.raises(NodeAccessError):
            cluster.nodes.perform("reboot", "worker-1")
        episode = Episode(problem, cluster, spec)
        try:
            episode.prepare()
            assert episode.stage == "detection"
            assert api.get("deployments", "store", "corner-shop")["spec"]["replicas"] == 0
        finally:
            episode.close()
        theirs.wait(60)
        assert {obj["metadata"]["name"] for obj in api.list("namespaces")} == before
        assert {obj["metadata"]["name"] for obj in api.list("clusterroles")} == roles
