"""The templates of alert labels and annotations: a safe part of Go's template language.

Understood are `{{ $labels.name }}`, `{{ $value }}`, calls and pipelines of the functions below, `if`, `else` and
`end`. Whatever else a template holds is refused when the rule file is read, so that a rule never fails over it later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.go_text import float_text
from srearena.cluster.embedded.telemetry.alerts import humanized
from srearena.cluster.embedded.telemetry.metrics.matchers import PatternError, anchored

Value = str | float | bool

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"\s*(?:(?P<label>(?:\$labels|\.Labels)\.(?P<name>\w+))|(?P<value>\$value|\.Value)\b|(?P<map>\$labels|\.Labels)\b"
    r'|(?P<text>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[A-Za-z]\w*)|(?P<mark>[|()]))'
)
_VERB = re.compile(r"%(?:%|([-+ 0#]*)(\d*)(?:\.(\d+))?([a-zA-Z]))")


class TemplateError(ValueError):
    """The template uses what is not understood here."""


@dataclass(frozen=True, slots=True)
class Context:
    labels: Mapping[str, str]
    value: float


Expression = Callable[[Context], Value]
Part = Callable[[Context], str]


def _number(value: Value) -> float:
    return float(value)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else value


def _printf(*arguments: Value) -> str:
    """Go's Sprintf for the verbs that make sense of a text or a number."""
    form, rest = _text(arguments[0]), list(arguments[1:])

    def verb(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        flags, width, precision, kind = found.groups()
        if not rest:
            return f"%!{kind}(MISSING)"
        value = rest.pop(0)
        if kind in "vs" or (kind == "q" and isinstance(value, str)):
            shown = _text(value)
            return f"{f'{chr(34)}{shown}{chr(34)}' if kind == 'q' else shown:{'' if '-' in flags else '>'}{width}}"
        if kind in "feg" and not isinstance(value, str):
            return f"{_number(value):{flags.replace('-', '<')}{width}.{precision or 6}{kind}}"
        if kind == "d" and not isinstance(value, str):
            return f"{int(value):{flags.replace('-', '<')}{width}d}"
        return f"%!{kind}({_text(value)})"

    return _VERB.sub(verb, form)


def _replaced(expression: Value, replacement: Value, text: Value) -> str:
    """reReplaceAll, for expressions that match the whole text."""
    try:
        found = anchored(_text(expression)).search(_text(text))
    except PatternError:
        return _text(text)
    if found is None:
        return _text(text)
    groups = found.groups
    return re.sub(r"\$\{?(\d+)\}?", lambda m: groups[int(m[1])] if int(m[1]) < len(groups) else "", _text(replacement))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "humanize": lambda value: humanized.humanize(_number(value)),
    "humanize1024": lambda value: humanized.humanize_1024(_number(value)),
    "humanizePercentage": lambda value: humanized.humanize_percentage(_number(value)),
    "humanizeDuration": lambda value: humanized.humanize_duration(_number(value)),
    "humanizeTimestamp": lambda value: humanized.humanize_timestamp(_number(value)),
    "printf": _printf,
    "print": lambda *values: "".join(map(_text, values)),
    "toUpper": lambda value: _text(value).upper(),
    "toLower": lambda value: _text(value).lower(),
    "title": lambda value: _text(value).title(),
    "stripPort": lambda value: re.sub(r":\d+$", "", _text(value)),
    "reReplaceAll": _replaced,
    "eq": lambda first, *others: any(first == other for other in others),
    "ne": lambda first, second: first != second,
    "lt": lambda first, second: first < second,
    "le": lambda first, second: first <= second,
    "gt": lambda first, second: first > second,
    "ge": lambda first, second: first >= second,
    "not": lambda value: not value,
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "or": lambda *values: next((value for value in values if value), values[-1]),
}


