"""The part of JavaScript that people type into a MongoDB shell, as a tree.

A node is a tuple whose first item names its kind: `("call", function, arguments)`. What is left out (classes,
generators, regular-expression flags beyond matching, destructuring) is refused with a syntax error, never guessed.
"""

from __future__ import annotations

import re
from typing import Any

Node = tuple[Any, ...]

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z_$][\w$]*)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)
  | (?P<operator>===|!==|=>|\.\.\.|\*\*|&&|\|\||\?\?|\?\.|==|!=|<=|>=|\+\+|--|\+=|-=|\*=|/=|[-+*/%<>=!?:;,.(){}\[\]&|])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b"}
_BINARY = {
    "??": 1,
    "||": 2,
    "&&": 3,
    "==": 5,
    "!=": 5,
    "===": 5,
    "!==": 5,
    "<": 6,
    ">": 6,
    "<=": 6,
    ">=": 6,
    "in": 6,
    "instanceof": 6,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
    "**": 10,
}
_ASSIGNING = {"=", "+=", "-=", "*=", "/="}
MAX_DEPTH = 150


class ScriptSyntaxError(Exception):
    """The text is not a program; `unfinished` where more lines might make it one."""

    def __init__(self, message: str, *, unfinished: bool = False) -> None:
        super().__init__(message)
        self.unfinished = unfinished


class Token(str):
    """A piece of text, with what kind it is."""

    __slots__ = ("after_newline", "kind")
    kind: str
    after_newline: bool


