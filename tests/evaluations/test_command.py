"""`itbench-eval` from the outside: the documented commands, the layouts, the errors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from itbench_evaluations import schemas
from itbench_evaluations.result_schema import ResultDocument

from .samples import MIXED, RIGHT, SHOP, answer, itbench_eval, write_trial


def test_the_command_of_the_readme_works_as_written(tmp_path: Path) -> None:
    shutil.copytree(SHOP, tmp_path / "ITBench-Snapshots" / "snapshots" / "sre" / "v0.1-x")
    agent = "react with code_google_gemini-2.5-pro_d4cd266"
    write_trial(tmp_path / "leaderboard_results" / agent, "Scenario-1", "1", RIGHT)
    script = (
        "itbench-eval \\\n  --ground-truth ./ITBench-Snapshots \\\n"
        "  --outputs ./leaderboard_results/react\\ with\\ code_google_gemini-2.5-pro_d4cd266 \\\n"
        "  --result-file ./evaluation_results.json\n"
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "evaluation_results.json").read_text())
    assert document["statistics"]["overall"]["root_cause_entity_f1"]["mean"] == 1.0
    assert set(document) >= {"raw_results", "statistics", "config", "schema_version"}
    assert document["config"]["k"] == 3


def test_short_flags_and_criteria(tmp_path: Path) -> None:
    write_trial(tmp_path / "out", "1", "1", MIXED)
    done = itbench_eval(
        "-g", SHOP, "-o", "out", "-r", "r.json", "-e", "root_cause_entity", "PROPAGATION_CHAIN", "--k", 1,
        "--max-concurrent", 2, "-v", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "r.json").read_text())
    flat = document["raw_results"][0]["flat_scores"]
    assert flat["root_cause_entity_k_precision"] == 1.0 and flat["root_cause_entity_precision"] == 0.5
    assert "propagation_chain" in flat and "itbench_aa" not in flat
    assert "incident 1 trial 1" in done.stderr


@pytest.mark.parametrize(
    "layout",
    [
        "{o}/1/1/agent_output.json",
        "{o}/Scenario-1/1/agent_output.json",
        "{o}/scenario_1/2/outputs/agent_output.json",
        "{o}/SCENARIO-1/1/outputs/agent_response.json",
        "{o}/scenario-i1/1/agent_response.json",
        "{o}/incident-1/run-1/agent_output.json",
        "{o}/incident_1/trial_3/agent_output.json",
        "{o}/scenario1/agent_output.json",
        "{o}/agent_outputs/Scenario-1/1/agent_output.json",
    ],
)
def test_every_layout_of_outputs_is_found(tmp_path: Path, layout: str) -> None:
    file = Path(layout.format(o=tmp_path / "out"))
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(RIGHT))
    done = itbench_eval("-g", SHOP, "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "evaluation_results.json").read_text())["raw_results"]
    assert [(row["incident_id"], row["flat_scores"]["root_cause_entity_f1"]) for row in rows] == [("1", 1.0)]


def test_nothing_is_passed_over_in_silence(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_trial(out, "Scenario-1", "1", RIGHT)
    write_trial(out, "Scenario-77", "1", RIGHT)
    (out / "notes").mkdir()
    (out / "results").mkdir()
    done = itbench_eval("-g", SHOP, "-o", out, cwd=tmp_path)
    assert done.returncode == 0
    assert "no ground truth for incident(s) 77" in done.stderr
    assert "notes is neither an incident" in done.stderr and "/results" not in done.stderr
    assert "2 incident(s) of the ground truth have no trials: 2, 3" in done.stderr
    document = json.loads((tmp_path / "evaluation_results.json").read_text())
    assert document["ungraded_incidents"] == ["77"] and document["incidents_without_trials"] == ["2", "3"]


def test_infrastructure_namespaces_can_be_left_out(tmp_path: Path) -> None:
    write_trial(tmp_path / "out", "1", "1", answer("shop/ConfigMap/flags", "kube-system/Pod/dns-0", "noisy/Pod/x-0"))
    itbench_eval("-g", SHOP, "-o", "out", "--ignore-namespaces", "infra", "noisy", cwd=tmp_path)
    row = json.loads((tmp_path / "evaluation_results.json").read_text())["raw_results"][0]
    assert row["flat_scores"]["root_cause_entity_precision"] == 1.0
    assert any("ignored namespace" in note for note in row["notes"])


@pytest.mark.parametrize("policy", ["strict", "workload", "lenient"])
def test_the_policy_is_chosen_and_recorded(tmp_path: Path, policy: str) -> None:
    write_trial(tmp_path / "out", "2", "1", answer("shop/Deployment/payment", "shop/ResourceQuota/tight"))
    itbench_eval("-g", SHOP, "-o", "out", "--policy", policy, cwd=tmp_path)
    document = json.loads((tmp_path / "evaluation_results.json").read_text())
    assert document["config"]["policy"] == policy
    expected = 0.5 if policy == "strict" else 1.0
    assert document["raw_results"][0]["flat_scores"]["root_cause_entity_recall"] == expected


def test_a_result_satisfies_its_published_schema(tmp_path: Path) -> None:
    for trial, document in enumerate((RIGHT, MIXED, "broken", answer()), start=1):
        write_trial(tmp_path / "out", "1", str(trial), document)
    itbench_eval("-g", SHOP, "-o", "out", cwd=tmp_path)
    document = json.loads((tmp_path / "evaluation_results.json").read_text())
    jsonschema.validate(document, schemas.schema("result"))
    ResultDocument.model_validate(document)
    jsonschema.validate(RIGHT, schemas.schema("agent_output"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"entities": [{"name": "x"}]}, schemas.schema("agent_output"))


@pytest.mark.parametrize("name", sorted(schemas.MODELS))
def test_the_published_schemas_are_up_to_date(name: str, tmp_path: Path) -> None:
    published = (schemas.DIRECTORY / f"{name}.schema.json").read_text()
    assert published == schemas.text(name), "run: itbench-eval schema --write"
    assert itbench_eval("schema", name, cwd=tmp_path).stdout == published


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "required: --ground-truth/-g, --outputs/-o"),
        (("-g", "nowhere", "-o", "."), "ground truth not found"),
        (("-g", SHOP, "-o", "nowhere"), "outputs not found"),
        (("-g", SHOP, "-o", "empty"), "no trials under"),
        (("-g", "empty", "-o", "out"), "no ground truth under"),
        (("-g", SHOP, "-o", "out", "-e", "NONSENSE"), "unknown criterion 'NONSENSE'"),
        (("-g", SHOP, "-o", "out", "--k", "0"), "must be at least 1"),
        (("-g", SHOP, "-o", "out", "--max-concurrent", "x"), "'x' is not a number"),
        (("-g", SHOP, "-o", "out", "-r", "file/inside.json"), "cannot write"),
        (("-g", SHOP, "-o", "strangers"), "has a ground truth"),
        (("compare", "nope.json", "nope.json"), "cannot read the result"),
        (("compare", "file", "file"), "cannot read the result"),
        (("schema",), "which schema?"),
    ],
)
def test_each_mistake_is_one_clear_line(tmp_path: Path, arguments: tuple[object, ...], complaint: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    write_trial(tmp_path / "out", "1", "1", RIGHT)
    write_trial(tmp_path / "strangers", "500", "1", RIGHT)
    done = itbench_eval(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("itbench-eval: ")


def test_debug_shows_where_an_error_came_from(tmp_path: Path) -> None:
    done = itbench_eval("-g", "nowhere", "-o", ".", "--debug", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" in done.stderr


def test_help_names_the_other_commands(tmp_path: Path) -> None:
    done = itbench_eval("--help", cwd=tmp_path)
    assert done.returncode == 0 and "lint | compare | report | schema" in done.stdout


def test_an_unreadable_output_file_is_a_bad_run_not_a_crash(tmp_path: Path) -> None:
    write_trial(tmp_path / "out", "1", "1", RIGHT)
    (tmp_path / "out" / "1" / "2").mkdir()
    (tmp_path / "out" / "1" / "2" / "agent_output.json").symlink_to(tmp_path / "gone")
    done = itbench_eval("-g", SHOP, "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    row = json.loads((tmp_path / "evaluation_results.json").read_text())["raw_results"][1]
    assert row["bad_run"] is True and "no agent_output.json" in row["error"]


def test_the_rules_work_without_the_judges_client(tmp_path: Path) -> None:
    """The core install has no HTTP client: rules must not miss it, and asking a judge must say what is missing."""
    write_trial(tmp_path / "out", "1", "1", RIGHT)
    blocker = tmp_path / "blocked"
    blocker.mkdir()
    (blocker / "httpx.py").write_text("raise ImportError('not installed')\n")
    env = {"PYTHONPATH": str(blocker)}
    assert itbench_eval("-g", SHOP, "-o", "out", "--judge", "none", cwd=tmp_path, env=env).returncode == 0
    done = itbench_eval("-g", SHOP, "-o", "out", "--judge", "llm", "--judge-model", "m", cwd=tmp_path, env=env)
    assert done.returncode == 2 and "srearena[judge]" in done.stderr
