"""docs/judge.md is correct: its code runs, its flags exist, its numbers are computed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from itbench_evaluations import grade_diagnosis, load_truths
from itbench_evaluations.criteria import CRITERIA

from .samples import MIXED, NEAR, SHOP, itbench_eval

TEXT = (Path(__file__).parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_the_examples_run(code: str) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/judge.md", "exec"), namespace)
    assert namespace.keys() - {"__builtins__"}, "it does something"


def test_every_flag_of_the_document_exists(tmp_path: Path) -> None:
    known = "".join(itbench_eval(*command, "--help", cwd=tmp_path).stdout for command in ((), ("lint",), ("compare",)))
    for flag in set(re.findall(r"--[a-z][a-z-]+", TEXT)):
        assert flag in known, flag


def test_every_metric_is_explained() -> None:
    for criterion in CRITERIA:
        assert criterion.key.split("@")[0] in TEXT, criterion.key


@pytest.mark.parametrize("metric", ["ntam_fault_localization", "ntam_propagation"])
def test_the_numbers_of_the_table_are_the_codes(metric: str) -> None:
    row = re.search(rf"\| `{metric}` \|[^|]*\| ([\d.]+) \| ([\d.]+) \|", TEXT)
    assert row
    truth = load_truths(SHOP).truths["1"]
    for shown, diagnosis in zip(row.groups(), (MIXED, NEAR), strict=True):
        assert f"{grade_diagnosis(truth, diagnosis).scores[metric]:.3f}" == shown
