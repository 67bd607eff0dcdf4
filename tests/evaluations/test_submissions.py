"""Agents' outputs are read leniently, every repair is recorded, and unreadable ones have a reason."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench_evaluations import AgentOutput, grade_diagnosis, read_bytes, read_text, read_value

from .samples import RIGHT

TEXT = json.dumps(RIGHT)
NAMES = [entity["name"] for entity in RIGHT["entities"]]


def names(text: str) -> list[str]:
    return [entity.name for entity in read_text(text).output.entities]


def test_a_good_answer_needs_no_repair() -> None:
    submission = read_text(TEXT)
    assert submission.readable and submission.repairs == ()
    assert submission.output == AgentOutput.model_validate(RIGHT)


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        (f"```json\n{TEXT}\n```", "code fence removed"),
        (f"```\n{TEXT}", "code fence removed"),
        (f"Here is my diagnosis:\n\n{TEXT}", "prose before the JSON skipped"),
        (f"{TEXT}\nI hope this helps!", "text after the JSON ignored"),
        (json.dumps(TEXT), "JSON within a string unwrapped"),
        (json.dumps(f"```json\n{TEXT}\n```"), "JSON within a string unwrapped"),
        (TEXT[:-1] + ",}", "trailing commas removed"),
        (TEXT.replace("}, {", "} {"), "missing commas added"),
        (TEXT.replace("true", "True").replace("false", "False"), "Python or JavaScript literals read as JSON"),
        (repr(RIGHT), "single quotes read as double"),
        (TEXT.replace("[", "[ // mine\n", 1), "comments removed"),
        (TEXT.replace('"entities"', "entities"), "unquoted keys quoted"),
        (TEXT.replace("in the flags", "in\nthe flags"), "raw line breaks within strings kept"),
        (json.dumps({"output": RIGHT}), "read within `output`"),
        (json.dumps({"response": TEXT}), "read within `response`"),
        (json.dumps([RIGHT]), "a list around the diagnosis removed"),
        (json.dumps(RIGHT["entities"]), "a bare list read as entities"),
        ("\ufeff" + TEXT, "byte order mark removed"),
    ],
)
def test_damage_of_form_is_repaired_and_reported(text: str, repair: str) -> None:
    submission = read_text(text)
    assert [entity.name for entity in submission.output.entities] == NAMES
    assert repair in submission.repairs


def test_a_cut_off_answer_keeps_what_was_said() -> None:
    submission = read_text(TEXT[: TEXT.index("propagations") + 40])
    assert [entity.name for entity in submission.output.entities] == NAMES
    assert "truncated: the text ended early" in submission.repairs


def test_escapes_survive_the_lenient_reader() -> None:
    text = r'{"entities": [{"name": "a\"b\u0041\n\\", "contributing_factor": true, "reasoning": "\q \ud800"},]}'
    entity = read_text(text).output.entities[0]
    assert entity.name == 'a"bA\n\\' and entity.reasoning == "\\q \ufffd"


def test_encodings_are_recognised() -> None:
    assert names_of(TEXT.encode("utf-16")) == NAMES
    broken = read_bytes(TEXT.encode() + b" \xff")
    assert [entity.name for entity in broken.output.entities] == NAMES
    assert "invalid UTF-8 replaced" in broken.repairs


def names_of(data: bytes) -> list[str]:
    return [entity.name for entity in read_bytes(data).output.entities]


def test_the_older_contract_is_understood() -> None:
    submission = read_value({"entities": [{"id": "Pod/cart-1 uid 77-88", "contributing_factor": True}]})
    assert submission.output.entities[0].name == "Pod/cart-1 uid 77-88"
    assert "entity named by `id` instead of `name`" in submission.repairs


def test_fields_of_their_own_are_joined() -> None:
    entity = {"kind": "Pod", "namespace": "shop", "name": "cart-1", "is_root_cause": "yes", "explanation": "it broke"}
    submission = read_value({"entities": [entity]})
    read = submission.output.entities[0]
    assert (read.name, read.contributing_factor, read.reasoning) == ("shop/Pod/cart-1", True, "it broke")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"incident_summary": {"root_cause": "shop/ConfigMap/flags has cartFailure on"}}, ["shop/ConfigMap/flags"]),
        (
            {"incident_summary": {"title": "x"}, "root_cause": {"entity": "shop/Pod/a", "reasoning": "r"}},
            ["shop/Pod/a"],
        ),
        ({"incident_summary": {"root_causes": [{"name": "flags", "kind": "ConfigMap"}]}}, ["ConfigMap/flags"]),
        ({"root_cause_entity": "Deployment/cart"}, ["Deployment/cart"]),
        ({"summary": {"root_cause": "cart"}}, ["cart"]),
    ],
)
def test_summary_shapes_name_their_causes(shape: dict[str, Any], expected: list[str]) -> None:
    output = read_value(shape).output
    assert [entity.name for entity in output.entities if entity.contributing_factor] == expected


def test_other_names_for_edges_are_read() -> None:
    submission = read_value({"entities": [], "propagation_chain": [{"from": "a", "to": "b", "reasoning": "c"}]})
    edge = submission.output.propagations[0]
    assert (edge.source, edge.target, edge.condition) == ("a", "b", "c")
    chain = read_value({"entities": [], "propagations": ["a", "b", "c"]}).output.propagations
    assert [(edge.source, edge.target) for edge in chain] == [("a", "b"), ("b", "c")]


def test_without_any_flag_all_entities_are_taken_as_blamed_and_with_some_the_others_are_not() -> None:
    everyone = read_value({"entities": ["shop/Pod/a", "shop/Pod/b"]})
    assert [entity.contributing_factor for entity in everyone.output.entities] == [True, True]
    some = read_value({"entities": [{"name": "a", "contributing_factor": True}, {"name": "b"}]})
    assert [entity.contributing_factor for entity in some.output.entities] == [True, False]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("   \n", "empty"),
        ("I could not find anything.", "no JSON"),
        ("{}", "none of the fields"),
        ("null", "not an object"),
        ("42", "not an object"),
        ("[]", "holds no entities"),
        ('{"incident_summary": {"title": "nothing"}}', "none of the fields"),
        ('{"root_cause": "Something, somewhere, went badly."}', "no entity is named"),
        ("[" * 5000, "nested deeper"),
        ('{"a":' * 3000, "nested deeper"),
    ],
)
def test_what_holds_no_diagnosis_says_why(text: str, reason: str) -> None:
    submission = read_text(text)
    assert not submission.readable
    assert submission.problem and reason in submission.problem
    assert submission.output == AgentOutput.empty()


def test_an_empty_diagnosis_is_a_diagnosis() -> None:
    assert read_value({"entities": [], "propagations": [], "alerts_explained": []}).readable


def test_a_flood_is_cut_with_a_note() -> None:
    submission = read_value({"entities": [{"name": f"a{i}", "contributing_factor": True} for i in range(5000)]})
    assert len(submission.output.entities) == 2000
    assert any("only the first 2000 of 5000" in repair for repair in submission.repairs)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "document",
    [
        {"entities": [{"name": " " * 500_000 + "x", "contributing_factor": True}]},
        {"root_cause": "a-" * 500_000},
        {
            "entities": [
                {"name": f"shop/Pod/p{i}", "contributing_factor": True, "reasoning": "y"} for i in range(2000)
            ],
            "propagations": [{"source": f"shop/Pod/p{i}", "target": f"shop/Pod/p{i * 7 % 2000}"} for i in range(2000)],
        },
        {"entities": [{"name": "/" * 500_000, "contributing_factor": True}]},
        {"entities": [{"name": "x", "contributing_factor": True, "reasoning": "score " * 100_000}]},
    ],
    ids=["spaces", "dashes", "many", "slashes", "words"],
)
def test_hostile_sizes_are_graded_quickly(document: dict[str, Any]) -> None:
    started = time.perf_counter()
    grade = grade_diagnosis(
        {"id": "1", "groups": [{"id": "r", "kind": "Pod", "name": "r", "root_cause": True}]}, document
    )
    assert grade.scores["root_cause_entity_f1"] == 0.0
    assert time.perf_counter() - started < 5


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["entities", "name", "id", "propagations", "source", "to", "root_cause", "output", "x"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_no_value_breaks_the_reader(value: Any) -> None:
    submission = read_value(value)
    assert AgentOutput.model_validate_json(submission.output.model_dump_json()) == submission.output


@given(st.text(max_size=60) | st.text(alphabet="{}[]\",:'\\ntrue", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert read_text(text).output is not None


@given(st.integers(min_value=1, max_value=len(TEXT)))
def test_no_cut_breaks_the_reader_or_invents_a_cause(length: int) -> None:
    submission = read_text(TEXT[:length])
    blamed = [entity.name for entity in submission.output.entities if entity.contributing_factor]
    assert all("shop/ConfigMap/flags".startswith(name) for name in blamed)
