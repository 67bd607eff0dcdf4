"""The onboarding examples: the third one, with Claude Code, runs as documented except for the model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live_tools.test_serve import KEY, investigator
from tests.zero.scripted_model import scripted

PAGE = Path(__file__).parents[2] / "docs" / "onboarding-an-agent.md"
EXAMPLES = re.findall(r"```(?:python|bash)\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_there_are_three_and_each_is_short() -> None:
    assert len(EXAMPLES) == 3 and all(len(example.splitlines()) < 40 for example in EXAMPLES)


@pytest.mark.kubectl
@pytest.mark.timeout(600)
def test_claude_code_works_as_documented(coding_cli: Callable[[str], str], tmp_path: Path) -> None:
    program = coding_cli("claude")
    with scripted(investigator) as model:
        environment = {
            **os.environ,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), str(Path(program).parent), os.environ["PATH"])),
            "HOME": str(tmp_path),
            "SREARENA_RESULTS": str(tmp_path / "results"),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_MODEL": "scripted-1",
            "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "MCP_CONNECTION_NONBLOCKING": "0",
            "MCP_TIMEOUT": "60000",
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", EXAMPLES[2]],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])["result"]
    assert result["outcome"] == "pass", result["reason"]
