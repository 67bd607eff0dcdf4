"""Where problems run: the command line before `config.yml`, and embedded where neither says anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from srearena.backends import backend_options, chosen_config
from srearena.cli import cli
from srearena.cluster import Cluster
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.shared_cluster import all_ledgers
from srearena.conductor.shared_cluster.inventory import take_inventory
from srearena.conductor.trials.trial import Trial
from srearena.config import Config, ConfigError
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import SHOP

CHOSEN: list[Config] = []


@click.group()
@backend_options
def outer(**where: Any) -> None: ...


@outer.command()
@backend_options
def inner(**where: Any) -> None:
    CHOSEN.append(chosen_config(**where))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CHOSEN.clear()


def chosen(*words: str) -> Config:
    done = CliRunner().invoke(outer, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return CHOSEN[-1]


def test_without_a_word_it_is_embedded() -> None:
    assert chosen("inner") == Config()


def test_options_count_before_and_after_the_command() -> None:
    for words in (
        ("--backend", "kubernetes", "--context", "lab", "inner"),
        ("inner", "--backend", "kubernetes", "--context", "lab"),
        ("--backend", "kubernetes", "--context", "home", "inner", "--context", "lab"),
    ):
        found = chosen(*words)
        assert (found.embedded, found.context) == (False, "lab")


def test_the_command_line_goes_before_the_file() -> None:
    Path("config.yml").write_text("k8s_host: kind\ncontext: kind-shop\n")
    assert chosen("inner").k8s_host == "kind"
    assert chosen("inner", "--backend", "embedded").embedded
    found = chosen("inner", "--backend", "kubernetes", "--context", "kind-other", "--yes-this-cluster")
    assert (found.k8s_host, found.context, found.yes_this_cluster) == ("kind", "kind-other", True)


def test_a_context_without_a_real_cluster_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="add --backend kubernetes"):
        chosen("inner", "--context", "lab")


@pytest.mark.parametrize("command", ["up", "top", "run", "serve", "shell", "verify", "record"])
def test_every_command_that_needs_a_cluster_offers_it(command: str) -> None:
    text = CliRunner().invoke(cli, [command, "--help"], catch_exceptions=False).output
    assert "--backend" in text and "--context" in text and "--yes-this-cluster" in text


def test_a_trial_in_another_process_runs_where_it_was_told() -> None:
    config = Config(k8s_host="kind", context="kind-shop")
    trial = Trial("x", "nothing", "run", spec=EpisodeSpec(config=config))
    assert Trial.from_document(trial.as_document()) == trial


def test_production_is_refused_on_the_command_line(theirs: Cluster, tmp_path: Path) -> None:
    text = theirs.kubeconfig.read_text().replace("kubernetes-admin@kubernetes", "shop-production")
    path = tmp_path / "config"
    path.write_text(text)
    words = ["up", "hotel-reservation", "--backend", "kubernetes", "--kubeconfig", str(path)]
    with pytest.raises(SreArenaError, match="'shop-production' looks like production"):
        CliRunner().invoke(cli, words, catch_exceptions=False)


def test_an_application_is_brought_up_and_left_until_somebody_cleans_up(theirs: Cluster, api: Kubernetes) -> None:
    before = take_inventory(api)
    Path("config.yml").write_text(f"k8s_host: kubernetes\nkubeconfig: {theirs.kubeconfig}\ntelemetry: {{}}\n")
    done = CliRunner().invoke(cli, ["up", SHOP, "--no-load", "--detach"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "Corner Shop (namespace corner-shop): up" in done.output
    assert api.get("deployments", "web", "corner-shop")["status"]["readyReplicas"]
    [ledger] = all_ledgers()
    with pytest.raises(SreArenaError, match=f"`srearena up` left run {ledger.run} here"):
        CliRunner().invoke(cli, ["up", SHOP], catch_exceptions=False)
    CliRunner().invoke(cli, ["cleanup", "--run", ledger.run], catch_exceptions=False)
    assert before.differences(take_inventory(api)) == []