class Template:
    """A text with actions in it, read once, filled in often."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.uses_value = "$value" in source or ".Value" in source
        self._parts = _Reader(source).block(())[0]

    def filled(self, labels: Mapping[str, str], value: float) -> str:
        context = Context(labels, value)
        try:
            return "".join(part(context) for part in self._parts)
        except (ValueError, TypeError) as error:
            return f"<error expanding template: {error}>"


class _Reader:
    def __init__(self, source: str) -> None:
        self._pieces: list[tuple[str, str]] = []
        at = 0
        trim = False
        for action in _ACTION.finditer(source):
            text = source[at : action.start()]
            text = text.lstrip() if trim else text
            self._pieces.append(("text", text.rstrip() if action[1] else text))
            self._pieces.append(("action", action[2]))
            at, trim = action.end(), bool(action[3])
        rest = source[at:]
        if "{{" in rest:
            raise TemplateError("unclosed action")
        self._pieces.append(("text", rest.lstrip() if trim else rest))

    def block(self, ends: Sequence[str]) -> tuple[list[Part], str]:
        """Parts up to one of some closing words, and the word."""
        parts: list[Part] = []
        while self._pieces:
            kind, text = self._pieces.pop(0)
            if kind == "text":
                parts.append(_constant(text))
            elif text in ends:
                return parts, text
            elif text.startswith("if "):
                parts.append(self._conditional(text[3:]))
            elif text in ("end", "else") or text.split(" ")[0] in ("range", "with", "define", "template", "block"):
                raise TemplateError(f"unexpected or unsupported {{{{ {text} }}}}")
            elif not text.startswith("/*"):
                parts.append(_printed(expression(text)))
        if ends:
            raise TemplateError("unexpected EOF")
        return parts, ""

    def _conditional(self, text: str) -> Part:
        condition = expression(text)
        then, closed = self.block(("else", "end"))
        otherwise: list[Part] = self.block(("end",))[0] if closed == "else" else []

        def part(context: Context) -> str:
            return "".join(each(context) for each in (then if condition(context) else otherwise))

        return part


def _constant(text: str) -> Part:
    return lambda context: text


def _printed(inner: Expression) -> Part:
    return lambda context: _text(inner(context))


def expression(source: str) -> Expression:
    """A pipeline: operands and calls, each result the last argument of the next."""
    tokens: list[re.Match[str]] = []
    at = 0
    while source[at:].strip():
        token = _TOKEN.match(source, at)
        if token is None:
            raise TemplateError(f"cannot read {source[at:].strip()!r}")
        tokens.append(token)
        at = token.end()
    result = _pipeline(tokens)
    if tokens:
        raise TemplateError(f"unexpected {tokens[0][0].strip()!r} in {source!r}")
    return result


def _pipeline(tokens: list[re.Match[str]]) -> Expression:
    result = _command(tokens, ())
    while tokens and tokens[0]["mark"] == "|":
        tokens.pop(0)
        result = _command(tokens, (result,))
    return result


def _command(tokens: list[re.Match[str]], piped: tuple[Expression, ...]) -> Expression:
    if not tokens:
        raise TemplateError("missing value for command")
    word = tokens[0]["word"]
    if word is None or word in ("true", "false"):
        if piped:
            raise TemplateError(f"{tokens[0][0].strip()!r} is not a function")
        return _operand(tokens)
    tokens.pop(0)
    if word == "index" and len(tokens) >= 2 and tokens[0]["map"]:
        tokens.pop(0)
        key = _operand(tokens)
        return lambda context: context.labels.get(_text(key(context)), "")
    function = _FUNCTIONS.get(word)
    if function is None:
        raise TemplateError(f"function {word!r} not defined")
    arguments: list[Expression] = []
    while tokens and tokens[0]["mark"] not in ("|", ")"):
        arguments.append(_operand(tokens))
    arguments += piped
    if not arguments:
        raise TemplateError(f"function {word!r} needs an argument")
    return lambda context: function(*(argument(context) for argument in arguments))


def _operand(tokens: list[re.Match[str]]) -> Expression:
    token = tokens.pop(0)
    if token["label"]:
        name = token["name"]
        return lambda context: context.labels.get(name, "")
    if token["value"]:
        return lambda context: context.value
    if token["text"]:
        text = token["text"][1:-1]
        shown = text if token["text"].startswith("`") else re.sub(r"\\(.)", _unescaped, text)
        return lambda context: shown
    if token["number"]:
        number = float(token["number"])
        return lambda context: number
    if token["word"] in ("true", "false"):
        truth = token["word"] == "true"
        return lambda context: truth
    if token["mark"] == "(":
        inner = _pipeline(tokens)
        if not tokens or tokens.pop(0)["mark"] != ")":
            raise TemplateError("unclosed left paren")
        return inner
    raise TemplateError(f"unexpected {token[0].strip()!r} as operand")


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t"}.get(found[1], found[1])
