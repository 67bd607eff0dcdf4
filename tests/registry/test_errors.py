"""Refusals as clients read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.go_text import float_text, json_text, plain, quoted
from srearena.cluster.embedded.registry.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    FieldError,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    RequestEntityTooLarge,
    Timeout,
    TooManyRequests,
    Unauthorized,
)


def test_a_status_names_the_object_and_leaves_out_what_is_empty() -> None:
    assert NotFound("deployments.apps", "web").status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "web" not found',
        "reason": "NotFound",
        "details": {"name": "web", "group": "apps", "kind": "deployments"},
        "code": 404,
    }
    assert "details" not in BadRequest("no").status()
    assert NotFound("pods", "x").details == {"name": "x", "kind": "pods"}


@pytest.mark.parametrize(
    ("error", "code", "reason", "message"),
    [
        (Unauthorized(), 401, "Unauthorized", "Unauthorized"),
        (Forbidden("pods", "x", "no"), 403, "Forbidden", 'pods "x" is forbidden: no'),
        (Forbidden("pods", "", "no"), 403, "Forbidden", "pods is forbidden: no"),
        (Forbidden("", "", "no"), 403, "Forbidden", "forbidden: no"),
        (NotFound(), 404, "NotFound", "the server could not find the requested resource"),
        (AlreadyExists("pods", "x"), 409, "AlreadyExists", 'pods "x" already exists'),
        (
            Conflict("deployments.apps", "x"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on deployments.apps "x": the object has been modified; '
            "please apply your changes to the latest version and try again",
        ),
        (Expired.too_old(1, 5), 410, "Expired", "too old resource version: 1 (5)"),
        (RequestEntityTooLarge("limit is 3"), 413, "RequestEntityTooLarge", "Request entity too large: limit is 3"),
        (InternalError("boom"), 500, "InternalError", "Internal error occurred: boom"),
        (Timeout("slow"), 504, "Timeout", "Timeout: slow"),
    ],
)
def test_each_refusal_has_its_code_reason_and_words(error: ApiError, code: int, reason: str, message: str) -> None:
    assert (error.code, error.reason, error.message) == (code, reason, message)
    assert error.status()["code"] == code


def test_an_invalid_object_is_told_everything_that_is_wrong_with_it() -> None:
    negative = FieldError.invalid("spec.replicas", -1, "must be greater than or equal to 0")
    one = Invalid("Deployment.apps", "web", [negative])
    assert one.message == (
        'Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )
    assert one.causes == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: -1: must be greater than or equal to 0",
            "field": "spec.replicas",
        }
    ]
    several = Invalid("Pod", "x", [negative, FieldError.required("spec.containers"), negative])
    assert several.message == (
        'Pod "x" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, '
        "spec.containers: Required value]"
    )
    assert Invalid("Pod", "x").message == 'Pod "x" is invalid'


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FieldError.required("a", "say it"), "a: Required value: say it"),
        (FieldError.invalid("a", "x\ty", "no"), 'a: Invalid value: "x\\ty": no'),
        (FieldError.invalid("a", True, "no"), "a: Invalid value: true: no"),
        (FieldError.invalid("a", 1.5, "no"), "a: Invalid value: 1.5: no"),
        (FieldError.invalid("a", None, "no"), "a: Invalid value: null: no"),
        (FieldError.invalid("a", {"b": ["<"]}, "no"), 'a: Invalid value: {"b":["\\u003c"]}: no'),
        (FieldError.not_supported("a", "x", ["b", "c"]), 'a: Unsupported value: "x": supported values: "b", "c"'),
        (FieldError.duplicate("a[1]", "x"), 'a[1]: Duplicate value: "x"'),
        (FieldError.not_found("a", "x"), 'a: Not found: "x"'),
        (FieldError.forbidden("a", "not now"), "a: Forbidden: not now"),
        (FieldError.too_long("a", 63), "a: Too long: may not be more than 63 bytes"),
        (FieldError.too_long("a", 1), "a: Too long: may not be more than 1 byte"),
        (FieldError.too_many("a", 5, 3), "a: Too many: 5: must have at most 3 items"),
        (FieldError.too_many("a", -1, 1), "a: Too many: must have at most 1 item"),
        (FieldError.internal("a", "boom"), "a: Internal error: boom"),
    ],
)
def test_field_errors_read_as_in_go(error: FieldError, text: str) -> None:
    assert str(error) == text


def test_an_eviction_that_must_wait_says_for_which_budget() -> None:
    error = TooManyRequests.disruption_budget("db", 2, 1)
    assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert error.causes == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget db needs 2 healthy pods and has 1 currently",
        }
    ]
    assert TooManyRequests.disruption_budget_unsettled("db").details["retryAfterSeconds"] == 10


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (0.1, "0.1"), (1e20, "100000000000000000000"), (1e21, "1e+21"), (1e-5, "1e-05"), (-2.5, "-2.5")],
)
def test_floats_print_as_in_go(number: float, text: str) -> None:
    assert float_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_floats_are_the_same_number(number: float) -> None:
    assert float(float_text(number)) == number
    assert float(json_text(number)) == number


def test_quoting_and_maps_look_like_go() -> None:
    assert quoted('a"b\\\n\x00é\u200b😀') == '"a\\"b\\\\\\n\\x00é\\u200b😀"'
    assert plain({"b": [1, "x", None], "a": {"c": True}}) == "map[a:map[c:true] b:[1 x <nil>]]"
