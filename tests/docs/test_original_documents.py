"""Every command, import, path and option that the documents of the two original projects name works here.

The documents are not part of the repository; `original_documents.yaml` lists what they name, line by line, with the
proof of each line.
"""

from __future__ import annotations

import os
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

ROOT = Path(__file__).parents[2]
TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "original_documents.yaml").read_text())
ROWS = [
    pytest.param(row, id=f"{document}-{number}")
    for document, rows in TABLE.items()
    for number, row in enumerate(rows, 1)
]
PROOFS = {"path", "run", "options", "test", "document", "tools"}


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


@pytest.mark.parametrize("row", [row for row in ROWS if PROOFS & {*row.values[0]} - {"run", "options"}])  # type: ignore[arg-type]
def test_what_the_documents_name_is_there(row: dict[str, Any]) -> None:
    if "path" in row:
        assert list(ROOT.glob(row["path"])), row["line"]
    if "tools" in row:
        assert set(row["tools"]) <= set(all_tools())
    if "document" in row:
        assert "```bash" in (ROOT / row["document"]).read_text()
    if "test" in row:
        file, _, function = row["test"].partition("::")
        assert f"def {function or 'test_'}" in (ROOT / file).read_text(), row["line"]


@pytest.mark.parametrize("row", [row for row in ROWS if {"run", "options"} & {*row.values[0]}])  # type: ignore[arg-type]
def test_the_commands_run_as_written(row: dict[str, Any], tmp_path: Path, scenario: Path) -> None:
    words = row.get("run") or row["options"]["command"]
    abbreviated = scenario.parents[1] / "v0.1-..." / scenario.name
    done = run(words, tmp_path, work=str(tmp_path), scenario=str(scenario), abbreviated=str(abbreviated))
    assert done.returncode == 0, f"{row['line']}: {done.stderr}"
    for option in row.get("options", {}).get("names", ()):
        assert option in done.stdout


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
