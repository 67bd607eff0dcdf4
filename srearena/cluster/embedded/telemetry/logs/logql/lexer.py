"""The lexer of LogQL.

The kind of a token is its name in Loki's error messages: `{` is `{`, but a name is an `IDENTIFIER`. Keywords are
case-insensitive; the name of a function is a keyword only where `(`, `by` or `without` follow it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from srearena.cluster.embedded.telemetry.logs.logql.amounts import duration, prometheus_duration, size
from srearena.cluster.embedded.telemetry.logs.logql.errors import SyntaxProblem

RANGE_OPERATIONS = frozenset(
    "rate rate_counter count_over_time bytes_rate bytes_over_time avg_over_time sum_over_time min_over_time "
    "max_over_time stdvar_over_time stddev_over_time quantile_over_time first_over_time last_over_time "
    "absent_over_time".split()
)
VECTOR_OPERATIONS = frozenset("sum avg max min count stddev stdvar bottomk topk sort sort_desc approx_topk".split())
CONVERSIONS = frozenset(("bytes", "duration", "duration_seconds"))
_FUNCTIONS = RANGE_OPERATIONS | VECTOR_OPERATIONS | CONVERSIONS | {"vector", "label_replace", "ip"}
_KEYWORDS = frozenset(
    "unwrap by without bool label_replace offset on ignoring group_left group_right or and unless json regexp logfmt "
    "unpack pattern label_format line_format ip decolorize drop keep variants of".split()
)
_NO_LINE = 0
"""Loki loses count of the lines where it reads a range."""
_FLAGS = frozenset(("--strict", "--keep-empty"))
_OPERATORS = (
    "!=", "=~", "!~", "!>", "|=", "|~", "|>", "==", ">=", "<=",
    ",", ".", "{", "}", "=", "|", "(", ")", "[", "]", "+", "-", "*", "/", "%", "^", ">", "<",
)  # fmt: skip
_WORD = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<flag>--[a-zA-Z-]+)
    |(?P<name>[^\W\d]\w*)
    |(?P<operator>"""
    + "|".join(map(re.escape, _OPERATORS))
    + ")",
    re.VERBOSE,
)
_DURATION_TAIL = re.compile(r"[\d.nuµmshdwy]+")
_SIZE_TAIL = re.compile(r"[\d.BikKMGTP]+")
_CALL = re.compile(r"\s*(?:\(|(?:by|without)\s*\()", re.IGNORECASE)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\\"'])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL
)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def token_name(kind: str) -> str:
    """Return the name of a kind of token in error messages, which differs for functions."""
    if kind in CONVERSIONS:
        return f"{kind.upper()}_CONV"
    return kind.upper() if kind in _FUNCTIONS - _KEYWORDS else kind


@dataclass(frozen=True, slots=True)
class Word:
    kind: str
    text: str
    line: int
    column: int
    amount: float = 0.0
    """Of a number, a duration (seconds), a size (bytes)."""


def words(query: str) -> list[Word]:
    """Return the tokens of a query, then one of the kind `$end`."""
    return _Reader(query).read()


class _Reader:
    def __init__(self, query: str) -> None:
        self.query = query
        self.at = 0
        self.found: list[Word] = []
        self.line, self.line_start = 1, 0

    def read(self) -> list[Word]:
        while self.at < len(self.query):
            match = _WORD.match(self.query, self.at)
            if match is None:
                self._other_character()
                continue
            self._take(match)
        if not self.query:
            self.found.append(Word("$end", "", 0, 0))
        else:
            self._add("$end", "", self.at)
        return self.found

    def _add(self, kind: str, text: str, end: int, amount: float = 0.0) -> None:
        self.found.append(Word(kind, text, self.line, self.at - self.line_start + 1, amount))
        self.at = end

    def _complain(self, message: str, line: int | None = None) -> SyntaxProblem:
        """About a word that cannot be read."""
        return SyntaxProblem(message, self.line if line is None else line, self.at - self.line_start + 1)

    def _take(self, match: re.Match[str]) -> None:
        text, end = match[0], match.end()
        match match.lastgroup:
            case "space":
                for newline in re.finditer("\n", text):
                    self.line += 1
                    self.line_start = self.at + newline.end()
                self.at = end
            case "string":
                self._add("STRING", text[1:-1] if text[0] == "`" else self._unescaped(text[1:-1]), end)
            case "number":
                self._number(text, end)
            case "flag" if text in _FLAGS:
                self._add("FUNCTION_FLAG", text, end)
            case "flag":
                self._add("-", "-", self.at + 1)
            case "name":
                self._name(text, end)
            case _ if text == "[":
                self._range()
            case _:
                self._add(text, text, end)

    def _other_character(self) -> None:
        if self.query[self.at] in '"`':
            raise self._complain("literal not terminated")
        self._add("IDENTIFIER", self.query[self.at], self.at + 1)

    def _number(self, text: str, end: int) -> None:
        for kind, tail, read in (("DURATION", _DURATION_TAIL, duration), ("BYTES", _SIZE_TAIL, size)):
            rest = tail.match(self.query, end)
            if rest is not None:
                amount = read(text + rest[0])
                if amount is not None:
                    self._add(kind, text + rest[0], rest.end(), amount)
                    return
        self._add("NUMBER", text, end, float(int(text, 16)) if text[:2].lower() == "0x" else float(text))

    def _name(self, text: str, end: int) -> None:
        lower = text.lower()
        if lower in _FUNCTIONS and (_CALL.match(self.query, end) or lower in _KEYWORDS):
            is_call = _CALL.match(self.query, end) is not None
            self._add(lower if is_call else "IDENTIFIER", text, end)
        elif lower in _KEYWORDS:
            self._add(lower, text, end)
        else:
            self._add("IDENTIFIER", text, end)

    def _range(self) -> None:
        close = self.query.find("]", self.at)
        if close < 0:
            raise self._complain("missing closing ']' in duration", _NO_LINE)
        inside = self.query[self.at + 1 : close]
        seconds = prometheus_duration(inside)
        if seconds is None:
            raise self._complain(_no_duration(inside), _NO_LINE)
        self._add("RANGE", inside, close + 1, seconds)

    def _unescaped(self, text: str) -> str:
        if "\\" not in text:
            return text
        if any(found[6] is not None for found in _ESCAPE.finditer(text)):
            raise self._complain("invalid char escape")
        return _ESCAPE.sub(_plain, text)


def _plain(found: re.Match[str]) -> str:
    simple, *coded, octal, _ = found.groups()
    if simple is not None:
        return _ESCAPES.get(simple, simple)
    if octal is not None:
        return chr(int(octal, 8))
    return chr(int(next(code for code in coded if code is not None), 16))


def _no_duration(text: str) -> str:
    if not text:
        return "empty duration string"
    for amount, unit in re.findall(r"(\d*)(\D*)", text)[:-1]:
        if not amount or not unit:
            break
        if prometheus_duration(f"1{unit}") is None:
            return f"unknown unit {_quoted(unit)} in duration {_quoted(text)}"
    return f"not a valid duration string: {_quoted(text)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
