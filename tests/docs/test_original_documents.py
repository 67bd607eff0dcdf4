"""Every command, import, path and option that the documents of the two original projects name works here.

The documents are not part of the repository; `original_documents.yaml` lists what they name, line by line, with the
proof of each line.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis import all_tools
from sre_tools.shell import run as sre_tools_command
from srearena.errors import InputError
from srearena.snapshots import find_snapshots
from srearena.snapshots.examples import complete_directory, unpack
from tests.evaluations.judge_server import ScriptedJudge, serving

ROOT = Path(__file__).parents[2]
TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "original_documents.yaml").read_text())
ROWS = [
    pytest.param(row, id=f"{document}-{number}")
    for document, rows in TABLE.items()
    for number, row in enumerate(rows, 1)
]
PROOFS = {"path", "run", "test", "document", "tools"}


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("data") / "ITBench-Snapshots")[0]


def environment(place: Path) -> dict[str, str]:
    """Ours, with the keys that the document has its reader export, and a program that says it is Codex."""
    program = place / "bin" / "codex"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\necho codex-cli 0.166.0\n")
    program.chmod(0o755)
    keys = dict.fromkeys(("OR_API_KEY", "ETE_API_KEY", "AZURE_OPENAI_API_KEY"), "key")
    return {**os.environ, **keys, "HOME": str(place), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}


def run(words: list[str], place: Path, **values: str) -> subprocess.CompletedProcess[str]:
    filled = [word.format(**values) for word in words]
    program = [sys.executable, *filled[1:]] if filled[0] == "python" else filled
    return subprocess.run(
        program, cwd=ROOT, env=environment(place), capture_output=True, text=True, timeout=120, check=False
    )


def test_every_line_has_one_proof() -> None:
    for rows in TABLE.values():
        for row in rows:
            assert len(PROOFS & row.keys()) == 1, row["line"]
            assert set(row) <= PROOFS | {"line", "why"}, row["line"]


@pytest.mark.parametrize("row", [row for row in ROWS if PROOFS & {*row.values[0]} - {"run"}])  # type: ignore[misc]
def test_what_the_documents_name_is_there(row: dict[str, Any]) -> None:
    if "path" in row:
        _open(ROOT / row["path"])
    if "tools" in row:
        assert set(row["tools"]) <= set(all_tools())
    if "document" in row:
        assert "```bash" in (ROOT / row["document"]).read_text()
    if "test" in row:
        file, _, function = row["test"].partition("::")
        assert f"def {function or 'test_'}" in (ROOT / file).read_text(), row["line"]


def _open(path: Path) -> None:
    """What a reader who follows a link expects: a page with links that work, a module, a text."""
    text = path.read_text()
    if path.suffix == ".md":
        assert text.startswith("# ") and len(text) > 200, path
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", text):
            assert (path.parent / target).exists(), f"{path}: {target}"
    elif path.suffix == ".py":
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        assert module.__doc__
    else:
        assert path.name == "LICENSE.txt" and text.startswith("MIT License")


@pytest.mark.parametrize("row", [row for row in ROWS if "run" in row.values[0]])  # type: ignore[operator]
def test_the_commands_run_as_written(row: dict[str, Any], tmp_path: Path, scenario: Path) -> None:
    abbreviated = scenario.parents[1] / "v0.1-..." / scenario.name
    done = run(row["run"], tmp_path, work=str(tmp_path), scenario=str(scenario), abbreviated=str(abbreviated))
    assert done.returncode == 0, f"{row['line']}: {done.stderr}"


def test_a_leaderboard_is_run_judged_again_and_evaluated(tmp_path: Path) -> None:
    """The lines of "Run Leaderboard", "JSON Results" and "Run Judge Independently", one after another.

    The configuration is the repository's own; of its agents the one that needs no model runs, the judge is scripted.
    """
    unpack(tmp_path / "ITBench-Snapshots")
    (tmp_path / "zero").symlink_to(ROOT / "zero")
    text = (ROOT / "model_leaderboard.toml").read_text()
    keys = dict.fromkeys(("OR_API_KEY", "ETE_API_KEY"), "key")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JUDGE_")}
    variables = {**clean, **keys, "SREARENA_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}

    def typed(line: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, *shlex.split(line)[1:]]
        return subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    leaderboard = "python -m itbench_leaderboard --config model_leaderboard.toml"
    with serving(ScriptedJudge()) as judge:
        (tmp_path / "model_leaderboard.toml").write_text(text.replace("https://openrouter.ai/api/v1", judge))
        unreachable = typed(f"{leaderboard} --agents gpt-5.1-azure --scenarios Scenario-3")
        assert unreachable.returncode == 1 and "start the proxy: litellm --config" in unreachable.stderr
        for line in (
            f"{leaderboard} --agents rules --scenarios 1 2 --runs 1",
            f"{leaderboard} --runs 1 --agents rules --scenarios Scenario-3 --verbose",
            f"{leaderboard} --agents rules --rejudge",
            "python -m itbench_evaluations --ground-truth ./ITBench-Snapshots --outputs ./leaderboard_results/rules "
            "--result-file ./evaluation_results.json",
        ):
            done = typed(line)
            assert done.returncode == 0, f"{line}: {done.stderr}"
    results = tmp_path / "leaderboard_results" / "results"
    (row,) = json.loads((results / "leaderboard.json").read_text())["rankings"]
    assert (row["agent"], row["graded"]) == ("rules", 3)
    assert len(json.loads((results / "rules.json").read_text())["scenarios"]) == 6
    trial = tmp_path / "leaderboard_results" / "rules" / "Scenario-3" / "1"
    assert (trial / "agent_output.json").is_file() and (trial / "judge_output.json").is_file()
    statistics = json.loads((tmp_path / "evaluation_results.json").read_text())["statistics"]
    assert statistics["per_incident"]["3"]["root_cause_entity_f1"]["n"] == 1


def test_the_recordings_are_where_the_document_has_them(scenario: Path) -> None:
    root = scenario.parents[3]
    assert root.name == "ITBench-Snapshots"
    assert [path.relative_to(root).parts[:2] for path in find_snapshots(root)] == [("snapshots", "sre")] * 6
    assert all((path / "ground_truth.yaml").is_file() for path in find_snapshots(root))


def test_an_abbreviated_directory_stands_for_the_only_one(scenario: Path, tmp_path: Path) -> None:
    root = scenario.parents[1]
    assert complete_directory(root / "v0.1-..." / scenario.name) == scenario
    assert complete_directory(root / "v0.1-...") == scenario.parent
    for name in ("v0.1-a", "v0.1-b"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=r"v0\.1-a, v0\.1-b"):
        complete_directory(tmp_path / "v0.1-...")
    with pytest.raises(InputError, match=r"none .*srearena snapshot examples"):
        complete_directory(tmp_path / "v0.3-..." / "Scenario-1")


def test_arguments_before_the_tools_name_are_explained() -> None:
    with pytest.raises(ToolError, match="the tool's name comes first: sre-tools TOOL --snapshot"):
        sre_tools_command(["--snapshot", "Scenario-3", "alert_summary"])
