"""Makes an awk program out of its tokens, by precedence climbing."""

from __future__ import annotations

from srearena.cluster.embedded.userland.awk.lexer import AwkError, Token, tokens_of
from srearena.cluster.embedded.userland.awk.syntax import (
    Assign,
    Binary,
    Block,
    Call,
    Contains,
    Delete,
    Element,
    Evaluate,
    Expression,
    FieldOf,
    ForIn,
    If,
    Leave,
    Number,
    Print,
    RegexLiteral,
    Rule,
    Statement,
    Step,
    Target,
    Ternary,
    Text,
    Unary,
    Variable,
    While,
)

_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "^="))
_COMPARISONS = frozenset(("<", "<=", "==", "!=", ">", ">="))
_STARTS_OPERAND = frozenset(("number", "string", "name", "function", "$", "!", "(", "-", "+", "++", "--", "regex"))
MAX_NESTING = 60


class Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens_of(text)
        self._index = 0
        self._depth = 0
        self._no_in = 0
        self._no_greater = 0

    # --- tokens ----------------------------------------------------------------------------------------------

    def _peek(self, offset: int = 0) -> Token:
        return self._tokens[min(self._index + offset, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        self._index += 1
        return token

    def _is(self, *kinds: str) -> bool:
        return self._peek().kind in kinds

    def _is_keyword(self, word: str) -> bool:
        token = self._peek()
        return token.kind == "keyword" and token.text == word

    def _expect(self, kind: str) -> Token:
        if not self._is(kind):
            shown = self._peek().text.replace("\n", "newline") or "end of file"
            raise AwkError(f"syntax error at or near {shown}")
        return self._take()

    def _skip_newlines(self) -> None:
        while self._is("newline"):
            self._take()

    def _skip_ends(self) -> None:
        while self._is("newline", ";"):
            self._take()

    # --- rules -----------------------------------------------------------------------------------------------

    def program(self) -> list[Rule]:
        rules: list[Rule] = []
        self._skip_ends()
        while not self._is("end"):
            rules.append(self._rule())
            self._skip_ends()
        return rules

    def _rule(self) -> Rule:
        if self._is_keyword("BEGIN") or self._is_keyword("END"):
            kind = self._take().text
            return Rule(kind, None, None, self._block())
        pattern = until = None
        if not self._is("{"):
            pattern = self._expression()
            if self._is(","):
                self._take()
                self._skip_newlines()
                until = self._expression()
        action = self._block() if self._is("{") else None
        return Rule("", pattern, until, action)

    def _block(self) -> Statement:
        self._enter()
        self._expect("{")
        statements: list[Statement] = []
        self._skip_ends()
        while not self._is("}"):
            statements.append(self._statement())
            self._skip_ends()
        self._take()
        self._depth -= 1
        return Block(tuple(statements))

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise AwkError("syntax error: nested too deeply")

    # --- statements ------------------------------------------------------------------------------------------

    def _statement(self) -> Statement:
        self._enter()
        try:
            if self._is("{"):
                return self._block()
            token = self._peek()
            if token.kind == "keyword" and token.text in ("if", "while", "for", "do"):
                self._take()
                return {"if": self._if, "while": self._while, "for": self._for, "do": self._do}[token.text]()
            statement = self._simple()
            if not self._is("newline", ";", "}", "end"):
                raise AwkError(f"syntax error at or near {self._peek().text}")
            return statement
        finally:
            self._depth -= 1

    def _simple(self) -> Statement:
        token = self._peek()
        if token.kind != "keyword":
            return Evaluate(self._expression())
        self._take()
        if token.text in ("print", "printf"):
            return self._print(token.text == "printf")
        if token.text == "delete":
            name = self._expect("name").text
            return Delete(name, self._subscripts() if self._is("[") else None)
        if token.text in ("next", "exit", "break", "continue"):
            bare = token.text != "exit" or self._is("newline", ";", "}", "end")
            return Leave(token.text, None if bare else self._expression())
        raise AwkError(f"syntax error at or near {token.text}")

    def _body(self) -> Statement:
        self._skip_newlines()
        if self._is(";"):
            self._take()
            return Block(())
        return self._statement()

    def _if(self) -> Statement:
        self._expect("(")
        condition = self._expression()
        self._expect(")")
        yes = self._body()
        mark = self._index
        self._skip_ends()
        if self._is_keyword("else"):
            self._take()
            return If(condition, yes, self._body())
        self._index = mark
        return If(condition, yes, None)

    def _while(self) -> Statement:
        self._expect("(")
        condition = self._expression()
        self._expect(")")
        return While(condition, self._body())

    def _do(self) -> Statement:
        body = self._body()
        self._skip_ends()
        if not self._is_keyword("while"):
            raise AwkError("syntax error: missing while")
        self._take()
        self._expect("(")
        condition = self._expression()
        self._expect(")")
        return While(condition, body, body_first=True)

    def _for(self) -> Statement:
        self._expect("(")
        third = self._peek(2)
        if self._is("name") and self._peek(1).text == "in" and third.kind == "name" and self._peek(3).kind == ")":
            name = self._take().text
            self._take()
            array = self._take().text
            self._take()
            return ForIn(name, array, self._body())
        start = None if self._is(";") else self._simple()
        self._expect(";")
        condition = None if self._is(";") else self._expression()
        self._expect(";")
        step = None if self._is(")") else self._simple()
        self._expect(")")
        loop = While(condition, self._body(), step)
        return loop if start is None else Block((start, loop))

    def _print(self, formatted: bool) -> Statement:
        arguments: list[Expression] = []
        self._no_greater += 1
        try:
            if not self._is("newline", ";", "}", "end", ">", ">>", "|"):
                arguments = self._print_arguments()
        finally:
            self._no_greater -= 1
        redirect = ""
        target = None
        if self._is(">", ">>", "|"):
            redirect = self._take().kind
            target = self._concatenation()
        if formatted and not arguments:
            raise AwkError("printf: no arguments")
        return Print(tuple(arguments), formatted, redirect, target)

    def _print_arguments(self) -> list[Expression]:
        """`print (a, b)` prints two things, `print (a) b` one."""
        if self._is("("):
            mark = self._index
            saved, self._no_greater = self._no_greater, 0
            self._take()
            grouped = self._list(")")
            self._expect(")")
            self._no_greater = saved
            if self._is("newline", ";", "}", "end", ">", ">>", "|"):
                return grouped
            self._index = mark
        return self._list("")

    def _list(self, close: str) -> list[Expression]:
        if close and self._is(close):
            return []
        items = [self._expression()]
        while self._is(","):
            self._take()
            self._skip_newlines()
            items.append(self._expression())
        return items

    # --- expressions -----------------------------------------------------------------------------------------

    def _expression(self) -> Expression:
        self._enter()
        try:
            left = self._ternary()
            if self._is(*_ASSIGNMENTS):
                operator = self._take().kind
                self._skip_newlines()
                return Assign(operator, self._target(left), self._expression())
            return left
        finally:
            self._depth -= 1

    @staticmethod
    def _target(expression: Expression) -> Target:
        if isinstance(expression, Variable | Element | FieldOf):
            return expression
        raise AwkError("syntax error: assignment to something that is no variable")

    def _ternary(self) -> Expression:
        condition = self._or()
        if not self._is("?"):
            return condition
        self._take()
        self._skip_newlines()
        yes = self._expression()
        self._skip_newlines()
        self._expect(":")
        self._skip_newlines()
        return Ternary(condition, yes, self._expression())

    def _or(self) -> Expression:
        left = self._and()
        while self._is("||"):
            self._take()
            self._skip_newlines()
            left = Binary("||", left, self._and())
        return left

    def _and(self) -> Expression:
        left = self._in()
        while self._is("&&"):
            self._take()
            self._skip_newlines()
            left = Binary("&&", left, self._in())
        return left

    def _in(self) -> Expression:
        left = self._match()
        while self._is_keyword("in") and not self._no_in:
            self._take()
            left = Contains((left,), self._expect("name").text)
        return left

    def _match(self) -> Expression:
        left = self._comparison()
        while self._is("~", "!~"):
            operator = self._take().kind
            left = Binary(operator, left, self._comparison())
        return left

    def _comparison(self) -> Expression:
        left = self._concatenation()
        if self._is(*_COMPARISONS) and not (self._no_greater and self._is(">")):
            operator = self._take().kind
            return Binary(operator, left, self._concatenation())
        return left

    def _concatenation(self) -> Expression:
        left = self._additive()
        while self._is(*_STARTS_OPERAND) and not self._is("+", "-"):
            left = Binary(" ", left, self._additive())
        return left

    def _additive(self) -> Expression:
        left = self._multiplicative()
        while self._is("+", "-"):
            operator = self._take().kind
            left = Binary(operator, left, self._multiplicative())
        return left

    def _multiplicative(self) -> Expression:
        left = self._unary()
        while self._is("*", "/", "%"):
            operator = self._take().kind
            left = Binary(operator, left, self._unary())
        return left

    def _unary(self) -> Expression:
        if self._is("!", "-", "+"):
            self._enter()
            operator = self._take().kind
            operand = self._unary()
            self._depth -= 1
            return Unary(operator, operand)
        return self._power()

    def _power(self) -> Expression:
        base = self._postfix()
        if self._is("^"):
            self._enter()
            self._take()
            exponent = self._unary()
            self._depth -= 1
            return Binary("^", base, exponent)
        return base

    def _postfix(self) -> Expression:
        operand = self._primary()
        if self._is("++", "--") and isinstance(operand, Variable | Element | FieldOf):
            return Step(operand, 1 if self._take().kind == "++" else -1, before=False)
        return operand

    def _primary(self) -> Expression:
        token = self._take()
        match token.kind:
            case "number":
                return Number(float(int(token.text, 16)) if token.text.lower().startswith("0x") else float(token.text))
            case "string":
                return Text(token.text)
            case "regex":
                return RegexLiteral(token.text)
            case "name":
                return Element(token.text, self._subscripts()) if self._is("[") else Variable(token.text)
            case "$":
                self._enter()
                number = Step(self._target(self._primary()), 1, before=True) if self._took("++") else self._primary()
                self._depth -= 1
                return FieldOf(number)
            case "++" | "--":
                return Step(self._target(self._primary()), 1 if token.kind == "++" else -1, before=True)
            case "-" | "+" | "!":
                self._enter()
                operand = self._unary()
                self._depth -= 1
                return Unary(token.kind, operand)
            case "(":
                return self._parenthesis()
            case "function":
                return self._call(token)
        shown = token.text.replace("\n", "newline") or "end of file"
        raise AwkError(f"syntax error at or near {shown}")

    def _took(self, kind: str) -> bool:
        if self._is(kind):
            self._take()
            return True
        return False

    def _parenthesis(self) -> Expression:
        saved = self._no_greater, self._no_in
        self._no_greater = self._no_in = 0
        items = self._list(")")
        self._expect(")")
        self._no_greater, self._no_in = saved
        if self._is_keyword("in") and len(items) > 1:
            self._take()
            return Contains(tuple(items), self._expect("name").text)
        if len(items) != 1:
            raise AwkError("syntax error at or near ,")
        return items[0]

    def _call(self, token: Token) -> Expression:
        if not self._is("("):
            if token.text == "length":
                return Call("length", ())
            raise AwkError(f"syntax error at or near {token.text}")
        self._take()
        saved = self._no_greater, self._no_in
        self._no_greater = self._no_in = 0
        arguments = self._list(")")
        self._expect(")")
        self._no_greater, self._no_in = saved
        return Call(token.text, tuple(arguments))

    def _subscripts(self) -> tuple[Expression, ...]:
        self._expect("[")
        saved, self._no_greater = self._no_greater, 0
        items = self._list("]")
        self._no_greater = saved
        self._expect("]")
        return tuple(items)
