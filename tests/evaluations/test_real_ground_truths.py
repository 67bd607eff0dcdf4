"""ITBench's own ground truths, if they are available."""

from __future__ import annotations

from pathlib import Path

import pytest

from itbench_evaluations import Options, Policy, TruthView, grade_diagnosis, parse_ground_truth, reference_answer
from itbench_evaluations.lint import lint_path
from srearena.ground_truth.files import load_document

from .samples import REAL, answer, itbench_eval, needs_real_files, write_trial

pytestmark = needs_real_files
FILES = sorted(REAL.glob("*/groundtruth*.yaml"))


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_each_key_gives_full_marks_to_its_own_answer_and_none_to_an_empty_one(file: Path, policy: Policy) -> None:
    truth = parse_ground_truth(load_document(file), default_id=file.parent.name, path=str(file))
    view = TruthView.of(truth, policy)
    own = grade_diagnosis(truth, reference_answer(view), Options(policy=policy))
    roots = len(view.matcher.root_components)
    short = {name for name, value in own.scores.items() if value != 1.0}
    assert short <= {name for name in own.scores if "k@" in name and int(name.split("@")[1][0]) < roots}
    assert own.excluded == {}
    assert set(grade_diagnosis(truth, answer(), Options(policy=policy)).scores.values()) == {0.0}


def test_all_keys_pass_the_lint_without_errors() -> None:
    findings, count = lint_path(REAL)
    assert count == len(list(REAL.glob("scenario_*")))
    assert [finding for finding in findings if finding.level == "error"] == []
    codes = {(finding.incident_id, finding.code) for finding in findings}
    # Defects that are known to be in these files are found by themselves.
    assert ("1", "victim-alias") in codes and ("1", "no-condition") in codes and ("20", "misses-bare-name") in codes


def test_a_plain_correct_answer_to_a_real_incident_is_graded_so(tmp_path: Path) -> None:
    write_trial(
        tmp_path / "out", "Scenario-7", "1", answer("otel-demo/ConfigMap/flagd-config", why="paymentFailure flag set")
    )
    write_trial(
        tmp_path / "out", "Scenario-20", "1", answer("otel-demo/Deployment/product-catalog", why="invalid image")
    )
    done = itbench_eval("-g", REAL, "-o", tmp_path / "out", "--judge", "none", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "root_cause_entity_f1                            100.0 %" in done.stdout
