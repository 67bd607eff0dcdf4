"""test, [ and expr as programs."""

from __future__ import annotations

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.posix_regex import RegexError, compile_regex
from srearena.cluster.embedded.userland.shell.conditions import ConditionError, evaluate_test
from srearena.cluster.embedded.userland.tools.options import UsageError
from srearena.cluster.embedded.userland.tools.registry import tool


@tool("test", "[")
async def test(process: Process, args: list[str]) -> int:
    if process.name == "[":
        if not args or args[-1] != "]":
            await process.error("[: missing ']'\n")
            return 2
        args = args[:-1]
    try:
        return int(not evaluate_test(process, args))
    except ConditionError as error:
        await process.error(f"{process.name}: {error.message}\n")
        return 2


class _Expr:
    """expr's grammar, by precedence: | & comparisons + - * / % : and the keywords."""

    _LEVELS = (("|",), ("&",), ("<", "<=", "=", "==", "!=", ">=", ">"), ("+", "-"), ("*", "/", "%"), (":",))

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.depth = 0

    def result(self) -> str:
        value = self._level(0)
        if self.words:
            raise UsageError(f"syntax error: unexpected argument '{self.words[0]}'")
        return value

    def _level(self, level: int) -> str:
        if level == len(self._LEVELS):
            return self._primary()
        left = self._level(level + 1)
        while self.words and self.words[0] in self._LEVELS[level]:
            operator = self.words.pop(0)
            left = self._apply(operator, left, self._level(level + 1))
        return left

    def _primary(self) -> str:
        if not self.words:
            raise UsageError("syntax error: missing argument")
        word = self.words.pop(0)
        if word == "(":
            self.depth += 1
            if self.depth > 40:
                raise UsageError("syntax error: nested too deeply")
            value = self._level(0)
            if not self.words or self.words.pop(0) != ")":
                raise UsageError("syntax error: expecting ')'")
            return value
        if word == "length" and self.words:
            return str(len(self._primary()))
        if word == "index" and len(self.words) >= 2:
            text, characters = self._primary(), self._primary()
            return str(next((i for i, char in enumerate(text, 1) if char in characters), 0))
        if word == "substr" and len(self.words) >= 3:
            text, start, count = self._primary(), self._number(self._primary()), self._number(self._primary())
            return text[start - 1 : start - 1 + count] if start > 0 and count > 0 else ""
        if word == "match" and len(self.words) >= 2:
            return self._match(self._primary(), self._primary())
        return word

    @staticmethod
    def _number(text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise UsageError("non-integer argument") from None

    @staticmethod
    def _match(text: str, pattern: str) -> str:
        try:
            regex = compile_regex(pattern)
        except RegexError as error:
            raise UsageError(str(error)) from None
        found = regex.search(text)
        if found is None or found.start != 0:
            return "" if regex.groups else "0"
        if regex.groups:
            span = found.groups[0]
            return "" if span is None else text[span[0] : span[1]]
        return str(found.end)

    def _apply(self, operator: str, left: str, right: str) -> str:
        if operator == "|":
            return left if left not in ("", "0") else right if right not in ("", "0") else "0"
        if operator == "&":
            return left if left not in ("", "0") and right not in ("", "0") else "0"
        if operator == ":":
            return self._match(left, right)
        if operator in self._LEVELS[2]:
            try:
                first: int | str = int(left)
                second: int | str = int(right)
            except ValueError:
                first, second = left, right
            order = (first > second) - (first < second)  # type: ignore[operator]
            truths = {"<": order < 0, "<=": order <= 0, "=": order == 0, "==": order == 0, "!=": order != 0}
            return str(int(truths.get(operator, order >= 0 if operator == ">=" else order > 0)))
        one, two = self._number(left), self._number(right)
        if operator in "/%" and two == 0:
            raise UsageError("division by zero")
        quotient = abs(one) // abs(two) * (1 if (one < 0) == (two < 0) else -1) if operator in "/%" else 0
        return str({"+": one + two, "-": one - two, "*": one * two, "/": quotient, "%": one - quotient * two}[operator])


@tool("expr")
async def expr(process: Process, args: list[str]) -> int:
    words = args[1:] if args[:1] == ["--"] else list(args)
    try:
        if not words:
            raise UsageError("missing operand")
        value = _Expr(words).result()
    except UsageError as error:
        await process.error(f"expr: {error.message}\n")
        return 2
    await process.write(f"{value}\n")
    return int(value in ("", "0"))
