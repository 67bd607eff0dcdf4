"""Grade diagnoses of incidents: by rule where scores can be computed, by a model where meaning must be judged.

grade_diagnosis   one diagnosis against one ground truth, by rule
evaluate          a directory of trials against a set of ground truths: the function behind `itbench-eval`
compare           two agents on the same incidents
"""

import srearena  # noqa: F401 - first: it takes the working directory off the module path
from itbench_evaluations.agent import EvaluationRequest, evaluate
from itbench_evaluations.agent_output import AgentOutput
from itbench_evaluations.comparison import compare
from itbench_evaluations.errors import EvaluationError, InputError, JudgeError
from itbench_evaluations.grading import Grade, Options, TruthView, grade_diagnosis
from itbench_evaluations.matching import Matcher, Policy
from itbench_evaluations.reference import reference_answer
from itbench_evaluations.submission import Submission, read_bytes, read_text, read_value
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import load_truths
from srearena.ground_truth.parsing import parse_ground_truth

__all__ = [
    "AgentOutput",
    "EvaluationError",
    "EvaluationRequest",
    "Grade",
    "GroundTruth",
    "InputError",
    "JudgeError",
    "Matcher",
    "Options",
    "Policy",
    "Submission",
    "TruthView",
    "compare",
    "evaluate",
    "grade_diagnosis",
    "load_truths",
    "parse_ground_truth",
    "read_bytes",
    "read_text",
    "read_value",
    "reference_answer",
]
