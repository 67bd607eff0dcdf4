"""What holds for every query, every line and every template."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.telemetry.logs.logql.captures import capture, captures
from srearena.cluster.embedded.telemetry.logs.logql.engine import evaluate, find_lines
from srearena.cluster.embedded.telemetry.logs.logql.errors import QueryError
from srearena.cluster.embedded.telemetry.logs.logql.parser import parse
from srearena.cluster.embedded.telemetry.logs.logql.syntax import LogQuery
from srearena.cluster.embedded.telemetry.logs.logql.template_functions import FUNCTIONS
from srearena.cluster.embedded.telemetry.logs.store import LogStore, nanos
from srearena.cluster.embedded.telemetry.templates import Template, TemplateError

NOW = 1_800_000_000
WORDS = (
    '{ } ( ) [5m] [1h30m] , = != =~ !~ |= |~ |> | or and unless + - * / ^ > == bool on ignoring group_left by without '
    'json logfmt pattern regexp unpack line_format label_format drop keep decolorize unwrap offset 5 0.5 10ms 3KB '
    'rate count_over_time sum topk quantile_over_time vector label_replace ip duration "x" "{{.a}}" `<a> <_>` '
    '"(?P<n>.)" a b __error__ # --strict'
).split()  # fmt: skip
SAMPLES = ['{"a":"1","b":{"c":2}}', "a=1 b=2", "", "{", "plain text", "\x1b[1mcolour", "größe", '{"a":[1,{"x":2}]}']


def store(lines: list[str]) -> LogStore:
    log_store = LogStore()
    for number, line in enumerate(lines):
        log_store.stream({"a": "b", "pod": str(number % 2)}).append(NOW + number, line.encode())
    return log_store


def ask(query: str, lines: list[str]) -> None:
    found = parse(query)
    if isinstance(found, LogQuery):
        entries = find_lines(store(lines), found, 0, 2**62, 100, backward=True)
        assert sum(len(one.lines) for one in entries) <= len(lines)
    else:
        result = evaluate(store(lines), found, range(nanos(NOW), nanos(NOW + 60), nanos(20.0)))
        assert isinstance(result, float) or all(len(one.values) == len(one.present) == 3 for one in result)


@contextmanager
def answered_or(refusal: type[Exception]) -> Iterator[None]:
    """An invalid query is rejected with a message."""
    try:
        yield
    except refusal as problem:
        assert str(problem)


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_any_heap_of_words_is_answered_or_refused(query: str) -> None:
    with answered_or(QueryError):
        ask(query, SAMPLES)


@given(st.lists(st.sampled_from(WORDS), max_size=10).map(" ".join))
def test_any_pipeline_is_answered_or_refused(pipeline: str) -> None:
    for query in ('{a="b"} ' + pipeline, f'sum by (a) (count_over_time({{a="b"}} {pipeline} [1m]))'):
        with answered_or(QueryError):
            ask(query, SAMPLES)


@given(st.text(max_size=30))
def test_any_text_is_answered_or_refused(query: str) -> None:
    with answered_or(QueryError):
        ask(query, [])
    with answered_or(QueryError):
        ask('{a="b"} ' + query, SAMPLES)


@given(
    st.lists(st.text(max_size=40), max_size=5),
    st.sampled_from(["json", "logfmt", "unpack", "decolorize", 'pattern "<x> <y>"']),
)
def test_parsers_survive_any_line(lines: list[str], parser: str) -> None:
    found = parse(f'{{a="b"}} | {parser}')
    assert isinstance(found, LogQuery)
    entries = find_lines(store(lines), found, 0, 2**62, 100, backward=False)
    assert sum(len(one.lines) for one in entries) == len(lines)


@given(st.lists(st.integers(0, 59), unique=True, max_size=60).map(sorted), st.integers(5, 60))
def test_counts_rates_and_sums_agree(seconds: list[int], width: int) -> None:
    """Instants differ: of two lines of one instant in a stream, the second is a nanosecond later."""
    logs = LogStore()
    for number, second in enumerate(seconds):
        logs.stream({"a": "b", "pod": str(number % 3)}).append(NOW + second, b"x" * number)
    steps = [nanos(NOW + 30), nanos(NOW + 60)]

    def total(query: str) -> list[float]:
        result = evaluate(logs, parse(query), steps)  # type: ignore[arg-type]
        assert not isinstance(result, float)
        return [round(sum(s.values[i] for s in result if s.present[i]), 6) for i in range(len(steps))]

    expected = [sum(NOW + s > step / 1e9 - width and NOW + s <= step / 1e9 for s in seconds) for step in steps]
    selector = f'{{a="b"}}[{width}s]'
    assert total(f"count_over_time({selector})") == expected
    assert total(f"sum(count_over_time({selector}))") == expected
    assert total(f"sum by (pod) (rate({selector})) * {width}") == expected
    assert total(f"sum without (a) (count_over_time({selector}))") == expected
    assert total(f"bytes_over_time({selector})") == total(f"sum(bytes_rate({selector})) * {width}")


@given(st.text(max_size=60))
def test_any_template_is_carried_out_or_refused(text: str) -> None:
    for template in (text, "{{" + text + "}}", "{{ .a | " + text + " }}"):
        with answered_or(TemplateError):
            assert isinstance(Template(template, FUNCTIONS).render({"a": "b"}, FUNCTIONS), str)


@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.lists(st.sampled_from(['""', "0", "-1", "1e9", ".a", "nil", '"%99999999s"', "5"]), max_size=4),
)
def test_any_call_is_carried_out_or_refused(name: str, arguments: list[str]) -> None:
    with answered_or(TemplateError):
        template = Template("{{ " + " ".join([name, *arguments]) + " }}", FUNCTIONS)
        assert isinstance(template.render({"a": "b" * 1000}, FUNCTIONS), str)


@given(
    st.lists(
        st.text(st.characters(blacklist_characters="<> ", blacklist_categories=("Cs",)), min_size=1),
        min_size=2,
        max_size=5,
    )
)
def test_what_was_put_between_literals_is_captured(parts: list[str]) -> None:
    expression = " ".join(f"<f{number}>" for number in range(len(parts)))
    assert capture(captures(expression), " ".join(parts)) == [(f"f{n}", part) for n, part in enumerate(parts)]


@pytest.mark.parametrize(
    ("template", "expected_text"),
    [
        ("{{ range $k, $v := fromJson .j }}{{ $k }}:{{ $v }} {{ end }}", "a:1 b:x "),
        ("{{ with .missing }}x{{ else }}none{{ end }}", "none"),
        ("{{ printf \"%05.1f|%+d|%q|%x|%v|%%\" 3.14159 5 \"q\" 255 true }}", '003.1|+5|"q"|ff|true|%'),
        ("{{ repeat 5000000 .j }}", None),
        ("{{ .j.k }}", None),
        ("{{ unknown .j }}", None),
        ("{{ define \"x\" }}", None),
        ("{{ if }}x{{ end }}", None),
        ("{{ if .j }}x", None),
        ("{{ end }}", None),
    ],
)  # fmt: skip
def test_templates(template: str, expected_text: str | None) -> None:
    values = {"j": '{"a":1,"b":"x"}'}
    if expected_text is None:
        with pytest.raises(TemplateError):
            Template(template, FUNCTIONS).render(values, FUNCTIONS)
    else:
        assert Template(template, FUNCTIONS).render(values, FUNCTIONS) == expected_text
