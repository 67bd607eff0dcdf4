"""Regular expressions: the same matches as Perl-like engines give, and never an endless one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.regular_expressions import Pattern, PatternError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("*a", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("a{2000}", "error parsing regexp: invalid repeat count: `{2000}`"),
        ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (r"\1", r"error parsing regexp: invalid escape sequence: `\1`"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(text: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(text)
    assert str(caught.value) == message


RUINOUS = ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)(.*)(.*)c", "(x+x+)+y", "(a?){60}a{60}!!", "a?" * 40 + "a{40}!!"]


@pytest.mark.parametrize("text", RUINOUS)
def test_patterns_that_ruin_backtracking_engines_end_soon(text: str) -> None:
    assert Pattern(text).search("a" * 250 + "!") is None
    assert Pattern(text).search("x" * 250) is None or text.startswith("(a*)")


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\.", r"\w", "a?", "b*", "a+?", "(a|b)", "(?:ab)+", "x{1,2}"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=2).map("|".join).map("({})".format),
        # Engines differ over loops whose body can match nothing.
        inner.map("(?:a{})*".format),
    ),
    max_leaves=4,
)


@given(patterns, st.text("abx.", max_size=6))
def test_matches_are_those_of_a_backtracking_engine(text: str, subject: str) -> None:
    expected = re.search(text, subject)
    found = Pattern(text).search(subject)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert (found.start, found.end) == expected.span()
        if "*" not in text and "+" not in text:  # engines differ over what a group in a loop holds at the end
            assert found.groups == tuple(group or "" for group in (expected.group(), *expected.groups()))


@given(st.text(max_size=30), st.text(max_size=20))
def test_any_text_is_a_pattern_or_an_error(text: str, subject: str) -> None:
    try:
        compiled = Pattern(text)
    except PatternError as refusal:
        assert str(refusal)
        return
    found = compiled.search(subject)
    assert found is None or 0 <= found.start <= found.end <= len(subject)
