"""Parser of pipelines: the stages between a stream selector and its range."""

from __future__ import annotations

from srearena.cluster.embedded.telemetry.logs.line_patterns import line_pattern
from srearena.cluster.embedded.telemetry.logs.logql.captures import CaptureError, captures
from srearena.cluster.embedded.telemetry.logs.logql.cursor import Cursor
from srearena.cluster.embedded.telemetry.logs.logql.errors import SyntaxProblem
from srearena.cluster.embedded.telemetry.logs.logql.lexer import CONVERSIONS
from srearena.cluster.embedded.telemetry.logs.logql.syntax import (
    Both,
    Choose,
    Comparison,
    Decolorize,
    LabelFilter,
    LabelFormat,
    LineFilter,
    LineFormat,
    Parse,
    PipelineStage,
    Unwrap,
)
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.regular_expressions import PatternError

_LINE_FILTERS = ("|=", "|~", "|>", "!=", "!~", "!>")
_AMOUNTS = {"DURATION": "duration", "BYTES": "bytes", "NUMBER": "number"}
_STRING_OPERATORS = ("=", "!=", "=~", "!~")
_AMOUNT_OPERATORS = ("=", "==", "!=", ">", ">=", "<", "<=")


def matcher(cursor: Cursor, name: str, operator: str, value: str) -> Matcher:
    try:
        return Matcher(name, operator, value)
    except PatternError as problem:
        raise SyntaxProblem(str(problem)) from problem


def stages(cursor: Cursor, *, unwraps: bool = True) -> tuple[tuple[PipelineStage, ...], Unwrap | None]:
    """The stages from here on, and what they unwrap at their end."""
    found: list[PipelineStage] = []
    while True:
        if cursor.kind in _LINE_FILTERS:
            found.append(_line_filter(cursor))
        elif cursor.kind == "|":
            if unwraps and cursor.following == "unwrap":
                return tuple(found), _unwrap(cursor)
            cursor.next()
            found.append(_stage(cursor))
        else:
            return tuple(found), None


def _line_filter(cursor: Cursor) -> LineFilter:
    operator = cursor.next().kind
    patterns = [_line_pattern(cursor)]
    while cursor.accept("or"):
        patterns.append(_line_pattern(cursor))
    if operator in ("|>", "!>"):
        for _, text in patterns:
            _checked_captures(text, "", is_filter=True)
    return LineFilter(operator, tuple(patterns))


def _line_pattern(cursor: Cursor) -> tuple[str, str]:
    if cursor.kind == "ip":
        return "ip", _ip(cursor)
    return "", cursor.expect("STRING", "ip").text


def _ip(cursor: Cursor) -> str:
    cursor.expect("ip")
    cursor.expect("(")
    text = cursor.expect("STRING").text
    cursor.expect(")")
    return text


def _unwrap(cursor: Cursor) -> Unwrap:
    cursor.expect("|")
    cursor.expect("unwrap")
    conversion = ""
    if cursor.kind in CONVERSIONS:
        conversion = cursor.next().kind
        cursor.expect("(")
        label = cursor.expect("IDENTIFIER").text
        cursor.expect(")")
    else:
        if cursor.kind != "IDENTIFIER":
            raise cursor.unexpected("IDENTIFIER", *sorted(CONVERSIONS))
        label = cursor.next().text
    filters = []
    while cursor.accept("|"):
        filters.append(label_filter(cursor))
    return Unwrap(label, conversion, tuple(filters))


def _stage(cursor: Cursor) -> PipelineStage:
    match cursor.kind:
        case "json" | "logfmt":
            return _fields(cursor)
        case "unpack":
            return Parse(cursor.next().kind)
        case "regexp":
            cursor.next()
            return _regexp(cursor.expect("STRING").text)
        case "pattern":
            cursor.next()
            text = cursor.expect("STRING").text
            _checked_captures(text, "invalid pattern parser: ")
            return Parse("pattern", text)
        case "line_format":
            cursor.next()
            return LineFormat(cursor.expect("STRING").text)
        case "label_format":
            return _label_format(cursor)
        case "decolorize":
            cursor.next()
            return Decolorize()
        case "drop" | "keep":
            return _choose(cursor)
        case _:
            return label_filter(cursor)


