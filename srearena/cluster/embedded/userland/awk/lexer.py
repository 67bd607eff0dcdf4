"""Tokens of an awk program. A slash is a division or begins a regular expression, depending on what came before."""

from __future__ import annotations

import re
from dataclasses import dataclass

KEYWORDS = frozenset(
    (
        *("BEGIN", "END", "if", "else", "while", "for", "do", "in", "print", "printf", "next", "exit"),
        *("break", "continue", "delete", "getline", "function"),
    )
)
FUNCTIONS = frozenset(
    (
        *("length", "substr", "index", "split", "sub", "gsub", "match", "sprintf", "toupper", "tolower", "int", "sqrt"),
        *("exp", "log", "sin", "cos", "atan2", "rand", "srand", "system", "close", "fflush", "systime", "strftime"),
    )
)


class AwkError(Exception):
    """The program makes no sense, or did something impossible."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """number, string, regex, name, function, keyword, newline, end, or the operator itself."""
    text: str


_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPERATORS = (
    *("**=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "<=", ">=", "!=", "!~", ">>", "**"),
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "^",
        "!",
        "<",
        ">",
        "|",
        "?",
        ":",
        "~",
        "$",
        "=",
    ),
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "/": "/", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_BEFORE_DIVISION = frozenset(("number", "string", "name", "function", ")", "]", "$", "++", "--"))


def unescaped(text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        body = found.group(1)
        if body[0] in "01234567":
            return chr(int(body, 8) & 0xFF)
        return _ESCAPES.get(body, found.group(0))

    return re.sub(r"\\([0-7]{1,3}|.)", replace, text, flags=re.DOTALL)


def tokens_of(text: str) -> list[Token]:
    result: list[Token] = []
    position = 0
    while position < len(text):
        char = text[position]
        previous = result[-1].kind if result else ""
        if char in " \t\r":
            position += 1
        elif text.startswith("\\\n", position):
            position += 2
        elif char == "#":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif char == "\n":
            result.append(Token("newline", char))
            position += 1
        elif char == '"':
            found = re.compile(r'"((?:[^"\\\n]|\\.)*)"', re.DOTALL).match(text, position)
            if found is None:
                raise AwkError(f"runaway string constant {text[position : position + 20]} ...")
            result.append(Token("string", unescaped(found.group(1))))
            position = found.end()
        elif char == "/" and previous not in _BEFORE_DIVISION:
            found = re.compile(r"/((?:[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]*\])*)/").match(text, position)
            if found is None:
                raise AwkError("runaway regular expression")
            result.append(Token("regex", found.group(1).replace("\\/", "/")))
            position = found.end()
        elif (number := _NUMBER.match(text, position)) is not None:
            result.append(Token("number", number.group()))
            position = number.end()
        elif (name := _NAME.match(text, position)) is not None:
            position = name.end()
            word = name.group()
            kind = "keyword" if word in KEYWORDS else "function" if word in FUNCTIONS else "name"
            result.append(Token(kind, word))
        else:
            operator = next((o for o in _OPERATORS if text.startswith(o, position)), None)
            if operator is None:
                raise AwkError(f"syntax error at or near {char}")
            canonical = {"**": "^", "**=": "^="}.get(operator, operator)
            result.append(Token(canonical, canonical))
            position += len(operator)
    result.append(Token("end", ""))
    return result
