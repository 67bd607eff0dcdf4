"""Rules of custom resources in CEL: what they refuse, transitions, ratcheting, and rules that are wrong themselves."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.custom_strategy import custom_strategy
from srearena.cluster.embedded.registry.strategies.structural_schemas import check_schema

SPEC: Obj = {
    "type": "object",
    "properties": {
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "name": {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        "limit": {"x-kubernetes-int-or-string": True},
        "until": {"type": "string", "format": "date-time"},
        "namespace": {"type": "string"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "size": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "size must be positive"}],
            },
        },
        "labels": {
            "type": "object",
            "additionalProperties": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]},
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.max) || self.min <= self.max", "messageExpression": "'min is ' + string(self.min)"},
        {"rule": "!has(self.until) || self.until > timestamp('2020-01-01T00:00:00Z')"},
        {"rule": "!has(self.__namespace__) || self.__namespace__ != 'kube-system'", "reason": "FieldValueForbidden"},
        {"rule": "!has(self.tags) || self.tags != ['b', 'a']", "fieldPath": ".tags"},
        {"rule": "oldSelf.hasValue() || !has(self.limit)", "optionalOldSelf": True, "message": "no limit at first"},
    ],
}


def strategy(spec: Obj = SPEC, **root: Any) -> Any:
    schema = {"type": "object", "properties": {"spec": spec}, **root}
    names = {"group": "example.com", "names": {"kind": "Widget"}}
    definition = {"spec": {**names, "versions": [{"name": "v1", "storage": True}]}}
    return custom_strategy(definition, {("example.com", "v1", "Widget"): schemas.for_custom(schema)})


def widget(**spec: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"min": 1, **spec}}


def refused(new: Obj, old: Obj | None = None, by: Any = None) -> list[str]:
    by = by or strategy()
    found = by.validate_create(new) if old is None else by.validate_update(new, old)
    return [str(error) for error in found]


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"max": 2}, []),
        ({"max": 0}, ['spec: Invalid value: "object": min is 1']),
        (
            {"until": "2019-01-01T00:00:00Z"},
            [
                'spec: Invalid value: "object": failed rule: '
                "!has(self.until) || self.until > timestamp('2020-01-01T00:00:00Z')"
            ],
        ),
        (
            {"namespace": "kube-system"},
            ["spec: Forbidden: failed rule: !has(self.__namespace__) || self.__namespace__ != 'kube-system'"],
        ),
        (
            {"tags": ["a", "b"]},
            ["spec.tags: Invalid value: \"object\": failed rule: !has(self.tags) || self.tags != ['b', 'a']"],
        ),
        (
            {"parts": [{"id": "a", "size": 1}, {"id": "b", "size": 0}]},
            ['spec.parts[1]: Invalid value: "object": size must be positive'],
        ),
        (
            {"parts": [{"id": "a"}]},
            ['spec.parts[0]: Invalid value: "object": no such key: size evaluating rule: size must be positive'],
        ),
        ({"labels": {"x": ""}}, ["spec.labels[x]: Invalid value: \"string\": failed rule: self != ''"]),
        ({"limit": 5}, ['spec: Invalid value: "object": no limit at first']),
        (
            {"name": "too long", "max": 0},
            [
                "spec.name: Too long: may not be more than 5 bytes",
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation",
            ],
        ),
    ],
)
def test_rules_of_new_objects(spec: Obj, problems: list[str]) -> None:
    assert refused(widget(**spec)) == problems


def test_transition_rules_compare_with_what_was_there() -> None:
    assert refused(widget(name="a"), widget()) == []
    assert refused(widget(name="b"), widget(name="a")) == [
        'spec.name: Invalid value: "string": failed rule: self == oldSelf'
    ]
    assert refused(widget(limit=5), widget()) == []


def test_what_was_wrong_before_may_stay() -> None:
    wrong = [{"id": "a", "size": 0}]
    assert refused(widget(parts=wrong, min=2), widget(parts=wrong)) == []
    assert refused(widget(parts=[{"id": "b", "size": 1}, *wrong]), widget(parts=wrong)) == []
    assert refused(widget(parts=[{"id": "a", "size": -1}]), widget(parts=wrong)) == [
        'spec.parts[0]: Invalid value: "object": size must be positive'
    ]


def test_values_outside_the_schema_may_stay_as_they_were() -> None:
    assert refused(widget(name="too long", min=2), widget(name="too long")) == []
    assert refused(widget(name="much too long"), widget(name="too long"))[0].startswith("spec.name: Too long")


def test_rules_of_the_whole_object_see_its_name() -> None:
    named = strategy(SPEC, **{"x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('w')"}]})
    assert refused(widget(), by=named) == []
    other = widget()
    other["metadata"]["name"] = "x"
    assert refused(other, by=named) == [
        "<nil>: Invalid value: \"object\": failed rule: self.metadata.name.startsWith('w')"
    ]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"rule": "self.nothing == 1"}, "rule: Invalid value: {"),
        ({"rule": "self.nothing == 1"}, "compilation failed: ERROR: <input>:1:5: undefined field 'nothing'"),
        ({"rule": "self.min"}, "cel expression must evaluate to a bool"),
        ({"rule": "self.min > 'a'"}, "found no matching overload for '_>_' applied to '(int, string)'"),
        ({"rule": "true", "messageExpression": "self.min"}, "messageExpression must evaluate to a string"),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used in rule"),
    ],
)
def test_rules_that_are_wrong_themselves(rule: Obj, problem: str) -> None:
    problems: list[Any] = []
    spec = {**SPEC, "x-kubernetes-validations": [rule]}
    check_schema(problems, "schema", {"type": "object", "properties": {"spec": spec}})
    (found,) = problems
    assert str(found).startswith("schema.properties[spec].x-kubernetes-validations[0].")
    assert problem in str(found)


def test_items_of_a_plain_list_have_no_earlier_value() -> None:
    items = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    problems: list[Any] = []
    schema = {"type": "object", "properties": {"spec": {"type": "array", "items": items}}}
    check_schema(problems, "schema", schema)
    (found,) = problems
    assert "oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[spec]" in str(
        found
    )
