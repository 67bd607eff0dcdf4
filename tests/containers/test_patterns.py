"""Laws of matching: shell patterns, regular expressions and arithmetic, against independent models."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.userland.glob_patterns import Pattern, escaped, has_magic, unescaped
from srearena.cluster.embedded.userland.posix_backtracking import Backtracker
from srearena.cluster.embedded.userland.posix_regex import RegexError, compile_regex
from srearena.cluster.embedded.userland.posix_syntax import Parser
from srearena.cluster.embedded.userland.shell.arithmetic import ArithmeticFailure, evaluate

TEXT = st.text("abc", max_size=8)
PATTERN = st.lists(st.sampled_from(["a", "b", "c", "*", "?", "[ab]", "[!a]", "[a-b]"]), max_size=6).map("".join)


@given(PATTERN, TEXT)
def test_a_pattern_matches_as_fnmatch_does(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text) == fnmatch.fnmatchcase(text, pattern)


@given(PATTERN, TEXT)
def test_prefixes_and_suffixes_are_the_shortest_and_longest_that_match(pattern: str, text: str) -> None:
    fits = [n for n in range(len(text) + 1) if fnmatch.fnmatchcase(text[:n], pattern)]
    ends = [n for n in range(len(text) + 1) if fnmatch.fnmatchcase(text[len(text) - n :], pattern)]
    matcher = Pattern(pattern)
    assert matcher.prefix(text, longest=False) == min(fits, default=None)
    assert matcher.prefix(text, longest=True) == max(fits, default=None)
    assert matcher.suffix(text, longest=False) == min(ends, default=None)
    assert matcher.suffix(text, longest=True) == max(ends, default=None)


@given(st.text(max_size=20))
def test_an_escaped_text_matches_only_itself(text: str) -> None:
    pattern = escaped(text)
    assert not has_magic(pattern)
    assert unescaped(pattern) == text
    assert Pattern(pattern).matches(text)


REGEX = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "c"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        inner.map(lambda r: f"({r})*"),
        inner.map(lambda r: f"({r})+"),
        inner.map(lambda r: f"({r})?"),
        inner.map(lambda r: f"({r}){{1,2}}"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}|{p[1]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(REGEX, st.text("abc", max_size=8))
def test_extended_expressions_find_what_python_finds(pattern: str, text: str) -> None:
    found = compile_regex(pattern, extended=True).search(text)
    expected = re.search(pattern, text)
    assert (None if found is None else found.start) == (None if expected is None else expected.start())


@settings(max_examples=300, deadline=None)
@given(REGEX, st.text("abc", max_size=8))
def test_the_backtracking_matcher_agrees_with_re2(pattern: str, text: str) -> None:
    parser = Parser(pattern, extended=True)
    tree = parser.parse()
    matcher = Backtracker(tree, parser.groups, ignore_case=False, has_back_references=False)
    spans = matcher.search(text, 0)
    expected = re.search(pattern, text)
    found = compile_regex(pattern, extended=True).search(text)
    assert (spans is None) == (expected is None) == (found is None)
    if spans is not None and spans[0] is not None and expected is not None and found is not None:
        start, end = spans[0]
        assert start == expected.start()
        assert fits_whole(pattern, text[start:end])
        assert (found.start, found.end) == (start, end)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"(a|aa)+$", "a" * 200_000 + "b", None),
        (r"(a*)*(a*)*(a*)*c", "a" * 100_000, None),
        (r"(a|ab)(c|bcd)", "abcd", (0, 4)),
        (r"(.{1,900}x)", "a" * 20_000, None),
    ],
)
@pytest.mark.timeout(20)
def test_extended_expressions_take_the_longest_match_in_linear_time(
    pattern: str, text: str, expected: tuple[int, int] | None
) -> None:
    found = compile_regex(pattern, extended=True).search(text)
    assert (None if found is None else (found.start, found.end)) == expected


@pytest.mark.timeout(20)
def test_a_back_reference_that_takes_too_many_steps_is_an_error() -> None:
    regex = compile_regex(r"\(a*\)*\(a*\)*\2\1b")
    with pytest.raises(RegexError, match="Memory exhausted"):
        regex.search("a" * 500)


def fits_whole(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_an_error(pattern: str) -> None:
    for extended in (True, False):
        try:
            compile_regex(pattern, extended=extended).search("some text")
        except RegexError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("pattern", "text", "span"),
    [
        (r"\(ab\)*c", "ababc", (0, 5)),
        ("a+b", "aab a+b", (4, 7)),
        (r"a\+b", "xaab", (1, 4)),
        (r"a\|b", "b", (0, 1)),
        ("^*x", "*x", (0, 2)),
        (r"a\{2,3\}", "aaaa", (0, 3)),
        (r"x$y", "x$y", (0, 3)),
        (r"\<w\w*\>", "a word", (2, 6)),
        (r"\(.\)\1", "abccd", (2, 4)),
        ("[[:digit:]][[:alpha:]]", "a1b", (1, 3)),
        ("[]a]", "]", (0, 1)),
    ],
)
def test_basic_expressions_follow_posix(pattern: str, text: str, span: tuple[int, int]) -> None:
    found = compile_regex(pattern).search(text)
    assert found is not None
    assert (found.start, found.end) == span


NUMBERS = st.integers(-1000, 1000)
EXPRESSION = st.recursive(
    NUMBERS.map(lambda n: str(n) if n >= 0 else f"(-{-n})"),
    lambda inner: st.tuples(
        inner, st.sampled_from(["+", "-", "*", "&", "|", "^", "<", ">", "==", "&&", "||"]), inner
    ).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=8,
)


@given(EXPRESSION)
def test_arithmetic_agrees_with_python(text: str) -> None:
    python = text.replace("&&", " and ").replace("||", " or ")
    # Python's and/or give operands, the shell's give truth values.
    assume(" and " not in python and " or " not in python)
    assert evaluate(text, lambda name: "", lambda name, value: None) == int(eval(python))


@given(st.integers(), st.integers())
def test_arithmetic_wraps_at_64_bits(left: int, right: int) -> None:
    left, right = left % 2**63, right % 2**63
    value = evaluate(f"{left} * {right}", lambda name: "", lambda name, value: None)
    assert -(2**63) <= value < 2**63
    assert (value - left * right) % 2**64 == 0


@given(st.text(max_size=25))
def test_any_text_is_a_number_or_a_failure(text: str) -> None:
    try:
        evaluate(text, lambda name: "", lambda name, value: None)
    except ArithmeticFailure as failure:
        assert str(failure)
