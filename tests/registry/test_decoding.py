"""Objects as clients send them, and what becomes of them."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, Invalid
from srearena.cluster.embedded.registry.field_validation import (
    DecodeError,
    Directive,
    decode,
    decode_object,
    decode_patched,
)
from srearena.cluster.embedded.registry.json_reader import JsonSyntaxError, read_json, repeated_fields
from srearena.cluster.embedded.registry.wire_scalars import base64_text, micro_time_text, time_text
from tests.registry.cases import copy, deployment, json_objects, json_values, schema_of

DEPLOYMENT = schema_of("Deployment")
POD = schema_of("Pod")


def _accepted(obj: Any, directive: Directive, repeated: list[str] | None = None) -> tuple[Any, list[str]]:
    return decode_object(obj, DEPLOYMENT, kind="Deployment", version="v1", directive=directive, repeated=repeated or ())


def test_unknown_fields_are_dropped_and_told_about_as_asked() -> None:
    obj = deployment(foo=1)
    obj["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    first, second = 'unknown field "spec.foo"', 'unknown field "spec.template.spec.containers[0].imagee"'
    kept, warnings = _accepted(obj, Directive.WARN)
    assert sorted(warnings) == sorted([first, second])
    assert "foo" not in kept["spec"]
    assert _accepted(obj, Directive.IGNORE) == (kept, [])
    with pytest.raises(BadRequest) as refusal:
        _accepted(obj, Directive.STRICT)
    assert refusal.value.message.startswith(
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
    )
    assert first in refusal.value.message and second in refusal.value.message


def test_fields_that_come_twice_are_told_about() -> None:
    text = b'{"spec": {"replicas": 1, "replicas": 2, "list": [{"a": 1, "a": 2}]}}'
    paths = repeated_fields(text)
    assert paths == ["spec.replicas", "spec.list[0].a"]
    _, warnings = _accepted(deployment(), Directive.WARN, paths[:1])
    assert warnings == ['duplicate field "spec.replicas"']
    assert repeated_fields(b'{"a": {"b": 1}, "b": 1}') == []
    assert repeated_fields(b"[" * 100_000) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"replicas": "three"},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"template": {"metadata": {"labels": {"a": 1}}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.spec.template.metadata.labels "
            "of type string",
        ),
        (
            {"template": {"spec": {"containers": {}}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers "
            "of type []v1.Container",
        ),
        (
            {"template": {"spec": {"restartPolicy": 1}}},
            "json: cannot unmarshal number into Go struct field PodSpec.spec.template.spec.restartPolicy "
            "of type v1.RestartPolicy",
        ),
        (
            {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            {"template": {"metadata": {"creationTimestamp": "yesterday"}}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
    ],
)
def test_what_does_not_fit_is_said_in_gos_words(spec: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        _accepted(deployment(**spec), Directive.IGNORE)
    assert refusal.value.message == f'Deployment in version "v1" cannot be handled as a Deployment: {message}'


def test_objects_come_out_as_the_server_writes_them() -> None:
    pod = {
        "metadata": {"name": "x", "labels": {}, "creationTimestamp": None},
        "spec": {
            "hostNetwork": False,
            "containers": [
                {
                    "name": "c",
                    "stdin": False,
                    "env": [],
                    "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}},
                    "livenessProbe": {"initialDelaySeconds": 0, "exec": {}},
                }
            ],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {"startTime": "2024-05-01T02:03:04.5+02:00"},
    }
    assert decode(pod, POD).obj == {
        "metadata": {"name": "x"},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                    "livenessProbe": {"exec": {}},
                }
            ],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {"startTime": "2024-05-01T00:03:04Z"},
    }


@given(json_objects)
@settings(deadline=None)
def test_any_object_decodes_or_is_a_bad_request_and_stays_as_it_was(junk: Any) -> None:
    for schema, obj in ((POD, junk), (POD, {"spec": junk}), (DEPLOYMENT, {"spec": {"template": {"spec": junk}}})):
        before = copy(obj)
        try:
            once = decode(obj, schema).obj
        except DecodeError:
            continue
        assert obj == before
        again = decode(once, schema)
        assert again.obj == once
        assert again.strict == []


def test_depth_is_bounded() -> None:
    deep: Any = {}
    for _ in range(1000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="exceeded max depth"):
        decode({"spec": deep}, POD)


def test_a_patched_object_is_judged_with_the_patch() -> None:
    with pytest.raises(Invalid) as refusal:
        decode_patched({"spec": {"replicas": "x"}}, DEPLOYMENT, patch={"spec": {"replicas": "x"}}, strategic=True)
    assert refusal.value.message == (
        ' "" is invalid: patch: Invalid value: "map[spec:map[replicas:x]]": unrecognized type: int32'
    )
    with pytest.raises(Invalid) as refusal:
        decode_patched({"spec": {"replicas": "x"}}, DEPLOYMENT, patch={}, strategic=False)
    assert '"{\\"spec\\":{\\"replicas\\":\\"x\\"}}": json: cannot unmarshal string' in refusal.value.message
    _, warnings = decode_patched({"spec": {"x": 1}}, DEPLOYMENT, patch={}, strict=["json patch unknown field"])
    assert warnings == ["json patch unknown field", 'unknown field "spec.x"']
    with pytest.raises(Invalid, match=r'strict decoding error: unknown field "spec\.x"'):
        decode_patched({"spec": {"x": 1}}, DEPLOYMENT, patch={}, directive=Directive.STRICT)


@given(json_values)
def test_whatever_is_json_is_read_as_json(value: Any) -> None:
    assert read_json(orjson.dumps(value)) == value


@given(st.binary(max_size=20) | st.text('{}[]",:\\u0019e-+.truefalsn ', max_size=12).map(str.encode))
def test_any_bytes_are_json_or_a_syntax_error(data: bytes) -> None:
    try:
        value = read_json(data)
    except JsonSyntaxError as problem:
        assert str(problem)
    else:
        assert read_json(orjson.dumps(value)) == value


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert read_json(b'"\xff"') == "�"
    assert read_json(b'"\\ud800x"') == "�x"
    with pytest.raises(JsonSyntaxError, match="exceeded max depth"):
        read_json(b"[" * 20_000)


def test_times_are_canonical() -> None:
    assert time_text("2024-02-29T23:59:59Z") == "2024-02-29T23:59:59Z"
    assert micro_time_text("2024-01-01T00:00:00.123456+01:00") == "2023-12-31T23:00:00.123456Z"
    for wrong in ("2023-02-29T00:00:00Z", "2024-01-01", "2024-13-01T00:00:00Z", "2024-01-01T00:00:00Zx"):
        with pytest.raises(ValueError, match="parsing time"):
            time_text(wrong)


@given(st.binary(max_size=20))
def test_base64_survives(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert base64_text(text) == text
    assert base64_text("\n".join(text)) == text


@given(json_objects, json_objects)
@settings(deadline=None, max_examples=50)
def test_patched_objects_never_break_the_server(obj: Any, patch: Any) -> None:
    for strategic in (True, False):
        try:
            decode_patched({"spec": obj}, POD, patch=patch, strategic=strategic)
        except ApiError as refusal:
            assert refusal.code == 422
