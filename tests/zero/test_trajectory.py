"""Trajectories: turns as they were, tokens that add up, a document that ATIF's own models accept."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero.trajectory import MAX_TEXT, Prices, Trajectory, Usage

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def recorded(**options: Any) -> Trajectory:
    return Trajectory("codex", "1.0", "m", now=lambda: NOON, **options)


def test_a_turn_is_words_calls_and_results() -> None:
    one = recorded()
    one.add_message("task")
    one.add_reasoning("hm")
    one.add_text("I look")
    one.add_tool_call("c1", "alerts", {"a": 1})
    one.add_tool_call("c2", "logs", {})
    one.add_tool_result("c2", "two", failed=True)
    one.add_tool_result("c1", "one")
    one.add_text("Done")
    first, second, third = one.steps
    assert (first["source"], second["source"], third["message"]) == ("user", "agent", "Done")
    assert [call["function_name"] for call in second["tool_calls"]] == ["alerts", "logs"]
    assert [each["source_call_id"] for each in second["observation"]["results"]] == ["c2", "c1"]
    assert second["extra"] == {"failed_calls": ["c2"]}
    assert second["timestamp"] == "2026-01-02T12:00:00.000Z"
    assert one.turns == 2


def test_tokens_of_turns_are_kept_and_a_total_has_the_last_word() -> None:
    one = recorded(prices=Prices(10, 20, 1))
    for _ in range(2):
        one.add_text("word")
        one.add_tool_call("c", "f", {})
        one.add_tool_result("c", "r")
    one.add_usage(Usage(100, 10, 50))
    one.add_usage(Usage(200, 20, 0))
    assert [step["metrics"]["prompt_tokens"] for step in one.steps] == [100, 200], "in the order of the turns"
    assert one.usage.prompt == 300
    assert one.usage.cost_usd == pytest.approx((50 * 10 + 50 * 1 + 10 * 20 + 200 * 10 + 20 * 20) / 1e6)
    one.set_attempt_usage(Usage(1000, 5, 0, 0.5))
    assert one.end_attempt() == Usage(1000, 5, 0, 0.5)
    one.set_attempt_usage(Usage(1, 1))
    assert (one.usage.prompt, one.usage.completion) == (1001, 6)


def test_what_a_cli_tells_it_costs_counts_before_prices() -> None:
    one = recorded(prices=Prices(1000, 1000))
    one.set_attempt_usage(Usage(1000, 1000, 0, 0.25))
    assert one.usage.cost_usd == 0.25


def test_pieces_of_a_message_are_joined_and_long_ones_cut() -> None:
    one = recorded()
    one.append_text("a")
    one.append_text("b")
    assert one.steps[0]["message"] == "ab"
    one.add_text("x" * (MAX_TEXT + 5))
    cut = one.steps[0]["message"]
    assert cut.endswith("left out]") and len(cut) <= MAX_TEXT
    one.add_text("and more")
    assert one.steps[0]["message"] == cut


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("add_text"), st.text(max_size=5)),
        st.tuples(st.just("add_reasoning"), st.text(max_size=5)),
        st.tuples(st.just("append_text"), st.text(max_size=5)),
        st.tuples(st.just("add_message"), st.text(max_size=5)),
        st.tuples(st.just("call"), st.sampled_from("abc")),
        st.tuples(st.just("result"), st.sampled_from("abcd")),
        st.tuples(st.just("usage"), st.integers(0, 9)),
        st.tuples(st.just("end"), st.none()),
    ),
    max_size=30,
)


@given(events=EVENTS)
def test_whatever_happens_the_document_is_in_order(events: list[tuple[str, Any]]) -> None:
    one = recorded()
    for kind, value in events:
        match kind:
            case "call":
                one.add_tool_call(value, "f", {})
            case "result":
                one.add_tool_result(value, "r")
            case "usage":
                one.add_usage(Usage(value, value))
            case "end":
                one.end_attempt()
            case _:
                getattr(one, kind)(value)
    document = one.document()
    steps = document["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    assert document["final_metrics"]["total_prompt_tokens"] == sum(value for kind, value in events if kind == "usage")
    assert document["extra"]["turns"] == sum(step["source"] == "agent" for step in steps)
    for step in steps:
        calls = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        for result in step.get("observation", {"results": ()})["results"]:
            assert result.get("source_call_id") is None or result["source_call_id"] in calls


def test_atifs_own_models_accept_it() -> None:
    """By harbor, which defines ATIF and needs Python 3.12: in an environment of its own, or in this one."""
    python = os.environ.get("SREARENA_TEST_HARBOR", sys.executable)
    here = python == sys.executable
    if not (importlib.util.find_spec("harbor") if here else os.access(python, os.X_OK)):
        pytest.skip("harbor, which defines ATIF, is not installed (it needs Python 3.12)")
    one = recorded()
    one.add_message("task", "system")
    one.add_text("I look")
    one.add_tool_call("c1", "alerts", {"a": 1})
    one.add_tool_result("c1", "one", failed=True)
    one.add_usage(Usage(1, 2, 1, 0.1))
    reader = (
        "import sys; from harbor.models.trajectories import Trajectory; "
        "print(len(Trajectory.model_validate_json(sys.stdin.read()).steps))"
    )
    document = json.dumps(one.document(outcome="answered"))
    done = subprocess.run([python, "-c", reader], input=document, capture_output=True, text=True, check=False)
    assert done.stdout == "2\n", done.stderr
