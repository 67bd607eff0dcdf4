"""Go's text templates, as far as queries and rules use them: parsed into a tree and executed safely.

Actions: pipelines, variables, `if`, `with`, `range`, trimming and comments. A template has access only to its input
value and to the functions it may call. The size of its output is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from srearena.cluster.embedded.telemetry.metrics.rendering import go_float

MAX_OUTPUT = 1 << 20
_MAX_DEPTH = 50

Function = Callable[..., Any]
Functions = Mapping[str, Function]


class TemplateError(ValueError):
    """The template cannot be parsed, or fails with these values."""


_ACTION = re.compile(r"\{\{(-(?=\s))?((?:[^}\"`]|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\}(?!\}))*?)((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\]|\\.)')
    |(?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+))
    |(?P<field>\.[^\W\d]\w*)
    |(?P<variable>\$\w*)
    |(?P<name>[^\W\d]\w*)
    |(?P<mark>:=|[=|().,]))""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class _Scope:
    """State of an execution: the dot, the variables, the functions, the text so far."""

    __slots__ = ("dot", "functions", "size", "text", "variables")

    def __init__(self, dot: Any, functions: Functions) -> None:
        self.dot = dot
        self.functions = functions
        self.variables: dict[str, Any] = {"$": dot}
        self.text: list[str] = []
        self.size = 0

    def write(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_OUTPUT:
            raise TemplateError(f"the template writes more than {MAX_OUTPUT} bytes")
        self.text.append(text)


_Evaluate = Callable[[_Scope], Any]
_Execute = Callable[[_Scope], None]


class Template:
    """A parsed template; `functions` are those it may call."""

    def __init__(self, text: str, functions: Functions) -> None:
        reader = _Reader(text, functions)
        self._body = reader.block(())

    def render(self, dot: Any, functions: Functions) -> str:
        """Execute it. `functions` holds those it may call, possibly bound to the input."""
        scope = _Scope(dot, functions)
        try:
            self._body(scope)
        except TemplateError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as problem:
            raise TemplateError(str(problem)) from problem
        return "".join(scope.text)


@dataclass(slots=True)
class _Piece:
    literal: str
    action: str | None = None


def _pieces(text: str) -> Iterator[_Piece]:
    end = 0
    trims = False
    for found in _ACTION.finditer(text):
        literal = text[end : found.start()]
        if trims:
            literal = literal.lstrip()
        if found[1]:
            literal = literal.rstrip()
        trims = bool(found[3])
        end = found.end()
        yield _Piece(literal)
        inside = found[2].strip()
        if not (inside.startswith("/*") and inside.endswith("*/")):
            yield _Piece("", inside)
    rest = text[end:]
    if "{{" in rest:
        raise TemplateError("unclosed action")
    yield _Piece(rest.lstrip() if trims else rest)


class _Reader:
    def __init__(self, text: str, functions: Functions) -> None:
        self._pieces = list(_pieces(text))
        self._at = 0
        self._functions = functions
        self._depth = 0
        self.ended_by = ""

    def block(self, enders: Sequence[str]) -> _Execute:
        """Parse up to an action that begins with one of these words."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TemplateError("the template is nested too deeply")
        steps: list[_Execute] = []
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            self._at += 1
            if piece.action is None:
                if piece.literal:
                    steps.append(lambda scope, literal=piece.literal: scope.write(literal))  # type: ignore[misc]
                continue
            word = piece.action.split(maxsplit=1)[0] if piece.action else ""
            if word in ("end", "else"):
                if word not in enders:
                    raise TemplateError(f"unexpected {{{{{word}}}}}")
                self.ended_by = piece.action
                break
            steps.append(self._action(word, piece.action))
        else:
            if enders:
                raise TemplateError("unexpected EOF")
        self._depth -= 1

        def execute(scope: _Scope) -> None:
            for step in steps:
                step(scope)

        return execute

    def _action(self, word: str, text: str) -> _Execute:
        if word in ("if", "with"):
            return self._branch(word, text[len(word) :])
        if word == "range":
            return self._range(text[len(word) :])
        if word in ("template", "block", "define", "break", "continue"):
            raise TemplateError(f"{word} is not supported here")
        return _statement(text, self._functions)

    def _branch(self, word: str, text: str) -> _Execute:
        condition = _expression(text, self._functions)
        then = self.block(("else", "end"))
        otherwise: _Execute | None = None
        ended_by = self.ended_by
        if ended_by.startswith("else"):
            rest = ended_by[4:].strip()
            if rest.startswith("if"):
                otherwise = self._branch("if", rest[2:])
            else:
                otherwise = self.block(("end",))
        is_with = word == "with"

        def execute(scope: _Scope) -> None:
            value = condition(scope)
            if is_true(value):
                before = scope.dot
                if is_with:
                    scope.dot = value
                then(scope)
                scope.dot = before
            elif otherwise is not None:
                otherwise(scope)

        return execute

    def _range(self, text: str) -> _Execute:
        names, _, source = text.rpartition(":=")
        variables = [name.strip() for name in names.split(",")] if names else []
        if len(variables) > 2 or any(not name.startswith("$") for name in variables):
            raise TemplateError("range can only initialize variables")
        over = _expression(source, self._functions)
        body = self.block(("else", "end"))
        otherwise = self.block(("end",)) if self.ended_by.startswith("else") else None

        def execute(scope: _Scope) -> None:
            value = over(scope)
            pairs = list(_pairs(value))
            before = scope.dot
            for key, item in pairs:
                scope.dot = item
                for name, value in zip(reversed(variables), (item, key), strict=False):
                    scope.variables[name] = value
                body(scope)
            scope.dot = before
            if not pairs and otherwise is not None:
                otherwise(scope)

        return execute


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    if value is None:
        return iter(())
    if isinstance(value, Mapping):
        return iter(sorted(value.items()))
    if isinstance(value, list):
        return iter(enumerate(value))
    raise TemplateError(f"range can't iterate over {value}")


