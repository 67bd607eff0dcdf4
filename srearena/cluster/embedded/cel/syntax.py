"""The grammar of CEL: from text to a tree.

Trees keep the offsets that cel-go reports problems at: of an operator, of the dot of a selection, of the opening
parenthesis of a call. Macros become nodes of their own (`Fold` and `Select.test`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from srearena.cluster.embedded.cel.errors import CompileError, Issue
from srearena.cluster.embedded.cel.literals import LiteralError, literal_value

RESERVED: Final = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()
)
_MAX_DEPTH: Final = 250
"""Nesting that cel-go's parser allows."""

_TOKEN: Final = re.compile(
    r"""
    (?P<space>(?:\s|//[^\n]*)+)
  | (?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<string>(?:[bB]?[rR]|[rR]?[bB])?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
      |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
  | (?P<op>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-+*/%!?:.,<>()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_STRAY: Final = re.compile(r"(?s)[\"'][^\n]*|.")
"""What is no token: a string that does not end, or one character."""
_STARTS: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_RELATIONS: Final = {"<", "<=", ">=", ">", "==", "!=", "in"}


@dataclass(frozen=True, slots=True)
class Literal:
    value: object
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, `operand.?field` or, as a test, `has(operand.field)`."""

    operand: Node
    field: str
    at: int
    test: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator (`_+_`) with its arguments; a method has a target."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]
    at: int


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]
    at: int
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Node, Node, bool], ...]
    at: int


@dataclass(frozen=True, slots=True)
class Message:
    """`Type{field: value}`."""

    name: str
    fields: tuple[tuple[str, Node, bool], ...]
    at: int


@dataclass(frozen=True, slots=True)
class Fold:
    """A macro over the items of a list or the keys of a map: all, exists, exists_one, filter, map and their kin."""

    macro: str
    target: Node
    variables: tuple[str, ...]
    arguments: tuple[Node, ...]
    at: int


Node = Literal | Name | Select | Call | ListOf | MapOf | Message | Fold

_FOLDS: Final = {
    ("all", 2): 1,
    ("exists", 2): 1,
    ("exists_one", 2): 1,
    ("existsOne", 2): 1,
    ("filter", 2): 1,
    ("map", 2): 1,
    ("map", 3): 1,
    ("sortBy", 2): 1,
    ("all", 3): 2,
    ("exists", 3): 2,
    ("existsOne", 3): 2,
    ("exists_one", 3): 2,
    ("transformList", 3): 2,
    ("transformList", 4): 2,
    ("transformMap", 3): 2,
    ("transformMap", 4): 2,
    ("transformMapEntry", 3): 2,
    ("transformMapEntry", 4): 2,
    ("optMap", 2): 1,
    ("optFlatMap", 2): 1,
}
"""Macros of methods by name and number of arguments: how many of the arguments are variables."""


