"""Conditions: `test` and `[` on plain arguments, `[[ ]]` on words with patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.files.inodes import Device, Symlink
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland import glob_patterns
from srearena.cluster.embedded.userland.posix_regex import RegexError, compile_regex
from srearena.cluster.embedded.userland.shell.syntax import Word

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


class ConditionError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


_UNARY = frozenset(f"-{letter}" for letter in "bcdefghkLnoprsStuvwxzOGN")
_BINARY = frozenset(("=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"))
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


def _integer(text: str, *, extended: bool) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise ConditionError(
            f"{text}: integer expression expected" if extended else f"Illegal number: {text}"
        ) from None


def unary(process: Process, operator: str, operand: str) -> bool:
    files = process.files
    match operator:
        case "-n":
            return operand != ""
        case "-z":
            return operand == ""
        case "-t":
            file = process.fds.get(int(operand)) if operand.isdigit() else None
            return file is not None and file.is_tty
        case "-r" | "-w" | "-x":
            return files.may(operand, {"-r": 4, "-w": 2, "-x": 1}[operator])
        case "-L" | "-h":
            return files.exists(operand, follow=False) and isinstance(files.stat(operand, follow=False).node, Symlink)
        case "-v" | "-o":
            return False
    if not files.exists(operand):
        return False
    found = files.stat(operand)
    match operator:
        case "-e":
            return True
        case "-f":
            return found.is_file
        case "-d":
            return found.is_dir
        case "-s":
            return found.size > 0
        case "-c":
            return isinstance(found.node, Device)
        case "-u" | "-g" | "-k":
            return bool(found.node.mode & {"-u": 0o4000, "-g": 0o2000, "-k": 0o1000}[operator])
        case "-O":
            return found.node.uid == process.credentials.uid
        case "-G":
            return found.node.gid == process.credentials.gid
    return False


def binary(process: Process, left: str, operator: str, right: str, *, extended: bool) -> bool:
    if operator in ("=", "=="):
        return left == right
    if operator == "!=":
        return left != right
    if operator == "<":
        return left < right
    if operator == ">":
        return left > right
    if operator in _COMPARISONS:
        return _COMPARISONS[operator](_integer(left, extended=extended), _integer(right, extended=extended))
    files = process.files
    first = files.stat(left) if files.exists(left) else None
    second = files.stat(right) if files.exists(right) else None
    if operator == "-ef":
        return first is not None and second is not None and first.node is second.node
    if operator == "-ot":
        first, second = second, first
    return first is not None and (second is None or first.node.mtime > second.node.mtime)


class _Test:
    """The grammar of `test`: -o binds weaker than -a, ! strongest; with few arguments their number decides."""

    def __init__(self, process: Process, args: list[str], extended: bool) -> None:
        self.process = process
        self.args = args
        self.extended = extended
        self.index = 0
        self.depth = 0

    def result(self) -> bool:
        args = self.args
        if len(args) == 0:
            return False
        if len(args) == 1:
            return args[0] != ""
        if len(args) == 3 and self._is_binary(args[1]):
            return self._compare(*args)
        if len(args) == 4 and args[0] == "!" and self._is_binary(args[2]):
            return not self._compare(*args[1:])
        value = self._or()
        if self.index < len(args):
            raise ConditionError("too many arguments" if self.extended else f"{args[self.index]}: unexpected operator")
        return value

    def _is_binary(self, text: str) -> bool:
        return text in _BINARY and (text != "==" or self.extended)

    def _compare(self, left: str, operator: str, right: str) -> bool:
        return binary(self.process, left, operator, right, extended=self.extended)

    def _peek(self, offset: int = 0) -> str | None:
        index = self.index + offset
        return self.args[index] if index < len(self.args) else None

    def _or(self) -> bool:
        value = self._and()
        while self._peek() == "-o":
            self.index += 1
            right = self._and()
            value = value or right
        return value

    def _and(self) -> bool:
        value = self._not()
        while self._peek() == "-a":
            self.index += 1
            right = self._not()
            value = value and right
        return value

    def _not(self) -> bool:
        negated = False
        while self._peek() == "!" and self._peek(1) is not None:
            self.index += 1
            negated = not negated
        return self._primary() is not negated

    def _primary(self) -> bool:
        word = self._peek()
        if word is None:
            raise ConditionError("argument expected")
        following = self._peek(1)
        if following is not None and self._is_binary(following) and self._peek(2) is not None:
            right = self._peek(2) or ""
            self.index += 3
            return self._compare(word, following, right)
        if word == "(" and following is not None:
            self.depth += 1
            if self.depth > 40:
                raise ConditionError("too many arguments")
            self.index += 1
            value = self._or()
            if self._peek() != ")":
                raise ConditionError("closing paren expected")
            self.index += 1
            return value
        if word in _UNARY and following is not None:
            self.index += 2
            return unary(self.process, word, following)
        self.index += 1
        if following is not None and following not in ("-a", "-o", ")") and self.index < len(self.args):
            message = f"{word}: unexpected operator" if not self.extended else f"{following}: unknown operand"
            raise ConditionError(message)
        return word != ""


def evaluate_test(process: Process, args: list[str], *, extended: bool = True) -> bool:
    return _Test(process, args, extended).result()


class _Conditional:
    """`[[ ... ]]`: && || ! ( ), patterns on the right of = and regular expressions on the right of =~."""

    def __init__(self, shell: Shell, words: tuple[Word, ...]) -> None:
        self.shell = shell
        self.words = words
        self.index = 0
        self.skipping = 0

    def _peek(self, offset: int = 0) -> Word | None:
        index = self.index + offset
        return self.words[index] if index < len(self.words) else None

    def _literal(self, offset: int = 0) -> str | None:
        word = self._peek(offset)
        return None if word is None else word.literal

    async def result(self) -> bool:
        if not self.words:
            raise ConditionError("syntax error near `]]'")
        value = await self._or()
        if self.index < len(self.words):
            raise ConditionError("syntax error in conditional expression")
        return value

    async def _or(self) -> bool:
        value = await self._and()
        while self._literal() == "||":
            self.index += 1
            self.skipping += value
            right = await self._and()
            self.skipping -= value
            value = value or right
        return value

    async def _and(self) -> bool:
        value = await self._not()
        while self._literal() == "&&":
            self.index += 1
            self.skipping += not value
            right = await self._not()
            self.skipping -= not value
            value = value and right
        return value

    async def _not(self) -> bool:
        negated = False
        while self._literal() == "!":
            self.index += 1
            negated = not negated
        return await self._primary() is not negated

    async def _primary(self) -> bool:
        word = self._peek()
        if word is None:
            raise ConditionError("syntax error in conditional expression")
        if word.literal == "(":
            self.index += 1
            value = await self._or()
            if self._literal() != ")":
                raise ConditionError("expected `)'")
            self.index += 1
            return value
        operator = self._literal(1)
        right = self._peek(2)
        if operator is not None and (operator in _BINARY or operator == "=~") and right is not None:
            self.index += 3
            return await self._compare(word, operator, right)
        operand = self._peek(1)
        if word.literal in _UNARY and operand is not None:
            self.index += 2
            if self.skipping:
                return False
            text = await self.shell.expander.text(operand)
            if word.literal == "-v":
                return self.shell.variables.get(text) is not None
            return unary(self.shell.process, word.literal or "", text)
        self.index += 1
        return not self.skipping and await self.shell.expander.text(word) != ""

    async def _compare(self, left: Word, operator: str, right: Word) -> bool:
        if self.skipping:
            return False
        expander = self.shell.expander
        text = await expander.text(left)
        if operator in ("=", "==", "!="):
            matched = glob_patterns.compiled(await expander.pattern(right)).matches(text)
            return matched is (operator != "!=")
        if operator == "=~":
            try:
                return compile_regex(await expander.text(right), extended=True).search(text) is not None
            except RegexError:
                raise ConditionError("syntax error in regular expression") from None
        value = await expander.text(right)
        return binary(self.shell.process, text, operator, value, extended=True)


async def evaluate_conditional(shell: Shell, words: tuple[Word, ...]) -> bool:
    return await _Conditional(shell, words).result()
