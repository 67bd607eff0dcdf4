"""Printer columns of custom resources find what Kubernetes' JSONPath would find, and nothing breaks them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.registry.jsonpath_text import text_of
from srearena.jsonpath import JSONPathError, parse

ROLLOUT: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web", "tier": "front"}},
    "spec": {"replicas": 3, "paused": False, "ratio": 1.5, "hosts": ["a", "b", "c"]},
    "status": {
        "conditions": [
            {"type": "Available", "status": "True", "weight": 1},
            {"type": "Ready", "status": "False", "reason": "Waiting (for b)", "weight": 2},
        ],
        "nothing": None,
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ("$.spec.paused", [False]),
        (".spec.absent.deeper", []),
        (".spec.replicas.deeper", []),
        (".status.nothing.deeper", []),
        (".status.nothing", [None]),
        (".spec.hosts[0]", ["a"]),
        (".spec.hosts[-1]", ["c"]),
        (".spec.hosts[*]", ["a", "b", "c"]),
        (".spec.hosts[1:]", ["b", "c"]),
        (".spec.hosts[:2]", ["a", "b"]),
        (".spec.hosts[::2]", ["a", "c"]),
        (".spec.hosts[0,2]", ["a", "c"]),
        (".metadata.labels['tier']", ["front"]),
        (".metadata['name','labels'].tier", ["front"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["web"]),
        (r".metadata.labels['app\.kubernetes\.io/name']", ["web"]),
        (".metadata.labels.*", ["web", "front"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["False"]),
        (".status.conditions[?(@.type=='Ready')].reason", ["Waiting (for b)"]),
        (".status.conditions[?(@.reason=='Waiting (for b)')].type", ["Ready"]),
        (".status.conditions[?(@.type != 'Ready')].type", ["Available"]),
        (".status.conditions[?(@.weight>1)].type", ["Ready"]),
        (".status.conditions[?(@.weight<=1)].type", ["Available"]),
        (".status.conditions[?(@.reason)].type", ["Ready"]),
        ('.status.conditions[?(@.type=="Gone")].status', []),
        ("..type", ["Available", "Ready"]),
        (".", [ROLLOUT]),
    ],
)
def test_a_path_finds(path: str, found: list[Any]) -> None:
    assert parse(path).find(ROLLOUT) == found


@pytest.mark.parametrize(
    "path",
    [
        ".spec.hosts[",
        ".spec.hosts[x]",
        ".spec[?(@.a==1]",
        ".spec[?(@.a=!1)]",
        ".spec.!",
        "...a",
        "#",
        ".a'b",
        ".a[::0]",
    ],
)
def test_a_malformed_path_is_refused_or_finds_nothing(path: str) -> None:
    try:
        assert parse(path).find(ROLLOUT) == []
    except JSONPathError as error:
        assert str(error)


@pytest.mark.parametrize(
    "path", [".spec.hosts[3]", ".spec[0]", ".spec[?(@.a)]", ".status.conditions[?(@.weight=='1')]"]
)
def test_a_path_that_does_not_fit_the_value_is_an_error(path: str) -> None:
    with pytest.raises(JSONPathError):
        parse(path).find(ROLLOUT)


def test_values_are_shown_as_text() -> None:
    shown = [text_of(value) for value in ("x", 3, True, 1.5, 1e21, None, {"b": 1, "a": [1, "<"]})]
    assert shown == ["x", "3", "true", "1.5", "1e+21", "<no value>", '{"a":[1,"\\u003c"],"b":1}']


def test_hostile_paths_are_bounded() -> None:
    wide = {"a": [[0] * 100] * 1000}
    with pytest.raises(JSONPathError, match="too many"):
        parse(".a[*][*]").find(wide)
    with pytest.raises(JSONPathError, match="too many"):
        parse("..x").find(wide)
    with pytest.raises(JSONPathError):
        parse("." + "a" * 5000)
    with pytest.raises(JSONPathError):
        parse("[?(@." * 20 + "a" + ")]" * 20)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
paths = st.lists(
    st.sampled_from(
        [".a", ".b", ".*", "[0]", "[*]", "[-1]", "[1:]", "..c", "[?(@.a)]", "[?(@.a==1)]", "['a','b']", "\\", "'"]
    ),
    max_size=5,
).map("".join)


@given(paths, json_values)
def test_any_path_on_any_value_finds_values_or_is_an_error(path: str, value: Any) -> None:
    try:
        found = parse(path).find(value)
    except JSONPathError as error:
        assert str(error)
    else:
        assert all(isinstance(text_of(item), str) for item in found)


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_an_error(text: str) -> None:
    try:
        parse(text)
    except JSONPathError as error:
        assert str(error)


@given(st.dictionaries(st.text("xyz.", min_size=1, max_size=3), st.integers()))
def test_an_escaped_key_finds_exactly_its_value(mapping: dict[str, int]) -> None:
    for key, value in mapping.items():
        assert parse("." + key.replace(".", r"\.")).find(mapping) == [value]