def _fields(cursor: Cursor) -> Parse:
    kind = cursor.next().kind
    flags = set()
    while kind == "logfmt" and cursor.kind == "FUNCTION_FLAG":
        flags.add(cursor.next().text)
    wanted: list[tuple[str, str]] = []
    if cursor.kind == "IDENTIFIER":
        wanted.append(_field(cursor))
        while cursor.accept(","):
            wanted.append(_field(cursor))
    return Parse(kind, "", tuple(wanted), frozenset(flags))


def _field(cursor: Cursor) -> tuple[str, str]:
    name = cursor.expect("IDENTIFIER").text
    return (name, cursor.expect("STRING").text) if cursor.accept("=") else (name, name)


def _regexp(text: str) -> Parse:
    try:
        named = line_pattern(text).names
    except PatternError as problem:
        raise SyntaxProblem(f"invalid regexp parser: {problem}") from problem
    if not named:
        raise SyntaxProblem("invalid regexp parser: at least one named capture must be supplied")
    return Parse("regexp", text)


def _checked_captures(text: str, prefix: str, *, is_filter: bool = False) -> None:
    try:
        captures(text, is_filter=is_filter)
    except CaptureError as problem:
        raise SyntaxProblem(f"{prefix}{problem}") from problem


def _label_format(cursor: Cursor) -> LabelFormat:
    cursor.expect("label_format")
    formats: dict[str, tuple[str, str, bool]] = {}
    while True:
        name = cursor.expect("IDENTIFIER").text
        cursor.expect("=")
        source = cursor.expect("IDENTIFIER", "STRING")
        if name in formats:
            raise SyntaxProblem(f"multiple label name '{name}' not allowed in a single format operation")
        formats[name] = (name, source.text, source.kind == "IDENTIFIER")
        if not cursor.accept(","):
            return LabelFormat(tuple(formats.values()))


def _choose(cursor: Cursor) -> Choose:
    keeps = cursor.next().kind == "keep"
    labels: list[str | Matcher] = []
    while True:
        name = cursor.expect("IDENTIFIER").text
        if cursor.kind in _STRING_OPERATORS:
            operator = cursor.next().kind
            labels.append(matcher(cursor, name, operator, cursor.expect("STRING").text))
        else:
            labels.append(name)
        if not cursor.accept(","):
            return Choose(keeps, tuple(labels))


# Label filters


def label_filter(cursor: Cursor) -> LabelFilter:
    found = _all_of(cursor)
    while cursor.accept("or"):
        found = Both(found, _all_of(cursor), either=True)
    return found


def _all_of(cursor: Cursor) -> LabelFilter:
    found = _one(cursor)
    while True:
        if cursor.kind in ("and", ","):
            cursor.next()
        elif cursor.kind not in ("IDENTIFIER", "("):
            return found
        found = Both(found, _one(cursor))


def _one(cursor: Cursor) -> LabelFilter:
    if cursor.accept("("):
        inner = label_filter(cursor)
        cursor.expect(")")
        return inner
    if cursor.kind != "IDENTIFIER":
        raise cursor.unexpected()
    name = cursor.next().text
    operator = cursor.kind
    if operator not in (*_STRING_OPERATORS, *_AMOUNT_OPERATORS):
        raise cursor.unexpected()
    cursor.next()
    if operator in _STRING_OPERATORS and cursor.kind == "STRING":
        return matcher(cursor, name, operator, cursor.next().text)
    if operator in ("=", "!=") and cursor.kind == "ip":
        return Comparison("ip", name, operator, text=_ip(cursor))
    if operator in ("=~", "!~"):
        raise cursor.unexpected("STRING")
    sign = -1.0 if cursor.kind == "-" else 1.0
    if cursor.kind in ("-", "+") and cursor.following == "NUMBER":
        cursor.next()
    kind = _AMOUNTS.get(cursor.kind)
    if kind is None:
        raise cursor.unexpected()
    return Comparison(kind, name, operator, sign * cursor.next().amount)
