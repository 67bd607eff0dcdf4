"""A lexer of queries, with the error messages of the real server's lexer.

It is used only for queries that could not be parsed: see `parse_errors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.go_text import quoted

AGGREGATORS = frozenset(
    "avg bottomk count count_values group limitk limit_ratio max min quantile stddev stdvar sum topk".split()
)
KEYWORDS = frozenset("offset by without on ignoring group_left group_right bool".split())
WORD_OPERATORS = frozenset(("and", "or", "unless", "atan2"))
PREPROCESSORS = frozenset(("start", "end"))
_SYMBOL = re.compile(r"==|!=|<=|>=|[-+*/%^<>@]")
_WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DURATION = re.compile(r"(?:\d+(?:ms|[smhdwy]))+", re.ASCII)
_ORDERED = re.compile(r"(?:\d+y)?(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?", re.ASCII)
_ALPHANUMERIC = re.compile(r"[a-zA-Z0-9_]*", re.ASCII)
_SPACE = re.compile(r"\s*(?:#[^\n]*\s*)*")


class ParseProblem(Exception):
    """An error of a query and its position."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """identifier, number, duration, string, keyword, aggregator, operator, end; a mark is its own kind."""
    text: str
    at: int

    @property
    def description(self) -> str:
        """Return the token as messages name it."""
        match self.kind:
            case "end":
                return "end of input"
            case "keyword":
                return f"<{self.text}>"
            case "aggregator":
                return f"<aggr:{self.text}>"
            case "operator" if self.text == "@":
                return '"<Item 57385>" <op:@>'
            case "operator":
                return f"<op:{self.text}>"
            case "identifier" | "number" | "duration" | "string":
                long = self.kind != "identifier" and len(self.text) > 10
                return f"{self.kind} {quoted(self.text[:10])}..." if long else f"{self.kind} {quoted(self.text)}"
            case _:
                return quoted(self.text)


def tokens(query: str) -> Iterator[Token]:
    """Yield tokens lazily, so that an error of a later token is not reported before those of earlier ones."""
    at, depth = 0, 0
    braces = brackets = False
    while True:
        space = _SPACE.match(query, at)
        at = space.end() if space else at
        if at >= len(query):
            if braces:
                raise ParseProblem(at, "unexpected end of input inside braces")
            if brackets:
                raise ParseProblem(at, "unclosed left bracket")
            if depth:
                raise ParseProblem(at, "unclosed left parenthesis")
            yield Token("end", "", at)
            return
        token = _in_braces(query, at) if braces else _in_brackets(query, at) if brackets else _outside(query, at)
        at = token.at + len(token.text)
        match token.kind:
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if depth < 0:
                    raise ParseProblem(at, "unexpected right parenthesis ')'")
            case "{" | "}":
                braces = token.kind == "{"
            case "[" | "]":
                brackets = token.kind == "["
        yield token


def _outside(query: str, at: int) -> Token:
    char = query[at]
    following = query[at + 1 : at + 2]
    if char in "(),{[":
        return Token(char, char, at)
    if char == "=" and following != "=":
        if following == "~":
            raise ParseProblem(at, "unexpected character after '=': '~'")
        return Token("=", "=", at)
    if char == "!" and following != "=":
        raise ParseProblem(at, f"unexpected character after '!': {_character(following)}")
    if symbol := _SYMBOL.match(query, at):
        return Token("operator", symbol[0], at)
    if char.isdigit() or (char == "." and following.isdigit()):
        return _number_or_duration(query, at)
    if char in "\"'`":
        return _string(query, at)
    if word := _WORD.match(query, at):
        return _named(word[0], at)
    if char == "]":
        raise ParseProblem(at, "unexpected right bracket ']'")
    if char == "}":
        raise ParseProblem(at, "unexpected right brace '}'")
    raise ParseProblem(at, f"unexpected character: {_character(char)}")


def _named(word: str, at: int) -> Token:
    lower = word.lower()
    if lower in AGGREGATORS:
        return Token("aggregator", word, at)
    if lower in KEYWORDS:
        return Token("keyword", word, at)
    if lower in WORD_OPERATORS:
        return Token("operator", word, at)
    return Token("number" if lower in ("inf", "nan") else "identifier", word, at)


def _number_or_duration(query: str, at: int) -> Token:
    duration, number = _DURATION.match(query, at), _NUMBER.match(query, at)
    for found, kind in ((duration, "duration"), (number, "number")):
        if found is not None and not re.match(r"\w", query[found.end() : found.end() + 1]):
            return Token(kind, found[0], at)
    digits = number[0] if number else query[at]
    raise ParseProblem(at, f"bad number or duration syntax: {quoted(digits)}")


def _in_brackets(query: str, at: int) -> Token:
    char = query[at]
    opened = query[at - 1] == "["
    if char == ")" or (char in ":]" and not opened):
        return Token(char, char, at)
    if duration := _DURATION.match(query, at):
        rest = _ALPHANUMERIC.match(query, duration.end())
        if rest and rest[0]:
            raise ParseProblem(at, f"bad duration syntax: {quoted(duration[0] + rest[0][0])}")
        if not _ORDERED.fullmatch(duration[0]):
            raise ParseProblem(at, f"not a valid duration string: {quoted(duration[0])}")
        return Token("duration", duration[0], at)
    if char == "[":
        raise ParseProblem(at, "unexpected left bracket '['")
    if opened or not char.isdigit():
        raise ParseProblem(at, "missing unit character in duration")
    digits = re.match(r"\d+", query[at:])
    raise ParseProblem(at, f"bad number or duration syntax: {quoted(digits[0] if digits else char)}")


def _in_braces(query: str, at: int) -> Token:
    char = query[at]
    if char in ",}":
        return Token(char, char, at)
    if char in "\"'`":
        return _string(query, at)
    if operator := re.compile(r"=~|!~|!=|=").match(query, at):
        return Token("match", operator[0], at)
    if label := _LABEL.match(query, at):
        return Token("identifier", label[0], at)
    if char == "{":
        raise ParseProblem(at, "unexpected left brace '{'")
    if char == "!":
        raise ParseProblem(at, f"unexpected character after '!' inside braces: {_character(query[at + 1 : at + 2])}")
    raise ParseProblem(at, f"unexpected character inside braces: {_character(char)}")


def _string(query: str, at: int) -> Token:
    quote = query[at]
    form = r"`[^`]*`" if quote == "`" else rf"{quote}(?:[^{quote}\\\n]|\\.)*{quote}"
    found = re.compile(form).match(query, at)
    if found is None:
        raise ParseProblem(at, "unterminated raw string" if quote == "`" else "unterminated quoted string")
    return Token("string", found[0], at)


def _character(char: str) -> str:
    return f"'{char}'" if char else "end of input"
