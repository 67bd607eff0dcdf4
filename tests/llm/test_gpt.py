"""`python3 clients/gpt.py` as a person types it, with a scripted model behind an address of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.llm.model_server import Turn, call, results_in, serving

GPT = Path(__file__).parents[2] / "clients" / "gpt.py"


def typed(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment = {**kept, "SREARENA_RESULTS": str(folder / "results"), **variables}
    command = [sys.executable, str(GPT), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_problem_is_solved_with_a_transcript_to_read(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        return call("submit", solution="Yes") if results_in(body) else call("get_alerts")

    with serving(script) as model:
        (tmp_path / ".env").write_text(
            f"SREARENA_MODEL=gpt-4.1\nOPENAI_BASE_URL={model.url}/v1\nOPENAI_API_KEY=k-4711\n"
        )
        done = typed(tmp_path, "--stages", "detection", "--budget-usd", "1", "--max-steps", "5")
    assert done.returncode == 0, done.stderr
    assert "Outcome: pass" in done.stdout and "2 steps, 2,000 tokens in" in done.stdout
    assert "I will use get_alerts." in done.stderr and "[2] submit(solution='Yes')" in done.stderr
    assert model.headers[0]["authorization"] == "Bearer k-4711"
    records = "".join(path.read_text() for path in (tmp_path / "results").rglob("*") if path.is_file())
    assert '"model call"' in records and "k-4711" not in records + done.stdout + done.stderr


def test_what_is_missing_is_one_line(tmp_path: Path) -> None:
    for words, said in (
        (("--model", "gpt-4.1"), "OPENAI_API_KEY"),
        (("--model", "local/mine", "--budget-usd", "1"), "needs prices"),
        (("--model", "local/mine", "--agent-option", "red"), "KEY=VALUE"),
        (("--model", "local/mine", "--suite", "no_such_*"), "no_such_"),
    ):
        done = typed(tmp_path, *words)
        assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