def parse(source: str) -> Node:
    """The tree of an expression."""
    return _Parser(source).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(source: str, issues: list[Issue]) -> list[_Token]:
    """The tokens of a text; what is none is left out, with an issue."""
    found, position = [], 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            stray = _STRAY.match(source, position)
            assert stray is not None
            issues.append(Issue(position, f"Syntax error: token recognition error at: '{stray[0]}'"))
            position = stray.end()
            continue
        if match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match[0], position))
        position = match.end()
    return [*found, _Token("end", "<EOF>", len(source))]


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._issues: list[Issue] = []
        self._tokens = _tokens(source, self._issues)
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        found = self._expression()
        if self._token.kind != "end":
            raise self._wrong(self._token, f"Syntax error: extraneous input '{self._token.text}' expecting <EOF>")
        if self._issues:
            raise CompileError(self._source, self._issues)
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _wrong(self, token: _Token, message: str) -> CompileError:
        return CompileError(self._source, [*self._issues, Issue(token.at, message)])

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _accept(self, *texts: str) -> _Token | None:
        if self._token.kind in ("op", "name") and self._token.text in texts:
            return self._take()
        return None

    def _expect(self, text: str) -> _Token:
        token = self._accept(text)
        if token is None:
            where = self._token
            if (text == ")" and where.kind == "end") or (text == ":" and self._starts(where)):
                raise self._wrong(where, f"Syntax error: missing '{text}' at '{where.text}'")
            raise self._wrong(where, f"Syntax error: mismatched input '{where.text}' expecting '{text}'")
        return token

    def _close(self, text: str) -> None:
        """Expect the end of a list of items."""
        where = self._token
        if self._accept(text) is None:
            message = f"Syntax error: mismatched input '{where.text}' expecting {{'{text}', ','}}"
            raise self._wrong(where, message)

    @staticmethod
    def _starts(token: _Token) -> bool:
        """Whether an expression can start with a token."""
        return token.kind not in ("op", "end", "quoted") or token.text in ("[", "{", "(", ".", "-", "!")

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._wrong(self._token, f"expression recursion limit exceeded: {_MAX_DEPTH}")
        condition = self._logical("||", self._conjunction)
        question = self._accept("?")
        if question:
            chosen = self._logical("||", self._conjunction)
            self._expect(":")
            condition = Call("_?_:_", None, (condition, chosen, self._expression()), question.at)
        self._depth -= 1
        return condition

    def _conjunction(self) -> Node:
        return self._logical("&&", self._relation)

    def _logical(self, operator: str, part: Callable[[], Node]) -> Node:
        left = part()
        while token := self._accept(operator):
            left = Call(f"_{operator}_", None, (left, part()), token.at)
        return left

    def _relation(self) -> Node:
        left = self._sum()
        while token := self._accept(*_RELATIONS):
            name = "@in" if token.text == "in" else f"_{token.text}_"
            left = Call(name, None, (left, self._sum()), token.at)
        return left

    def _sum(self) -> Node:
        left = self._product()
        while token := self._accept("+", "-"):
            left = Call(f"_{token.text}_", None, (left, self._product()), token.at)
        return left

    def _product(self) -> Node:
        left = self._unary()
        while token := self._accept("*", "/", "%"):
            left = Call(f"_{token.text}_", None, (left, self._unary()), token.at)
        return left

    def _unary(self) -> Node:
        token = self._token
        for sign in ("!", "-"):
            count = 0
            while self._accept(sign):
                count += 1
            if not count:
                continue
            if sign == "-" and count % 2 and self._token.kind in ("int", "float"):
                return self._member(self._literal(negative=token.at))
            operand = self._member(self._primary())
            return Call(f"{sign}_", None, (operand,), token.at) if count % 2 else operand
        return self._member(self._primary())

    def _literal(self, negative: int | None = None) -> Node:
        token = self._take()
        text = token.text if negative is None else f"-{token.text}"
        try:
            return Literal(literal_value(token.kind, text), token.at if negative is None else negative)
        except LiteralError as problem:
            raise self._wrong(token, str(problem)) from None

    def _member(self, operand: Node) -> Node:
        while True:
            token = self._accept(".", ".?", "[", "[?")
            if token is None:
                return operand
            if token.text in ("[", "[?"):
                index = self._expression()
                self._expect("]")
                name = "_[_]" if token.text == "[" else "_[?_]"
                operand = Call(name, None, (operand, index), token.at)
                continue
            field = self._take()
            if field.kind == "end" and token.text == ".":
                raise self._wrong(field, "Syntax error: no viable alternative at input '.'")
            if field.kind not in ("name", "quoted") or field.text in ("in", "true", "false", "null"):
                expecting = "IDENTIFIER" if token.text == ".?" else "{IDENTIFIER, ESC_IDENTIFIER}"
                raise self._wrong(field, f"Syntax error: mismatched input '{field.text}' expecting {expecting}")
            name = field.text.strip("`")
            opening = self._accept("(") if token.text == "." and field.kind == "name" else None
            if opening:
                operand = self._method(operand, name, self._arguments(")"), opening.at)
            else:
                operand = Select(operand, name, token.at, optional=token.text == ".?")

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._accept(closing):
            found.append(self._expression())
            if not self._accept(","):
                self._close(closing)
                break
        return tuple(found)

    def _primary(self) -> Node:
        token = self._token
        if token.kind in ("int", "uint", "float", "string"):
            return self._literal()
        if self._accept("("):
            found = self._expression()
            self._expect(")")
            return found
        if opening := self._accept("[", "[?"):
            return self._list(token.at, first_optional=opening.text == "[?")
        if self._accept("{"):
            return self._map(token.at)
        leading = self._accept(".")
        token = self._token
        if token.kind != "name" or token.text == "in":
            # A token too many, or one where another should be.
            surplus = token.kind != "end" and self._starts(self._tokens[self._next + 1])
            what = "extraneous" if surplus else "mismatched"
            raise self._wrong(token, f"Syntax error: {what} input '{token.text}' expecting {_STARTS}")
        self._take()
        if not leading and token.text in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[token.text], token.at)
        if token.text in RESERVED:
            raise self._wrong(token, f"reserved identifier: {token.text}")
        if self._token.text == "(" and self._token.kind == "op":
            opening = self._take()
            return self._function(token.text, self._arguments(")"), opening.at)
        return self._perhaps_message(Name(token.text, token.at))

    def _perhaps_message(self, name: Name) -> Node:
        """A qualified name before `{` is the type of a message."""
        mark, words = self._next, [name.name]
        while self._token.text == "." and self._tokens[self._next + 1].kind == "name":
            words.append(self._tokens[self._next + 1].text)
            self._next += 2
        if self._token.text != "{" or self._token.kind != "op":
            self._next = mark
            return name
        opening = self._take()
        fields: list[tuple[str, Node, bool]] = []
        while not self._accept("}"):
            optional = bool(self._accept("?"))
            field = self._take()
            if field.kind not in ("name", "quoted"):
                raise self._wrong(field, f"Syntax error: mismatched input '{field.text}' expecting IDENTIFIER")
            self._expect(":")
            fields.append((field.text.strip("`"), self._expression(), optional))
            if not self._accept(","):
                self._close("}")
                break
        return Message(".".join(words), tuple(fields), opening.at)

    def _list(self, at: int, *, first_optional: bool) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if self._accept("?") or (first_optional and not items):
                optional.add(len(items))
            items.append(self._expression())
            if not self._accept(","):
                self._close("]")
                break
        return ListOf(tuple(items), at, frozenset(optional))

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._accept("}"):
            optional = bool(self._accept("?"))
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
            if not self._accept(","):
                self._close("}")
                break
        return MapOf(tuple(entries), at)

    def _function(self, name: str, arguments: tuple[Node, ...], at: int) -> Node:
        if name == "has" and len(arguments) == 1:
            selected = arguments[0]
            if not isinstance(selected, Select) or selected.test:
                raise CompileError(self._source, [Issue(selected.at, "invalid argument to has() macro")])
            return Select(selected.operand, selected.field, at, test=True)
        return Call(name, None, arguments, at)

    def _method(self, target: Node, name: str, arguments: tuple[Node, ...], at: int) -> Node:
        variables = _FOLDS.get((name, len(arguments)))
        if variables is None:
            return Call(name, target, arguments, at)
        names = tuple(self._variable(argument) for argument in arguments[:variables])
        return Fold(name, target, names, arguments[variables:], at)

    def _variable(self, node: Node) -> str:
        if isinstance(node, Name):
            return node.name
        raise CompileError(self._source, [Issue(node.at, "argument must be a simple name")])
