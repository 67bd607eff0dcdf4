"""Custom resources: pruning, defaults, and the messages of validation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest
from srearena.cluster.embedded.registry.field_validation import Directive
from srearena.cluster.embedded.registry.string_formats import matches_format
from srearena.cluster.embedded.registry.structural import apply_defaults, decode_custom
from srearena.cluster.embedded.registry.structural_validation import validation_errors
from tests.registry.cases import copy, json_objects

SPEC: Obj = {
    "type": "object",
    "required": ["replicas"],
    "properties": {
        "replicas": {"type": "integer", "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": True}}},
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
RAW: Obj = {"type": "object", "properties": {"spec": SPEC}}
SCHEMA = schemas.for_custom(RAW)


def widget(**spec: Any) -> Obj:
    return {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 1, **spec}}


def read(obj: Obj, directive: Directive = Directive.WARN) -> tuple[Obj, list[str]]:
    return decode_custom(obj, SCHEMA, kind="Widget", version="v1", directive=directive)


def complaints(**spec: Any) -> list[str]:
    obj, _ = read(widget(**spec))
    apply_defaults(obj, RAW)
    return sorted(map(str, validation_errors(obj, SCHEMA)))


def test_what_the_schema_does_not_know_is_pruned() -> None:
    obj = {**widget(color="red", free={"any": {"thing": 1}}), "extra": 1}
    obj["metadata"]["colour"] = "blue"
    pruned, warnings = read(obj)
    assert pruned == widget(free={"any": {"thing": 1}})
    assert warnings == [
        'unknown field "metadata.colour"',
        'unknown field "extra"',
        'unknown field "spec.color"',
    ]
    with pytest.raises(BadRequest) as refusal:
        read(widget(color="red"), Directive.STRICT)
    assert refusal.value.message == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.color"'
    )


def test_defaults_fill_what_is_missing_all_the_way_down() -> None:
    obj, _ = read(widget(mode=None, note=None))
    apply_defaults(obj, RAW)
    assert obj["spec"] == {"replicas": 1, "mode": "fast", "note": None, "nested": {"on": True}}
    before = copy(RAW)
    obj["spec"]["nested"]["on"] = False
    assert before == RAW


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"replicas": "3"},
            ['spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"'],
        ),
        (
            {"replicas": 0},
            ["spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1"],
        ),
        ({"replicas": None}, ["spec.replicas: Required value"]),
        ({"mode": "x"}, ['spec.mode: Unsupported value: "x": supported values: "fast", "slow"']),
        ({"name": "AB"}, ["spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'"]),
        ({"name": "a"}, ['spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long']),
        ({"name": "abcdef"}, ["spec.name: Too long: may not be more than 5 bytes"]),
        ({"tags": ["a", "b", "a"]}, ['spec.tags[2]: Duplicate value: "a"']),
        ({"tags": ["a", "b", "c", "d"]}, ["spec.tags: Too many: 4: must have at most 3 items"]),
        (
            {"port": True},
            ['spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"'],
        ),
        (
            {"limits": {"cpu": "1"}},
            ['spec.limits.cpu: Invalid value: "string": spec.limits.cpu in body must be of type integer: "string"'],
        ),
        ({"port": "http", "tags": [], "note": "x"}, []),
    ],
)
def test_values_are_held_to_the_schema(spec: Any, expected: list[str]) -> None:
    assert complaints(**spec) == expected


def test_one_of_several_alternatives_must_hold() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    choice = {"type": "object", "properties": properties, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    schema = schemas.for_custom({"type": "object", "properties": {"spec": choice}})
    assert not validation_errors({"spec": {"a": "x"}}, schema)
    both = list(map(str, validation_errors({"spec": {"a": "x", "b": "y"}}, schema)))
    assert both == [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]
    none = list(map(str, validation_errors({"spec": {}}, schema)))
    assert none[0].endswith("must validate one and only one schema (oneOf). Found none valid")
    assert "spec.a: Required value" in none


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2024-01-01T00:00:00Z", "2024-01-01"),
        ("date", "2024-01-01", "01.01.2024"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("byte", "YQ==", "YQ="),
        ("duration", "1h30m", "soon"),
        ("hostname", "example.com", "-x"),
        ("email", "a@b.c", "a"),
        ("uri", "https://x.io/a", "x"),
        ("mac", "00:00:5e:00:53:01", "00:00"),
        ("k8s-short-name", "my-name", "My.Name"),
        ("k8s-long-name", "my.name", "My"),
    ],
)
def test_formats_tell_good_from_bad(name: str, good: str, bad: str) -> None:
    assert matches_format(name, good)
    assert not matches_format(name, bad)


@given(json_objects)
@settings(deadline=None)
def test_anything_is_read_and_judged_or_properly_refused(junk: Any) -> None:
    for obj in ({**widget(), "spec": junk}, {**widget(), **junk}):
        before = copy(obj)
        try:
            found, _ = read(obj)
        except ApiError as refusal:
            assert refusal.code == 400
            continue
        apply_defaults(found, RAW)
        validation_errors(found, SCHEMA)
        again, warnings = read(found)
        assert again == found
        assert warnings == []
        assert obj == before
