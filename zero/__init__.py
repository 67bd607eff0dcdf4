"""Zero runs a coding CLI as the agent and returns a validated diagnosis.

`run` executes a `Request`: workspace, sandbox, attempts, validated output, trajectory. `python -m zero` is its command.
"""

import srearena  # noqa: F401 - first: it takes the working directory off the module path
from zero.errors import ZeroError
from zero.outcomes import Outcome, RunResult
from zero.request import Request
from zero.runner import run

__all__ = ["Outcome", "Request", "RunResult", "ZeroError", "run"]
