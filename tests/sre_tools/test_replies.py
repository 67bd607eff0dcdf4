"""The budget always holds, and cursors lead through everything exactly once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sre_tools.offline_incident_analysis import ToolError
from sre_tools.offline_incident_analysis.replies import Answer, Window, envelope, fit, read_cursor
from tests.sre_tools.conftest import Ask

_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=3000),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=10), inner, max_size=10),
    max_leaves=40,
)


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), _JSON, max_size=4), max_size=20), st.integers(500, 3000))
def test_no_reply_is_longer_than_its_budget(rows: list[dict[str, Any]], tokens: int) -> None:
    reply = envelope("t", "s", {}, Answer(rows), Window(), tokens)
    assert len(json.dumps(reply, ensure_ascii=False, separators=(",", ":"))) <= tokens * 3.5 + 200
    assert reply["returned_count"] + reply["left_out"] == len(rows)
    assert not rows or reply["data"]


@given(st.lists(st.integers(1, 900), min_size=1, max_size=60))
def test_cursors_lead_through_every_row_once(sizes: list[int]) -> None:
    rows = [{"id": index, "text": "x" * size} for index, size in enumerate(sizes)]
    seen, window = [], Window()
    while True:
        reply = envelope("t", "s", {"a": 1}, Answer(rows), window, 1000)
        seen += [row["id"] for row in reply["data"]]
        if reply["next_cursor"] is None:
            break
        window = Window(read_cursor(reply["next_cursor"], "t", {"a": 1}))
    assert seen == list(range(len(sizes)))


def test_a_cursor_belongs_to_its_call(ask: Ask) -> None:
    first = ask("alert_analysis", max_tokens=500)
    assert first["left_out"] > 0
    second = ask("alert_analysis", max_tokens=500, cursor=first["next_cursor"])
    assert second["offset"] == first["returned_count"]
    assert second["data"][0] != first["data"][0]
    for other in ({"filters": {"severity": "none"}}, {"start_time": "2025-06-01T10:00:00Z"}):
        with pytest.raises(ToolError, match="another call"):
            ask("alert_analysis", cursor=first["next_cursor"], **other)
    with pytest.raises(ToolError, match="no cursor"):
        ask("alert_analysis", cursor="nonsense")


def test_pages_together_are_the_whole(ask: Ask) -> None:
    whole = ask("log_analysis", pattern_analysis=False, max_tokens=50_000)["data"]
    pages, cursor = [], None
    while True:
        reply = ask("log_analysis", pattern_analysis=False, max_tokens=700, cursor=cursor)
        pages += reply["data"]
        cursor = reply["next_cursor"]
        if cursor is None:
            break
    assert pages == whole
    assert len(pages) == 29


def test_long_texts_are_cut_with_a_word_about_it() -> None:
    assert fit({"a": "x" * 5000}, 2000)["a"].endswith("more characters)")
    assert fit({"a": list(range(10_000))}, 1000)["a"][-1].startswith("…")
