"""A group of rollouts from a scripted endpoint, the run it writes, and its export as Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.conductor.errors import ArenaError
from srearena.conductor.worlds import fork_is_safe
from srearena.errors import SreArenaError
from srearena.frameworks.incidents import grade_from, select_problems
from srearena.frameworks.parquet import TABLES, export
from srearena.frameworks.rollouts import advantages, collect_group
from srearena.frameworks.trl_environment import GrpoEnvironment, _pool, rows
from tests.docs.test_documents import BLOCK, ROOT
from tests.frameworks.environments import MOST_LINES, example_of, python_with, run_code
from tests.llm.model_server import Turn, call, serving

forks = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")
PROBLEM = "scale_pod_zero_social_net"


def script(body: dict[str, Any], number: int) -> Turn:
    """The first attempt looks and answers right; the second makes a mistake and answers wrong."""
    turns = {
        1: call("get_alerts"),
        2: call("submit", solution="Yes"),
        3: Turn("", (("wait", "not json"),)),
        4: call("submit", solution="No"),
    }
    return turns[number]


def failing(body: dict[str, Any], number: int) -> Turn:
    return Turn(status=500)


def first_example(page: str) -> str:
    text = Path(ROOT, "docs", page).read_text()
    code: str = next(code for _, kind, code in BLOCK.findall(text) if kind == "python")
    assert len(code.splitlines()) < MOST_LINES
    return code


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    """The example of the documentation, run once: the folder of the run, its variables, the requests to the model."""
    folder = tmp_path_factory.mktemp("rollouts")
    variables: dict[str, Any] = {}
    with serving(script) as model, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
        exec(compile(first_example("rollouts.md"), "docs/rollouts.md", "exec"), variables)
    return folder / "group", variables, model.requests


@forks
@pytest.mark.timeout(600)
def test_rewards_differ_by_what_the_model_did(collected: Any) -> None:
    _, variables, requests = collected
    assert variables["rewards"] == [1.0, 0.0]
    first, second = variables["group"]
    assert first.messages[0] == second.messages[0], "both attempts start from the same state"
    assert first.messages[2]["content"].startswith("firing ")
    assert second.messages[2]["content"].startswith("Error: the arguments of wait are not JSON")
    assert {"kubectl", "submit"} <= {tool["function"]["name"] for tool in requests[0]["tools"]}
    assert PROBLEM not in json.dumps(requests), "the model never learns the id"


@forks
@pytest.mark.timeout(600)
def test_the_group_is_a_run_and_becomes_a_dataset(collected: Any, tmp_path: Path) -> None:
    run, _, _ = collected
    done = CliRunner().invoke(cli, ["export", str(tmp_path / "exported"), "--suite", "lite", "--run", str(run)])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "exported").iterdir()) == [
        "README.md",
        *(f"{table}.parquet" for table in sorted(TABLES)),
    ]
    check = """
results = load_dataset("exported", "results", split="train")
assert (results["reward"], results["passed"]) == ([1.0, 0.0], [True, False]), results["reward"]
assert results[0]["scores"] == [{"stage": "detection", "score": 1.0}]
assert [step["action"] for step in trajectories[0]["steps"]] == ["get_alerts()", "submit(solution='Yes')"]
assert trajectories[0]["steps"][0]["observation"].startswith("firing ")
assert len(problems) == 21
"""
    home = str(tmp_path / "home")
    python = python_with("datasets", "datasets")
    run_code(python, example_of("datasets.md") + check, tmp_path, HF_HOME=home, HF_HUB_OFFLINE="1")


@forks
@pytest.mark.timeout(600)
def test_a_grpo_environment_is_driven_as_trl_does_and_an_endpoint_that_fails_is_one_clear_error() -> None:
    (row,) = rows(PROBLEM, seeds=[1], stages=["detection"], max_steps=5)
    left, right = GrpoEnvironment(), GrpoEnvironment()
    try:
        assert left.reset(**row) == right.reset(**row)
        assert left.get_alerts() == right.get_alerts()
        assert left.submit_text("Yes") == "The episode is over."
        assert [left.get_reward(), right.get_reward(), left.get_reward()] == [1.0, 0.0, 1.0]
        assert right.submit_text("Yes") == "The episode is over.", "nothing can be done after the grade"
        with serving(failing) as model, pytest.raises(SreArenaError, match="did not answer as OpenAI's does"):
            collect_group(_pool("detection", 5), PROBLEM, 1, 1, url=f"{model.url}/v1", model="policy")
    finally:
        _pool("detection", 5).close()


def test_advantages_compare_within_a_group() -> None:
    assert advantages([1.0, 1.0]) == [0.0, 0.0]
    better, worse = advantages([1.0, 0.0])
    assert better == -worse == pytest.approx(1.0, abs=1e-3)


def test_problems_come_from_suites_ids_and_patterns() -> None:
    assert len(select_problems("lite@1")) == 21
    assert select_problems([PROBLEM, "scale_pod_zero_social*"])[0] == PROBLEM
    with pytest.raises(SreArenaError, match="no problem"):
        select_problems("nothing-like-this*")


def test_rewards_of_result_documents() -> None:
    result = {"outcome": "fail", "asked": ["detection", "localization"], "scores": {"detection": 1.0}}
    assert (grade_from(result).reward, grade_from(result, "dense").reward) == (0.0, 0.5)
    assert "result" not in grade_from(result).summary()
    with pytest.raises(ArenaError, match="choose from sparse, dense"):
        grade_from(result, "wrong")  # type: ignore[arg-type]


def test_an_export_without_runs_has_empty_tables(tmp_path: Path) -> None:
    assert export(tmp_path / "out", ["noop"], []) == {
        "problems": len(select_problems("noop")),
        "results": 0,
        "trajectories": 0,
    }
    (tmp_path / "file").write_text("")
    with pytest.raises(ArenaError, match="is a file"):
        export(tmp_path / "file", ["lite"], [])
