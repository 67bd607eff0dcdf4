"""Suites as tasks of Inspect, with the real package and its mock model."""

from __future__ import annotations

from pathlib import Path

import pytest

from srearena.conductor.worlds import fork_is_safe
from tests.frameworks.environments import example_of, python_with, run_code

pytestmark = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")

# A failed episode: the model does not use the tools as it should, and stops.
FAILED = """
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from srearena.frameworks.inspect_tasks import incidents

def call(name, **arguments):
    output = ModelOutput.for_tool_call("mockllm/model", name, arguments)
    return output.model_copy(update={"usage": ModelUsage()})

silent = ModelOutput.from_content("mockllm/model", "All is well.").model_copy(update={"usage": ModelUsage()})
model = get_model("mockllm/model", custom_outputs=[call("wait", seconds=-1), silent, silent, silent, silent])
task = incidents("scale_pod_zero_social_net", stages=["detection"], seeds=1)
(log,) = eval(task, model=model, log_dir="logs", display="none")
(sample,) = log.samples
assert sample.scores["oracles"].value == {"passed": 0.0, "reward": 0.0}, sample.scores
assert [m.text for m in sample.messages if m.role == "tool"][0].startswith("Error: wait takes a number")
assert "scale_pod_zero" not in str([message.model_dump() for message in sample.messages])
"""


@pytest.mark.timeout(900)
def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    run_code(python_with("inspect", "inspect_ai"), example_of("inspect.md"), tmp_path)
    assert len(list(Path(tmp_path, "logs").glob("*.eval"))) == 1


@pytest.mark.timeout(900)
def test_a_model_that_stops_is_graded_and_never_sees_the_id(tmp_path: Path) -> None:
    run_code(python_with("inspect", "inspect_ai"), FAILED, tmp_path)
