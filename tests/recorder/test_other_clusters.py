"""Recording on a cluster that is not ours to start: reached by its kubeconfig, and given back as it was.

The cluster is an embedded one here, but the recorder does not know: it has a kubeconfig and addresses, and time on it
passes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from srearena.cli import cli
from srearena.cluster import Cluster, start_embedded
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.config import Config, TelemetryConfig
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes
from srearena.snapshots import open_snapshot
from srearena.snapshots.inspection import inspect
from tests.arena.episodes import PORT


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster that runs on, and a config.yml that names it."""
    with start_embedded(seed=4, speed=0, in_process=True) as cluster:
        monkeypatch.setattr(KubernetesCluster, "wait", lambda self, seconds: cluster.wait(seconds))
        endpoints = cluster.telemetry
        telemetry = TelemetryConfig(
            prometheus=endpoints.prometheus, loki=endpoints.loki, jaeger=endpoints.jaeger, token=endpoints.token
        )
        config = Config(k8s_host="kubernetes", kubeconfig=str(cluster.kubeconfig), telemetry=telemetry)
        place = tmp_path / "config.yml"
        place.write_text(yaml.safe_dump(config.model_dump()))
        monkeypatch.setenv("SREARENA_CONFIG", str(place))
        yield cluster


def _namespaces(cluster: Cluster) -> set[str]:
    with Kubernetes.of(cluster) as api:
        return {item["metadata"]["name"] for item in api.list("namespaces")}


def test_a_problem_is_recorded_where_the_configuration_says(elsewhere: Cluster, tmp_path: Path) -> None:
    before = _namespaces(elsewhere)
    out = tmp_path / "Scenario-1"
    words = ["record", PORT, "--out", str(out), "--before", "60", "--after", "120"]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    with open_snapshot(out, cache=tmp_path / "columns") as snapshot:
        assert inspect(snapshot).problems == []
        services = [version for version in snapshot.objects() if (version.kind, version.name) == ("Service", "api")]
        assert snapshot.count("metrics") > 0 and snapshot.count("events") > 0
    assert services[-1].body["spec"]["ports"][0]["targetPort"] == 9999
    key = yaml.safe_load((tmp_path / "Scenario-1-answers" / "ground_truth.yaml").read_text())
    assert key["fault"][0]["entity"]["changed"]["to"] == "9999"
    assert _namespaces(elsewhere) == before


def test_the_command_line_goes_before_the_configuration(elsewhere: Cluster, tmp_path: Path) -> None:
    words = ["record", PORT, "--out", str(tmp_path / "Scenario-1"), "--backend", "embedded", "--before", "60"]
    before = _namespaces(elsewhere)
    elsewhere.close()
    result = CliRunner().invoke(cli, [*words, "--after", "60"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert before


def test_a_real_cluster_is_recorded_on_one_at_a_time(elsewhere: Cluster, tmp_path: Path) -> None:
    words = ["record", "--all", PORT, "--out", str(tmp_path / "set"), "--parallel", "2"]
    with pytest.raises(SreArenaError, match="one recording at a time"):
        CliRunner().invoke(cli, words, catch_exceptions=False)


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    words = ["record", PORT, "--out", str(tmp_path / "x"), "--backend", "kubernetes", "--kubeconfig", "/nowhere"]
    with pytest.raises(SreArenaError, match="/nowhere"):
        CliRunner().invoke(cli, words, catch_exceptions=False)
    assert not (tmp_path / "x").exists()
