"""Incidents as a taskset of verifiers, with the real package and a scripted model."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from srearena.conductor.worlds import fork_is_safe
from tests.frameworks.environments import example_of, python_with, run_code
from tests.llm.model_server import Turn, serving

pytestmark = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")
PROBLEM = "scale_pod_zero_social_net"

# The loaders of the package find the taskset by its name.
FOUND = """
from verifiers.v1.utils.loaders import environment_class, taskset_class
from srearena_incidents import IncidentsEnv, IncidentsTaskset, load_environment
assert taskset_class("srearena-incidents") is IncidentsTaskset
assert environment_class("srearena-incidents") is IncidentsEnv
tasks = list(load_environment(suite="lite", seeds=2, stages=["detection"]).taskset.load())
assert len(tasks) == 42 and {task.data.seed for task in tasks} == {0, 1}
assert all(task.data.problem not in task.data.prompt for task in tasks)
"""


def script(body: dict[str, Any], number: int) -> Turn:
    """Every attempt looks, and answers; the second one to answer is wrong."""
    if "get_alerts" not in json.dumps([one for one in body["messages"] if one["role"] == "assistant"]):
        return Turn("I look first.\n```\nget_alerts()\n```")
    script.answers += 1
    return Turn(f'```\nsubmit("{"Yes" if script.answers == 1 else "No"}")\n```')


REFUSED = """
from srearena.errors import SreArenaError
from srearena_incidents import load_environment
try:
    load_environment()
except SreArenaError as problem:
    assert "uv" in str(problem)
else:
    raise AssertionError("accepted")
"""


def path_with_uv(python: str) -> str:
    """Where `uv` is found: that of the framework's environment, of the tests' own, or of the machine."""
    return os.pathsep.join((str(Path(python).parent), str(Path(sys.executable).parent), os.environ["PATH"]))


def test_the_taskset_is_found_by_its_name(tmp_path: Path) -> None:
    python = python_with("verifiers", "verifiers")
    run_code(python, FOUND, tmp_path, PATH=path_with_uv(python))


def test_an_environment_without_uv_is_refused_at_once(tmp_path: Path) -> None:
    run_code(python_with("verifiers", "verifiers"), REFUSED, tmp_path, PATH=str(tmp_path))


@pytest.mark.timeout(900)
def test_the_example_of_the_documentation_rewards_what_the_model_did(tmp_path: Path) -> None:
    python = python_with("verifiers", "verifiers")
    script.answers = 0
    with serving(script) as model:
        variables = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "none", "PATH": path_with_uv(python)}
        done = run_code(python, example_of("verifiers.md"), tmp_path, **variables)
    assert "[0.0, 1.0]" in done.stdout
    assert PROBLEM not in json.dumps(model.requests)
    answered = [one for one in model.requests if len(one["messages"]) > 2]
    assert any("firing" in one["messages"][-1]["content"] for one in answered)
