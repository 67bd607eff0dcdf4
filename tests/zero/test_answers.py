"""Validation of answers, complaints, and answers of earlier runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from itbench_evaluations import AgentOutput
from zero import answers

GOOD = {
    "entities": [{"name": "shop/Deployment/payment", "contributing_factor": True}],
    "propagations": [],
    "alerts_explained": [],
}


def put(directory: Path, data: bytes | str) -> Path:
    path = directory / "agent_output.json"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_a_valid_diagnosis_has_no_complaints(tmp_path: Path) -> None:
    assert answers.examine(put(tmp_path, json.dumps(GOOD)), "diagnosis").good


@pytest.mark.parametrize(
    ("data", "complaint", "readable"),
    [
        (b"", "is empty", False),
        (b'{"entities": [', "is not JSON", True),
        (b"\xff\xfe\x00", "is not UTF-8", False),
        (b"[]", "Input should be", False),
        (json.dumps({**GOOD, "entities": [{"name": "a"}]}), "entities[0].contributing_factor: Field required", True),
        (json.dumps({**GOOD, "entities": [{"name": "a", "contributing_factor": "yes"}]}), "valid boolean", True),
        (json.dumps({"entities": []}), "propagations: Field required", True),
        ("```json\n" + json.dumps(GOOD) + "\n```", "is not JSON", True),
    ],
)
def test_complaints_are_exact(tmp_path: Path, data: bytes | str, complaint: str, readable: bool) -> None:
    path = put(tmp_path, data)
    answer = answers.examine(path, "diagnosis")
    assert not answer.good
    assert complaint in "; ".join(answer.complaints)
    assert answer.readable is readable, "the judge, which is lenient, may still parse it"
    message = answers.retry_message(answer, path, "diagnosis")
    assert complaint in message and str(path) in message and "alerts_explained" in message


def test_a_missing_file_a_link_and_a_directory_are_no_answers(tmp_path: Path) -> None:
    path = tmp_path / "agent_output.json"
    assert "does not exist" in answers.examine(path, "diagnosis").complaints[0]
    put(tmp_path, json.dumps(GOOD)).rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert "not a regular file" in answers.examine(path, "diagnosis").complaints[0]
    path.unlink()
    path.mkdir()
    assert "not a regular file" in answers.examine(path, "diagnosis").complaints[0]


def test_other_forms_require_less(tmp_path: Path) -> None:
    path = put(tmp_path, '{"resource": []}')
    assert answers.examine(path, "json").good
    assert not answers.examine(path, "diagnosis").good
    assert answers.examine(tmp_path / "missing", "none").good


def test_an_earlier_answer_is_kept_but_never_counts(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    for number in (1, 2):
        moved = answers.archive_stale(put(tmp_path, f"[{number}]"), shelf)
        assert moved is not None and moved.read_text() == f"[{number}]"
    assert len(list(shelf.iterdir())) == 2
    assert answers.archive_stale(tmp_path / "agent_output.json", shelf) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=st.builds(AgentOutput.empty) | st.from_type(AgentOutput))
def test_whatever_the_contract_allows_is_accepted(tmp_path: Path, document: AgentOutput) -> None:
    assert answers.examine(put(tmp_path, document.model_dump_json()), "diagnosis").complaints == ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_no_bytes_make_it_fail(tmp_path: Path, data: bytes) -> None:
    answer = answers.examine(put(tmp_path, data), "diagnosis")
    assert not answer.good and answer.complaints
