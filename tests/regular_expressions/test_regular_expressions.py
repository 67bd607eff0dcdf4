"""Regular expressions: Go's syntax, matches and messages, in time linear in the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.regular_expressions import Pattern, PatternError, literal, pattern


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
        (r"\C", r"error parsing regexp: invalid escape sequence: `\C`"),
        ("a\\", "error parsing regexp: trailing backslash at end of expression: ``"),
        ("a)", "error parsing regexp: unexpected ): `a)`"),
        ("[b-a]", "error parsing regexp: invalid character class range: `b-a`"),
        ("x{3,2}?", "error parsing regexp: invalid repeat count: `{3,2}`"),
        ("x{99999999999}", "error parsing regexp: invalid repeat count: `{99999999999}`"),
        ("(?P<é>a)", "error parsing regexp: invalid named capture: `(?P<é>`"),
        ("(?P<n", "error parsing regexp: invalid named capture: `(?P<n`"),
    ],
)
def test_errors_have_the_words_of_go(text: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(text)
    assert str(caught.value) == message


CATASTROPHIC = [
    "(a+)+$",
    "(a|a)*b",
    "(a*)*b",
    "(.*)(.*)(.*)(.*)(.*)c",
    "(x+x+)+y",
    "(a?){60}a{60}!!",
    "a?" * 40 + "a{40}!!",
]


@pytest.mark.parametrize("text", CATASTROPHIC)
def test_patterns_with_catastrophic_backtracking_end_soon(text: str) -> None:
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


@pytest.mark.parametrize(
    ("text", "subject", "template", "expected"),
    [
        (r"(\d+)-(?P<word>\w+)", "12-ab 3-c", "<$word$$${1}>", "<ab$12> <c$3>"),
        ("a*", "baac", "x", "xbxcx"),  # no empty match directly behind another
        ("a", "aé", "$1x${nothing}", "é"),  # $1x is a name, and groups that do not exist are empty
        ("^a", "aa", "b", "ba"),
        (r"\B", "aß", "-", "aß-"),  # never between the bytes of a character
        ("(?i)k", "K\u212a", "x", "xx"),
    ],
)
def test_replacements_are_those_of_go(text: str, subject: str, template: str, expected: str) -> None:
    assert pattern(text).replace_all(subject, lambda match: match.expand(template)) == expected


def test_positions_count_characters_and_undecodable_bytes_are_characters() -> None:
    subject = "é\udcff\u2603b"
    match = pattern(literal("\udcff") + "(.)b").search(subject)
    assert match is not None
    assert (match.start, match.end, match.groups) == (1, 4, ("\udcff\u2603b", "\u2603"))
    assert not pattern(literal("\udcfe")).matches(subject)


@given(st.text(max_size=10))
def test_a_literal_matches_itself(text: str) -> None:
    match = Pattern(rf"\A{literal(text)}\z").search(text)
    assert match is not None and match.groups == (text,)
