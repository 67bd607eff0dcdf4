"""A lexer of queries, with the error messages of the real server's lexer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.go_text import quoted

AGGREGATORS = frozenset(
    "avg bottomk count count_values group limitk limit_ratio max min quantile stddev stdvar sum topk".split()
)
KEYWORDS = frozenset(
    "offset by without on ignoring group_left group_right bool anchored smoothed fill fill_left fill_right".split()
)
WORD_OPERATORS = frozenset(("and", "or", "unless", "atan2"))
PREPROCESSORS = frozenset(("start", "end", "step", "range", "max_of", "min_of"))
"""Words with a meaning after @ and in durations; elsewhere they are functions or metric names."""
_DURATION_WORDS = frozenset(("step", "range", "max_of", "min_of"))
_FILLS = frozenset(("fill", "fill_left", "fill_right"))
_SYMBOL = re.compile(r"==|!=|<=|>=|</|>/|[-+*/%^<>@]")
_WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_NUMBER = re.compile(
    r"0[xX]_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|(?:\d+(?:_\d+)*\.?\d*(?:_\d+)*|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?",
    re.ASCII,
)
_DURATION = re.compile(r"\d+[smhdwy]s?(?:\d+[smhdw]s?)*", re.ASCII)
_SPACE = re.compile(r"[ \t\r\n]*(?:#[^\r\n]*[ \t\r\n]*)*")
_PLAIN_SPACE = re.compile(r"[ \t\r\n]*")
_MATCH_OPERATOR = re.compile(r"=~|!~|!=|=")
_STRING_FORMS = {
    "`": re.compile(r"`[^`]*`"),
    '"': re.compile(r'"(?:[^"\\\n]|\\[^\n])*"'),
    "'": re.compile(r"'(?:[^'\\\n]|\\[^\n])*'"),
}
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\\"'])|([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class ParseProblem(Exception):
    """An error of a query and its position."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """identifier, number, duration, string, keyword, aggregator, operator, word (a preprocessor), match, end; a mark
    is its own kind."""
    text: str
    at: int

    @property
    def end(self) -> int:
        return self.at + len(self.text)

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
            case "operator":
                return f"<op:{self.text}>"
            case "match":
                return quoted(self.text) if self.text == "=" else f"<op:{self.text}>"
            case "identifier" if ":" in self.text:
                return f"metric identifier {quoted(self.text)}"
            case "identifier" | "number" | "duration" | "string":
                long = self.kind != "identifier" and len(self.text) > 10
                return f"{self.kind} {quoted(self.text[:10])}..." if long else f"{self.kind} {quoted(self.text)}"
            case _:
                return quoted(self.text)


def tokens(query: str) -> Iterator[Token]:
    """Yield tokens lazily, so that an error of a later token is not reported before those of earlier ones."""
    at, depth = 0, 0
    braces = brackets = duration_state = got_colon = got_duration = False
    while True:
        at = (_PLAIN_SPACE if duration_state else _SPACE).match(query, at).end()  # type: ignore[union-attr]
        if at >= len(query):
            if braces:
                raise ParseProblem(at, "unexpected end of input inside braces")
            if duration_state:
                raise ParseProblem(at, "unexpected end of input in duration expression")
            if depth:
                raise ParseProblem(at, "unclosed left parenthesis")
            if brackets:
                raise ParseProblem(at, "unclosed left bracket")
            yield Token("end", "", at)
            return
        if braces:
            token = _in_braces(query, at)
        elif duration_state:
            token = _in_duration(query, at)
        elif brackets and (query[at].isalpha() or query[at] in "_:"):
            token = _in_brackets(query, at)
        else:
            token = _outside(query, at)
        at = token.end
        match token.kind:
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if depth < 0:
                    raise ParseProblem(at, "unexpected right parenthesis ')'")
            case "{" | "}":
                braces = token.kind == "{"
            case "[":
                if brackets:
                    raise ParseProblem(at - 1, "unexpected left bracket '['")
                brackets, duration_state, got_colon = True, True, False
            case "]":
                if not brackets:
                    raise ParseProblem(at - 1, "unexpected right bracket ']'")
                brackets = duration_state = False
            case ":":
                if duration_state and not got_duration:
                    raise ParseProblem(at, "unexpected colon before duration in duration expression")
                if got_colon:
                    if duration_state:
                        raise ParseProblem(at, "unexpected repeated colon in duration expression")
                    raise ParseProblem(at - 1, "unexpected colon ':'")
                got_colon = True
            case "number" | "duration" if brackets:
                # As in the real lexer: after the first number, brackets are read like the rest of the query.
                got_duration = got_duration or duration_state
                duration_state = False
        yield token


def _outside(query: str, at: int) -> Token:
    char = query[at]
    following = query[at + 1 : at + 2]
    if char in "(),{[]":
        return Token(char, char, at)
    if char == "=" and following != "=":
        if following == "~":
            raise ParseProblem(at, "unexpected character after '=': '~'")
        return Token("=", "=", at)
    if char == "!" and following != "=":
        raise ParseProblem(at, f"unexpected character after '!': {_character(following)}")
    if symbol := _SYMBOL.match(query, at):
        return Token("operator", symbol[0], at)
    if char in "0123456789" or (char == "." and following.isdigit()):
        return _number_or_duration(query, at)
    if char in "\"'`":
        return _string(query, at)
    if word := _WORD.match(query, at):
        return _named(query, word[0], at)
    raise ParseProblem(at, f"unexpected character: {_character(char)}")


def _named(query: str, word: str, at: int) -> Token:
    lower = word.lower()
    if lower in AGGREGATORS:
        return Token("aggregator", word, at)
    if lower in KEYWORDS:
        if lower in _FILLS and not re.match(r"[ \t\r\n]*\(", query[at + len(word) :]):
            return Token("identifier", word, at)
        return Token("keyword", word, at)
    if lower in WORD_OPERATORS:
        return Token("operator", word, at)
    if lower in PREPROCESSORS:
        return Token("word", word, at)
    return Token("number" if lower in ("inf", "nan") else "identifier", word, at)


def _number_or_duration(query: str, at: int) -> Token:
    number, duration = _NUMBER.match(query, at), _DURATION.match(query, at)
    for found, kind in ((number, "number"), (duration, "duration")):
        if found is not None and not re.match(r"[\w.]", query[found.end() : found.end() + 1], re.ASCII):
            return Token(kind, found[0], at)
    read = max((found[0] for found in (number, duration) if found is not None), key=len, default=query[at])
    following = query[at + len(read) : at + len(read) + 1]
    shown = read + following if duration is not None or following in ("_", ".", "e", "E") else read
    raise ParseProblem(at, f"bad number or duration syntax: {quoted(shown)}")


def _in_duration(query: str, at: int) -> Token:
    """A token right after the opening bracket, before the first number."""
    char = query[at]
    if char in "]:(),":
        return Token(char, char, at)
    if char in "+-*/%^":
        return Token("operator", char, at)
    if word := re.compile("[a-zA-Z_]+").match(query, at):
        if word[0].lower() in _DURATION_WORDS:
            return Token("word", word[0], at)
    elif char in "0123456789" or (char == "." and query[at + 1 : at + 2].isdigit()):
        return _number_or_duration(query, at)
    raise ParseProblem(at, f"unexpected character in duration expression: {_character(char)}")


def _in_brackets(query: str, at: int) -> Token:
    """A word or colon after the first number in brackets."""
    if query[at] == ":":
        return Token(":", ":", at)
    word = re.compile("[a-zA-Z_]+").match(query, at)
    if word is not None and word[0].lower() in _DURATION_WORDS:
        return Token("word", word[0], at)
    raise ParseProblem(at, f"unexpected character: {_character(query[at])}, expected ':'")


def _in_braces(query: str, at: int) -> Token:
    char = query[at]
    if char in ",}":
        return Token(char, char, at)
    if char in "\"'`":
        return _string(query, at)
    if operator := _MATCH_OPERATOR.match(query, at):
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
    found = _STRING_FORMS[quote].match(query, at)
    if found is None:
        raise ParseProblem(at, "unterminated raw string" if quote == "`" else "unterminated quoted string")
    return Token("string", found[0], at)


def unquoted(token: Token) -> str:
    """Return the value of a string token."""
    quote, inner = token.text[0], token.text[1:-1]
    if quote == "`" or "\\" not in inner:
        return inner

    def replaced(found: re.Match[str]) -> str:
        control, octal, byte, short, long, unknown = found.groups()
        if control is not None and (control not in "\"'" or control == quote):
            return _CONTROL.get(control, control)
        if octal is not None or byte is not None:
            number = int(octal, 8) if octal is not None else int(byte, 16)
            return chr(number) if number < 0x80 else chr(0xDC00 + number)  # a byte, perhaps a part of a character
        for digits in (short, long):
            if digits is not None:
                return chr(int(digits, 16))
        bad = unknown or control or ""
        raise ParseProblem(token.at, f"unknown escape sequence U+{ord(bad):04X} '{bad}'")

    return _ESCAPE.sub(replaced, inner).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _character(char: str) -> str:
    return f"'{char}'" if char else "end of input"
