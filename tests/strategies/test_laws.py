"""Laws that hold for any object whose fields have the right types, however senseless it is otherwise."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.schema import Schema, Shape
from srearena.cluster.embedded.registry.strategies import built_in
from tests.strategies.server import ROWS, Answer, answer, context, strategy_of

_TEXTS = ("", "a", "A b", "a.b", "x/y", "1.2.3.4", "10.0.0.0/8", "50%", "/p", "../q", "Always", "TCP", "None", "Exists")
_NUMBERS = (0, 1, -1, 3, 80, 70_000, 2**31 - 1)
_AMOUNTS = ("0", "100m", "1", "64Mi", "1.5", "-2")
_KINDS = [row for row in ROWS.values() if row.group_resource in built_in() and not row.storage_version]


def _value(chance: Random, schema: Schema, depth: int) -> Any:
    if chance.random() < 0.03:
        return None
    shape = schema.shape
    if shape is Shape.STRUCT:
        share = 0.5 if depth < 4 else 0.25
        names = [name for name in schema.fields if depth < 9 and chance.random() < share]
        return {name: _value(chance, schema.fields[name], depth + 1) for name in names}
    if shape is Shape.LIST:
        return [_item(chance, schema, depth) for _ in range(chance.choice((0, 1, 1, 2)))] if depth < 9 else []
    if shape is Shape.MAP:
        return {chance.choice(("a", "cpu", "memory", "b c")): _item(chance, schema, depth)} if depth < 9 else {}
    return _scalar(chance, shape)


def _item(chance: Random, schema: Schema, depth: int) -> Any:
    """An entry of a list or map: null where a structure is wanted, the server turns into an empty one."""
    found = _value(chance, schema.element, depth + 1)
    return found if found is not None else _empty(schema.element.shape)


def _empty(shape: Shape) -> Any:
    return {} if shape in (Shape.STRUCT, Shape.MAP) else [] if shape is Shape.LIST else _scalar(Random(0), shape)


def _scalar(chance: Random, shape: Shape) -> Any:
    choices: dict[Shape, tuple[Any, ...]] = {
        Shape.STRING: _TEXTS,
        Shape.INTEGER: _NUMBERS,
        Shape.NUMBER: (0.0, 1.5, -2.0),
        Shape.BOOLEAN: (True, False),
        Shape.INT_OR_STRING: (0, 80, "http", "25%", ""),
        Shape.QUANTITY: _AMOUNTS,
    }
    return chance.choice(choices.get(shape, ("x", 1, None, {})))


def _object(chance: Random, row: Resource) -> Obj:
    schema = schemas.for_kind(row.group, row.version, row.kind)
    assert schema is not None
    obj: Obj = _value(chance, schema, 0) or {}
    obj.update(apiVersion=row.api_version, kind=row.kind)
    obj["metadata"] = {"name": "a", "uid": "u", **({"namespace": "x"} if row.namespaced else {})}
    return obj


def _in_words(given_answer: Answer) -> bool:
    """Every problem has its kind, its field and its words."""
    return all(problem.count("|") >= 2 for problem in given_answer.problems)


_ANY_KIND = st.sampled_from(_KINDS)
_ANY_CHANCE = st.randoms(use_true_random=False)
_LONG = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_LONG
@given(_ANY_CHANCE, _ANY_KIND)
def test_defaulting_twice_changes_nothing_more(chance: Random, row: Resource) -> None:
    default = strategy_of(row).default
    if default is None:
        return
    obj = _object(chance, row)
    default(obj)
    once = deepcopy(obj)
    default(obj)
    assert obj == once


@_LONG
@given(_ANY_CHANCE, _ANY_KIND)
def test_any_object_of_the_right_types_is_answered(chance: Random, row: Resource) -> None:
    assert _in_words(answer(_object(chance, row)))


@_LONG
@given(_ANY_CHANCE, _ANY_KIND)
def test_any_change_between_two_such_objects_is_answered(chance: Random, row: Resource) -> None:
    assert _in_words(answer(_object(chance, row), _object(chance, row)))


@_LONG
@given(_ANY_CHANCE, _ANY_KIND)
def test_an_object_that_does_not_change_is_not_refused_for_changing(chance: Random, row: Resource) -> None:
    strategy = strategy_of(row)
    obj = _object(chance, row)
    if strategy.default:
        strategy.default(obj)
    if strategy.prepare_create:
        try:
            strategy.prepare_create(obj, context())
        except ApiError:
            return  # it could not have been stored in the first place
    changes = strategy.validate_update(deepcopy(obj), obj) if strategy.validate_update else []
    assert [
        str(problem) for problem in changes if "immutable" in str(problem) or "may not change" in str(problem)
    ] == []


@pytest.mark.parametrize("row", _KINDS, ids=lambda row: row.group_resource)
def test_an_empty_object_is_answered(row: Resource) -> None:
    assert _in_words(answer({"apiVersion": row.api_version, "kind": row.kind, "metadata": {}}))


def test_defaulting_leaves_complete_parts_alone() -> None:
    """Stored parts of an object pass through defaulting again, and nobody may change what is stored."""
    row = ROWS["v1", "Pod"]
    pod = answer({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "x"}, "spec": _SPEC}).obj
    before, parts = deepcopy(pod), [pod["spec"], pod["spec"]["containers"][0]]
    default = strategy_of(row).default
    assert default is not None
    default(pod)
    assert pod == before
    assert [pod["spec"], pod["spec"]["containers"][0]] == parts


_SPEC: Obj = {
    "volumes": [{"name": "c", "configMap": {"name": "c"}}, {"name": "t", "emptyDir": {"sizeLimit": "1024Mi"}}],
    "containers": [
        {"name": "a", "image": "web", "resources": {"limits": {"cpu": "1000m"}}, "ports": [{"containerPort": 1}]}
    ],
}