def _unquoted(text: str) -> str:
    def escape(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", escape, text[1:-1], flags=re.DOTALL)


def tokens_of(text: str) -> list[Token]:
    found: list[Token] = []
    position, newline = 0, False
    while position < len(text):
        if text[position] == "/" and (not found or found[-1] in ("(", ",", ":", "[", "=", "{")):
            pattern = re.compile(r"/((?:\\.|[^/\\\n])+)/([gimsuy]*)").match(text, position)
            if pattern is not None and not text.startswith(("//", "/*"), position):
                token = Token(pattern.group())
                token.kind, token.after_newline = "regex", newline
                found.append(token)
                position, newline = pattern.end(), False
                continue
        match = _TOKEN.match(text, position)
        if match is None:
            unfinished = text[position] == "`" or text.startswith("/*", position)
            raise ScriptSyntaxError("Invalid or unexpected token", unfinished=unfinished)
        position = match.end()
        kind = match.lastgroup or ""
        if kind == "space":
            newline = newline or "\n" in match.group()
            continue
        token = Token(match.group())
        token.kind, token.after_newline = kind, newline
        newline = False
        found.append(token)
    return found


class Parser:
    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.position = 0
        self.depth = 0

    def program(self) -> list[Node]:
        statements: list[Node] = []
        while self.position < len(self.tokens):
            statements.append(self._statement())
        return statements

    # --- tokens ------------------------------------------------------------------------------------------------

    def _peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _at(self, *texts: str) -> bool:
        token = self._peek()
        return token is not None and token.kind in ("operator", "name") and str(token) in texts

    def _take(self, *texts: str) -> bool:
        if self._at(*texts):
            self.position += 1
            return True
        return False

    def _next(self) -> Token:
        token = self._peek()
        if token is None:
            raise ScriptSyntaxError("Unexpected end of input", unfinished=True)
        self.position += 1
        return token

    def _expect(self, text: str) -> None:
        token = self._next()
        if token != text or token.kind not in ("operator", "name"):
            raise ScriptSyntaxError(f"Unexpected token '{token}', expected '{text}'")

    def _name(self) -> str:
        token = self._next()
        if token.kind != "name":
            raise ScriptSyntaxError(f"Unexpected token '{token}'")
        return str(token)

    def _end(self) -> None:
        token = self._peek()
        if self._take(";") or token is None or token.after_newline or token == "}":
            return
        raise ScriptSyntaxError(f"Unexpected token '{token}'")

    # --- statements --------------------------------------------------------------------------------------------

    def _statement(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ScriptSyntaxError("too much recursion")
        try:
            return self._one_statement()
        finally:
            self.depth -= 1

    def _one_statement(self) -> Node:
        if self._take(";"):
            return ("block", [])
        if self._at("{"):
            return ("block", self._block())
        if self._at("var", "let", "const"):
            node = self._declaration()
            self._end()
            return node
        if self._take("if"):
            return self._if()
        if self._take("for"):
            return self._for()
        if self._take("while"):
            self._expect("(")
            test = self._expression()
            self._expect(")")
            return ("while", test, self._statement())
        if self._take("try"):
            return self._try()
        if self._take("throw"):
            value = self._expression()
            self._end()
            return ("throw", value)
        if self._take("return"):
            following = self._peek()
            bare = following is None or following.after_newline or following in (";", "}")
            value = ("undefined",) if bare else self._expression()
            self._end()
            return ("return", value)
        if self._take("break"):
            self._end()
            return ("break",)
        if self._take("continue"):
            self._end()
            return ("continue",)
        if self._at("function") and self._following_is_name():
            self._take("function")
            return ("declare", self._name(), self._function())
        if self._at("class", "import", "export", "switch", "do"):
            raise ScriptSyntaxError(f"Unexpected token '{self._peek()}'")
        value = self._expression()
        self._end()
        return ("expression", value)

    def _following_is_name(self) -> bool:
        after = self.tokens[self.position + 1 : self.position + 2]
        return bool(after) and after[0].kind == "name"

    def _block(self) -> list[Node]:
        self._expect("{")
        statements: list[Node] = []
        while not self._take("}"):
            statements.append(self._statement())
        return statements

    def _declaration(self) -> Node:
        self._next()
        pairs: list[tuple[str, Node]] = []
        while True:
            name = self._name()
            pairs.append((name, self._assignment() if self._take("=") else ("undefined",)))
            if not self._take(","):
                return ("var", pairs)

    def _if(self) -> Node:
        self._expect("(")
        test = self._expression()
        self._expect(")")
        then = self._statement()
        return ("if", test, then, self._statement() if self._take("else") else None)

    def _for(self) -> Node:
        self._expect("(")
        start = self.position
        if self._take("var", "let", "const") and (peeked := self._peek()) is not None and peeked.kind == "name":
            name = self._name()
            if self._at("of", "in"):
                how = str(self._next())
                over = self._expression()
                self._expect(")")
                return ("for_each", how, name, over, self._statement())
        self.position = start
        first: Node | None = None
        if not self._at(";"):
            first = self._declaration() if self._at("var", "let", "const") else ("expression", self._expression())
        self._expect(";")
        test = ("literal", True) if self._at(";") else self._expression()
        self._expect(";")
        step = None if self._at(")") else self._expression()
        self._expect(")")
        return ("for", first, test, step, self._statement())

    def _try(self) -> Node:
        body = self._block()
        name, handler, final = "", None, None
        if self._take("catch"):
            if self._take("("):
                name = self._name()
                self._expect(")")
            handler = self._block()
        if self._take("finally"):
            final = self._block()
        return ("try", body, name, handler, final)

    # --- expressions -------------------------------------------------------------------------------------------

    def _expression(self) -> Node:
        value = self._assignment()
        while self._take(","):
            value = ("comma", value, self._assignment())
        return value

    def _assignment(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ScriptSyntaxError("too much recursion")
        try:
            arrow = self._arrow()
            if arrow is not None:
                return arrow
            left = self._conditional()
            token = self._peek()
            if token is not None and token.kind == "operator" and token in _ASSIGNING:
                if left[0] not in ("name", "member"):
                    raise ScriptSyntaxError("Invalid left-hand side in assignment")
                self._next()
                right = self._assignment()
                if token != "=":
                    right = ("binary", str(token)[0], left, right)
                return ("assign", left, right)
            return left
        finally:
            self.depth -= 1

    def _arrow(self) -> Node | None:
        start = self.position
        self._take("async")
        parameters: list[str] = []
        token = self._peek()
        if token is not None and token.kind == "name":
            parameters.append(self._name())
        elif self._take("("):
            while (token := self._peek()) is not None and token.kind == "name":
                parameters.append(self._name())
                if not self._take(","):
                    break
            if not self._take(")"):
                self.position = start
                return None
        else:
            self.position = start
            return None
        if not self._take("=>"):
            self.position = start
            return None
        if self._at("{"):
            return ("function", parameters, self._block())
        return ("function", parameters, [("return", self._assignment())])

    def _conditional(self) -> Node:
        test = self._binary(0)
        if not self._take("?"):
            return test
        then = self._assignment()
        self._expect(":")
        return ("if_else", test, then, self._assignment())

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while True:
            token = self._peek()
            if token is None or token.kind not in ("operator", "name") or _BINARY.get(token, 0) <= least:
                return left
            self._next()
            left = ("binary", str(token), left, self._binary(_BINARY[token]))

    def _unary(self) -> Node:
        for word in ("!", "-", "+", "typeof", "await", "delete", "void"):
            if self._take(word):
                return ("unary", word, self._unary())
        if self._at("++", "--"):
            sign = str(self._next())[0]
            target = self._unary()
            return ("assign", target, ("binary", sign, target, ("literal", 1)))
        value = self._postfix()
        token = self._peek()
        if token is not None and token in ("++", "--") and not token.after_newline:
            self._next()
            return ("post", value, ("assign", value, ("binary", str(token)[0], value, ("literal", 1))))
        return value

    def _postfix(self) -> Node:
        if self._take("new"):
            name: Node = ("name", self._name())
            while self._take("."):
                name = ("member", name, ("literal", self._name()), False)
            value: Node = ("call", name, self._arguments() if self._at("(") else [])
        else:
            value = self._primary()
        while True:
            if self._take("."):
                value = ("member", value, ("literal", self._name()), False)
            elif self._take("?."):
                value = ("member", value, ("literal", self._name()), True)
            elif self._take("["):
                value = ("member", value, self._expression(), False)
                self._expect("]")
            elif self._at("("):
                value = ("call", value, self._arguments())
            else:
                return value

    def _arguments(self) -> list[Node]:
        self._expect("(")
        values: list[Node] = []
        while not self._take(")"):
            values.append(("spread", self._assignment()) if self._take("...") else self._assignment())
            if not self._at(")"):
                self._expect(",")
        return values

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "number":
            text = str(token)
            if text[:2] in ("0x", "0X"):
                return ("literal", int(text, 16))
            return ("literal", int(text) if text.isdigit() else float(text))
        if token.kind == "string":
            return self._template(token) if token[0] == "`" else ("literal", _unquoted(token))
        if token.kind == "regex":
            body, _, flags = str(token)[1:].rpartition("/")
            return ("regex", body, flags)
        if token.kind == "name":
            if token == "function":
                if (peeked := self._peek()) is not None and peeked.kind == "name":
                    self._next()
                return self._function()
            literals = {"true": True, "false": False, "null": None}
            return ("literal", literals[token]) if token in literals else ("name", str(token))
        if token == "(":
            value = self._expression()
            self._expect(")")
            return value
        if token == "[":
            return ("array", self._elements())
        if token == "{":
            return ("object", self._properties())
        raise ScriptSyntaxError(f"Unexpected token '{token}'")

    def _template(self, token: Token) -> Node:
        parts: list[Node] = []
        for index, piece in enumerate(re.split(r"\$\{([^}]*)\}", str(token)[1:-1])):
            if index % 2:
                parts.append(Parser(piece)._expression())
            else:
                parts.append(("literal", _unquoted(f"`{piece}`")))
        return ("template", parts)

    def _function(self) -> Node:
        self._expect("(")
        parameters: list[str] = []
        while not self._take(")"):
            parameters.append(self._name())
            self._take(",")
        return ("function", parameters, self._block())

    def _elements(self) -> list[Node]:
        values: list[Node] = []
        while not self._take("]"):
            values.append(("spread", self._assignment()) if self._take("...") else self._assignment())
            if not self._at("]"):
                self._expect(",")
        return values

    def _properties(self) -> list[tuple[Node | None, Node]]:
        pairs: list[tuple[Node | None, Node]] = []
        while not self._take("}"):
            if self._take("..."):
                pairs.append((None, self._assignment()))
            else:
                pairs.append(self._property())
            if not self._at("}"):
                self._expect(",")
        return pairs

    def _property(self) -> tuple[Node, Node]:
        token = self._next()
        if token == "[" and token.kind == "operator":
            key: Node = self._assignment()
            self._expect("]")
        elif token.kind == "string":
            key = ("literal", _unquoted(token))
        elif token.kind in ("name", "number"):
            key = ("literal", str(token))
        else:
            raise ScriptSyntaxError(f"Unexpected token '{token}'")
        if token.kind == "name" and self._at(",", "}"):
            return key, ("name", str(token))
        if token.kind == "name" and self._at("("):
            return key, self._function()
        self._expect(":")
        return key, self._assignment()


def parse(text: str) -> list[Node]:
    """The statements of a program; ScriptSyntaxError where it is none."""
    try:
        return Parser(text).program()
    except RecursionError:
        raise ScriptSyntaxError("too much recursion") from None
