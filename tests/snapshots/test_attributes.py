"""Attribute maps in three formats; no text raises an exception."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from srearena.snapshots.alert_files import time_in_name
from srearena.snapshots.attributes import parse_attributes, parse_value
from tests.snapshots.samples import go_map

_SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
_WORDS = st.text(st.characters(whitelist_categories=("L", "N"), whitelist_characters="._-/"), min_size=1)


@given(st.dictionaries(st.text(), _VALUES, min_size=1, max_size=4))
def test_json_and_python_formats_are_equivalent(value: dict[str, Any]) -> None:
    assert parse_attributes(json.dumps(value)) == value
    assert parse_attributes(repr(value)) == value


@given(st.dictionaries(_WORDS, _WORDS, max_size=5))
def test_go_maps_of_plain_words_are_read_back(value: dict[str, str]) -> None:
    assert parse_attributes(go_map(value)) == value


@given(st.text())
def test_any_text_is_parsed_or_is_returned_unchanged(text: str) -> None:
    parse_value(text)
    parse_value("map[" + text)
    parse_value("{" + text)
    assert isinstance(parse_attributes("[" + text + "]"), dict)


def test_go_values_may_hold_spaces_colons_and_maps() -> None:
    text = "map[a:one two addr:10.0.0.1:80 inner:map[x:1 y:2] z:3]"
    assert parse_attributes(text) == {"a": "one two", "addr": "10.0.0.1:80", "inner": {"x": "1", "y": "2"}, "z": "3"}


def test_unbounded_nesting_is_text() -> None:
    assert parse_attributes("[" * 100_000) == {}
    assert parse_attributes("map[a:" * 10_000) == {}


def test_capture_times_are_read_from_both_kinds_of_names() -> None:
    assert time_in_name("alerts_at_2025-06-01T10-05-00.250000.json") == "2025-06-01T10:05:00.250000Z"
    assert time_in_name("alerts_in_alerting_state_2025-06-01T100500.250000Z.json") == "2025-06-01T10:05:00.250000Z"
    assert time_in_name("alerts.json") is None