def _statement(text: str, functions: Functions) -> _Execute:
    found = re.match(r"(\$\w+)\s*(:?=)(?!=)", text)
    if found is not None:
        name, value = found[1], _expression(text[found.end() :], functions)

        def assign(scope: _Scope) -> None:
            scope.variables[name] = value(scope)

        return assign
    evaluate = _expression(text, functions)
    return lambda scope: scope.write(printed(evaluate(scope)))


def _expression(text: str, functions: Functions) -> _Evaluate:
    tokens = _Tokens(text)
    found = _pipeline(tokens, functions, 0)
    if tokens.kind:
        raise TemplateError(f"unexpected {tokens.text!r} in operand")
    return found


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, bool]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise TemplateError(f"unexpected {text[at:].strip()[:20]!r} in command")
            value = found[found.lastgroup]
            after_space = found.start(found.lastgroup) > at or at == 0
            self._tokens.append((found.lastgroup, value, after_space))
            at = found.end()
        self._at = 0

    @property
    def kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    @property
    def text(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    @property
    def after_space(self) -> bool:
        """Whether there is space before this token."""
        return self._tokens[self._at][2]

    def next(self) -> str:
        text = self.text
        self._at += 1
        return text


def _pipeline(tokens: _Tokens, functions: Functions, depth: int) -> _Evaluate:
    if depth > _MAX_DEPTH:
        raise TemplateError("the template is nested too deeply")
    value = _command(tokens, functions, None, depth)
    while tokens.text == "|" and tokens.kind == "mark":
        tokens.next()
        value = _command(tokens, functions, value, depth)
    return value


def _command(tokens: _Tokens, functions: Functions, piped: _Evaluate | None, depth: int) -> _Evaluate:
    name = ""
    if tokens.kind == "name" and tokens.text not in ("true", "false", "nil"):
        name = tokens.next()
        if name not in functions:
            raise TemplateError(f'function "{name}" not defined')
    operands: list[_Evaluate] = []
    while tokens.kind and tokens.text not in ("|", ")"):
        operands.append(_operand(tokens, functions, depth))
    if piped is not None:
        operands.append(piped)
    if name:
        return lambda scope: scope.functions[name](*[operand(scope) for operand in operands])
    if not operands:
        raise TemplateError("missing value for command")
    if len(operands) > 1:
        raise TemplateError("can't give argument to non-function")
    return operands[0]


def _operand(tokens: _Tokens, functions: Functions, depth: int) -> _Evaluate:
    kind = tokens.kind
    text = tokens.next()
    value: _Evaluate
    match kind:
        case "string":
            literal = _string(text)
            return lambda scope: literal
        case "number":
            amount = _number(text)
            return lambda scope: amount
        case "field":
            value = _member(lambda scope: scope.dot, text[1:])
        case "variable":
            value = _variable(text)
        case "name" if text in ("true", "false", "nil"):
            constant = {"true": True, "false": False}.get(text)
            return lambda scope: constant
        case "name":
            if text not in functions:
                raise TemplateError(f'function "{text}" not defined')
            return lambda scope: scope.functions[text]()
        case _ if text == ".":
            return lambda scope: scope.dot
        case _ if text == "(":
            value = _pipeline(tokens, functions, depth + 1)
            if tokens.next() != ")":
                raise TemplateError("unclosed left paren")
        case _:
            raise TemplateError(f"unexpected {text!r} in operand")
    while tokens.kind == "field" and not tokens.after_space:
        value = _member(value, tokens.next()[1:])
    return value


def _variable(name: str) -> _Evaluate:
    def evaluate(scope: _Scope) -> Any:
        if name not in scope.variables:
            raise TemplateError(f"undefined variable {name!r}")
        return scope.variables[name]

    return evaluate


def _member(of: _Evaluate, name: str) -> _Evaluate:
    def evaluate(scope: _Scope) -> Any:
        value = of(scope)
        if isinstance(value, Mapping):
            return value.get(name, "")
        raise TemplateError(f"can't evaluate field {name} in type {type(value).__name__}")

    return evaluate


def _string(text: str) -> Any:
    inside = text[1:-1]
    if text[0] == "`":
        return inside
    plain = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), inside)
    return ord(plain) if text[0] == "'" else plain


def _number(text: str) -> int | float:
    if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)", text):
        return int(text, 0) if "x" in text.lower() else int(text)
    return float(text)


def is_true(value: Any) -> bool:
    """Return the truth of a value in Go's templates."""
    return bool(value)


def printed(value: Any) -> str:
    """Return a value as fmt.Print writes it."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{printed(item)}" for key, item in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(printed, value)) + "]"
    return str(value)


def _float(value: float) -> str:
    if value == 0 or 1e-4 <= abs(value) < 1e21 or value in (float("inf"), float("-inf")) or value != value:
        return go_float(value)
    mantissa, _, exponent = f"{Decimal(repr(value)):e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{exponent[0]}{exponent[1:]:0>2}"
