"""Agents' texts: one call is parsed, everything else gets a helpful error and is never evaluated."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.conductor.actions.parsing import Call, parse
from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.errors import BadAction

KNOWN = Toolbox.names()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Let me see.\n```\nget_logs("ns", "web")\n```\nThen more.', Call("get_logs", ("ns", "web"))),
        ('```python\nget_metrics("up", minutes=5)\n```', Call("get_metrics", ("up",), {"minutes": 5})),
        ('submit(["a", "b"])', Call("submit", (["a", "b"],))),
        ("```bash\nkubectl get pods -A\n```", Call("exec_shell", ("kubectl get pods -A",))),
        ("```\nsubmit()\n```", Call("submit")),
    ],
)
def test_one_call_is_understood(text: str, expected: Call) -> None:
    assert parse(text, KNOWN) == expected


@pytest.mark.parametrize(
    ("text", "help_given"),
    [
        ("I think the database is broken.", "there is no action in this text"),
        ("```\nget_logs('a')\n```\n```\nsubmit()\n```", "one action at a time"),
        ("```\nsubmit(); submit()\n```", "one action at a time"),
        ("```\nget_log('a', 'b')\n```", "did you mean get_logs?"),
        ("```\nsubmit(__import__('os').environ)\n```", "plain values"),
        ("```\nos.system('id')\n```", "by its plain name"),
        ("```\nx = 1\n```", "an action is a call"),
        ("```\nsubmit(*[1])\n```", "plain values"),
        ("```\nsubmit(**{})\n```", "written out"),
        ("```\nsubmit('a\n```", "not a call that can be parsed"),
        ("```\nsubmit(" + "[" * 90 + "]" * 90 + ")\n```", "nested"),
        ("```\nsubmit(" + "(" * 50_000 + ")\n```", "not a call that can be parsed"),
        ("```\nsubmit('\x00')\n```", ""),
        ("x" * 10_000_000, "at most"),
    ],
)
def test_anything_else_is_answered_with_help(text: str, help_given: str) -> None:
    with pytest.raises(BadAction) as mistake:
        parse(text, KNOWN)
    assert help_given in str(mistake.value)


@given(st.text())
def test_no_text_gets_further_than_a_call_or_a_complaint(text: str) -> None:
    with suppress(BadAction):
        assert parse(text, KNOWN).name in KNOWN


literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(literals, max_size=3))
def test_a_call_that_is_written_is_read_back(values: list[object]) -> None:
    call = Call("submit", tuple(values))
    if "```" not in str(call):
        assert parse(f"```\n{call}\n```", KNOWN) == call
