"""Zero gives a coding CLI a workspace and gets a diagnosis back.

run     one run from a `Request`: workspace, sandbox, attempts, validated output, trajectory; what `python -m zero` does
"""

from zero.errors import ZeroError
from zero.outcomes import Outcome, RunResult
from zero.request import Request
from zero.runner import run

__all__ = ["Outcome", "Request", "RunResult", "ZeroError", "run"]
