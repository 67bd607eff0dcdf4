"""Errors of a configuration are reported in one line, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from itbench_leaderboard.config import load
from itbench_leaderboard.errors import ConfigurationError
from itbench_leaderboard.incidents import choose, find
from itbench_leaderboard.judging import judge_settings
from srearena.conductor.errors import ArenaError
from srearena.snapshots.examples import unpack
from tests.leaderboard.incidents import make_snapshots
from zero.providers import choose as choose_provider

# As the original documents show it, all keys.
DOCUMENTED = """
scenarios_dir = "./snapshots"
leaderboard_dir = "./leaderboard_results"
runs_per_scenario = 3
concurrent = true
max_workers = 3
collect_traces = true
[judge]
model = "google/gemini-2.5-pro"
provider = "openrouter"
base_url = "https://openrouter.ai/api/v1"
[[agents]]
name = "gpt-5.1-azure"
model = "Azure/gpt-5.1-2025-11-13"
provider = "ete"
prompt_file = "./react_shell_investigation.md"
wire_api = "responses"
[[agents]]
prompt = "react with code"
commit = "d4cd266"
model = "google/gemini-2.5-pro"
provider = "openrouter"
prompt_file = "./react_shell_investigation.md"
wire_api = "chat"
user_query = "otel-demo only"
[agents.variables]
ARCH = "app.json"
"""


def written(place: Path, text: str) -> Path:
    path = place / "model_leaderboard.toml"
    path.write_text(text)
    return path


def test_the_documented_file_is_understood(tmp_path: Path) -> None:
    config = load(written(tmp_path, DOCUMENTED))
    assert list(config.named_agents()) == ["gpt-5.1-azure", "react with code_google_gemini-2.5-pro_d4cd266"]
    assert config.workers == 3
    assert config.scenarios_dir == tmp_path / "snapshots"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scenarios_dir = 's'\nagents = []", "at least one"),
        ("[[agents]]\nname = 'a'", "nothing to run on"),
        ("scenarios_dir = 's'\n[[agents]]\nname = 'a'\n[[agents]]\nname = 'a'", "both write to a"),
        ("scenarios_dir = 's'\n[[agents]]\nname = 'results'", "where results go"),
        ("scenarios_dir = 's'\n[[agents]]\nname = 'leaderboard'", "where results go"),
        ("scenarios_dir = 's'\n[[agents]]\nname = 'a'\ncolour = 'red'", "colour"),
        ("scenarios_dir = 's'\nruns_per_scenario = 0\n[[agents]]\nname = 'a'", "runs_per_scenario"),
        ("scenarios_dir = 's'\n[[agents]]\nname = 'a'\nkind = 'python'", "module:Class"),
        ("scenarios_dir = 's'\n[[agents]]\nname = 'a'\nkind = 'http'", "url"),
        ("scenarios_dir = ", "not valid TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        load(written(tmp_path, text))


@pytest.mark.parametrize("name", ["../../etc", "/abs", "..", "a/b", "."])
def test_no_name_leads_out_of_the_leaderboard(tmp_path: Path, name: str) -> None:
    config = load(written(tmp_path, f"scenarios_dir = 's'\n[[agents]]\nname = '{name}'"))
    for directory in config.named_agents():
        assert (tmp_path / directory).resolve().parent == tmp_path.resolve()


def test_incidents_are_found_however_deep_and_chosen_by_number(tmp_path: Path) -> None:
    make_snapshots(tmp_path / "snapshots" / "sre" / "v0.2", 12)
    config = load(written(tmp_path, "scenarios_dir = 'snapshots'\n[[agents]]\nname = 'a'"))
    found = find(config)
    assert [one.name for one in found] == [f"Scenario-{number}" for number in range(1, 13)]
    assert {one.family for one in found} == {"virtualization"}
    assert [one.name for one in choose(found, ["2", "Scenario-11"])] == ["Scenario-2", "Scenario-11"]
    with pytest.raises(ConfigurationError, match="no incident '77'"):
        choose(found, ["77"])


def test_live_problems_stand_in_the_same_list(tmp_path: Path) -> None:
    make_snapshots(tmp_path / "snapshots", 1)
    text = "scenarios_dir = 'snapshots'\nproblems = ['scale_pod_zero_social_net']\n[[agents]]\nname = 'a'"
    assert [one.kind for one in find(load(written(tmp_path, text)))] == ["snapshot", "live"]


def test_a_suite_adds_its_problems_once(tmp_path: Path) -> None:
    text = "suite = 'lite@1'\nproblems = ['noop_hotel_reservation']\n[[agents]]\nname = 'a'"
    found = [one.name for one in find(load(written(tmp_path, text)))]
    assert len(found) == 21 and found.count("noop_hotel_reservation") == 1
    with pytest.raises(ArenaError, match="did you mean lite"):
        find(load(written(tmp_path, text.replace("lite@1", "lit"))))


def test_answer_keys_may_lie_apart_from_the_evidence(tmp_path: Path) -> None:
    make_snapshots(tmp_path / "snapshots", 2)
    for number in (1, 2):
        key = tmp_path / "keys" / f"Scenario-{number}" / "ground_truth.yaml"
        key.parent.mkdir(parents=True)
        (tmp_path / "snapshots" / f"Scenario-{number}" / "ground_truth.yaml").rename(key)
    config = tmp_path / "model_leaderboard.toml"
    text = 'scenarios_dir = "snapshots"\n[[agents]]\nname = "a"\n'
    config.write_text(text)
    with pytest.raises(ConfigurationError, match="answers_dir"):
        find(load(config))
    config.write_text(f'answers_dir = "keys"\n{text}')
    first, second = find(load(config))
    assert (first.path, first.truth().incident_id) == (str(tmp_path / "snapshots" / "Scenario-1"), "1")
    assert "keys" not in json.dumps(second.public_document())
    (tmp_path / "snapshots" / "Scenario-2").rename(tmp_path / "gone")
    with pytest.raises(ConfigurationError, match="answer key of no recording"):
        find(load(config))


def test_the_configuration_in_the_repository_is_the_documented_one(tmp_path: Path) -> None:
    """The same keys and values as in the original document, `...` included, on the recordings that come with us."""
    text = (Path(__file__).parents[2] / "model_leaderboard.toml").read_text()
    path = tmp_path / "model_leaderboard.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="srearena snapshot examples"):
        load(path)
    unpack(tmp_path / "ITBench-Snapshots")
    config = load(path)
    assert [agent.name for agent in config.agents] == ["gpt-5.1-azure", "gemini-2.5-pro", "rules"]
    assert (config.runs_per_scenario, config.workers, config.judge.model) == (3, 3, "google/gemini-2.5-pro")
    assert [one.name for one in choose(find(config), ["Scenario-3", "1"])] == ["Scenario-3", "Scenario-1"]
    keys = dict.fromkeys(("OR_API_KEY", "ETE_API_KEY", "AZURE_OPENAI_API_KEY"), "key")
    for agent in config.agents[:2]:
        assert choose_provider(agent.provider, keys, wire_api=agent.wire_api).base_url
    settings = judge_settings(config.judge, keys)
    assert settings is not None and settings.api_key == "key"


def test_an_abbreviated_directory_must_be_unambiguous(tmp_path: Path) -> None:
    path = tmp_path / "model_leaderboard.toml"
    path.write_text('scenarios_dir = "v0.1-..."\n[[agents]]\nname = "a"\n')
    for name in ("v0.1-a", "v0.1-b"):
        (tmp_path / name).mkdir()
    with pytest.raises(ConfigurationError, match=r"there are: v0\.1-a, v0\.1-b"):
        load(path)
