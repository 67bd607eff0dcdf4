"""Episodes as Gymnasium environments, with the real package."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from srearena.conductor.worlds import fork_is_safe, prepare
from tests.docs.test_documents import BLOCK, ROOT

pytestmark = [
    pytest.mark.skipif(find_spec("gymnasium") is None, reason="gymnasium is not installed"),
    pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only"),
]
PROBLEM = "scale_pod_zero_social_net"


def make(**options: Any) -> Any:
    import gymnasium

    from srearena.gym import ENVIRONMENT

    return gymnasium.make(ENVIRONMENT, problem=PROBLEM, stages=("detection",), **options)


# The checker resets with several seeds, each a world that is prepared: half a minute of one core.
@pytest.mark.timeout(900)
def test_gymnasium_accepts_the_environment() -> None:
    from gymnasium.utils.env_checker import check_env

    environment = make()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice for environments of numbers
            check_env(environment.unwrapped, skip_render_check=True)
    finally:
        environment.close()


def test_structured_actions_limits_and_repeated_episodes() -> None:
    from srearena.gym.environment import ACTION_NAMES

    environment = make(actions="structured", max_steps=2)
    try:
        first, info = environment.reset(seed=5)
        assert info["seed"] == 5
        wait = {"name": ACTION_NAMES.index("wait"), "arguments": "30"}
        assert environment.step(wait)[0] == "30 seconds have passed"
        _, reward, terminated, truncated, info = environment.step(wait)
        assert (reward, terminated, truncated, info["steps"]) == (0.0, False, True, 2)
        assert environment.reset()[0] == first
        submit = {"name": ACTION_NAMES.index("submit"), "arguments": '"Yes"'}
        assert environment.step(submit)[1:4] == (1.0, True, False)
    finally:
        environment.close()


def test_a_vector_environment_forks_one_world(monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium

    from srearena.frameworks import incidents
    from srearena.gym import ENVIRONMENT

    prepared: list[str] = []

    def counted(problem: str, spec: Any) -> Any:
        prepared.append(problem)
        return prepare(problem, spec)

    monkeypatch.setattr(incidents, "prepare", counted)
    together = gymnasium.make_vec(
        ENVIRONMENT, num_envs=2, vectorization_mode="sync", problem=PROBLEM, stages=("detection",), reward="dense"
    )
    try:
        left, right = together.reset(seed=[1, 1])[0]
        assert left == right
        _, rewards, terminated, truncated, _ = together.step(('submit("Yes")', 'submit("No")'))
        assert (list(rewards), list(terminated), list(truncated)) == ([1.0, 0.0], [True, True], [False, False])
        assert prepared == [PROBLEM]
    finally:
        together.close()


def test_the_example_of_the_documentation_works() -> None:
    page = Path(ROOT, "docs", "gymnasium.md").read_text()
    (code,) = [text for _, kind, text in BLOCK.findall(page) if kind == "python"]
    assert len(code.splitlines()) < 40
    exec(compile(code, "docs/gymnasium.md", "exec"), {})


def test_spaces_follow_the_kind_of_actions() -> None:
    from gymnasium import spaces

    from srearena.gym.environment import ACTION_NAMES, IncidentEnvironment

    structured = IncidentEnvironment(PROBLEM, actions="structured").action_space
    assert isinstance(structured, spaces.Dict)
    assert structured["name"] == spaces.Discrete(len(ACTION_NAMES))
    text = IncidentEnvironment(PROBLEM)
    assert 'kubectl("get pods")' in text.action_space
    with pytest.raises(Exception, match="call reset before the first step"):
        text.step('kubectl("get pods")')
