"""How shells differ: dash, that of busybox, and bash read almost the same language and say things differently."""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.userland.shell.arithmetic import ArithmeticFailure, BadNumber


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    extended: bool
    """`[[`, `&>`, `<<<`, `$'..'`, `${x/a/b}`, `${x:1:2}`, `function`, `source`, `==` in test."""
    braces: bool
    """`{a,b}` and `{1..9}`, `((...))` and C-style `for`."""
    echo_flags: str
    echo_always_escapes: bool
    not_found: str
    prompt: str
    syntax: str
    """The message for an unexpected token."""
    missing_end: str
    unterminated: str
    bad_substitution: str

    @property
    def expansion_status(self) -> int:
        """What a shell ends with when a parameter is not set."""
        return 127 if self.name == "bash" else 2

    def complaint(self, name: str, line: int, message: str, *, script: bool, interactive: bool) -> str:
        """A message of the shell about itself, with its name and where in the script it is."""
        if self.name == "dash":
            return f"{name}: {line}: {message}\n"
        if self.name == "bash":
            return f"{name}: {message}\n" if interactive else f"{name}: line {line}: {message}\n"
        return f"{name}: line {line}: {message}\n" if script else f"{name}: {message}\n"

    def arithmetic_complaint(self, text: str, failure: ArithmeticFailure) -> str:
        by_zero = str(failure) == "division by zero"
        if self.name == "dash":
            bad_number = isinstance(failure, BadNumber)
            return f"Illegal number: {failure}" if bad_number else f'arithmetic expression: {failure}: "{text}"'
        if self.name == "busybox":
            return "divide by zero" if by_zero else "arithmetic syntax error"
        token = f'(error token is "{text.split("/")[-1].strip()}")'
        if by_zero:
            return f"{text.strip()}: division by 0 {token}"
        if isinstance(failure, BadNumber):
            return f'{failure}: value too great for base (error token is "{failure}")'
        return f"{text}: syntax error: operand expected {token}"


DASH = Dialect(
    name="dash",
    extended=False,
    braces=False,
    echo_flags="n",
    echo_always_escapes=True,
    not_found="{}: not found",
    prompt="\\$ ",
    syntax="Syntax error: {} unexpected",
    missing_end="Syntax error: end of file unexpected",
    unterminated="Syntax error: Unterminated quoted string",
    bad_substitution="Bad substitution",
)
BUSYBOX = Dialect(
    name="busybox",
    extended=True,
    braces=False,
    echo_flags="neE",
    echo_always_escapes=False,
    not_found="{}: not found",
    prompt="\\w \\$ ",
    syntax="syntax error: unexpected {}",
    missing_end="syntax error: unexpected end of file",
    unterminated="syntax error: unterminated quoted string",
    bad_substitution="syntax error: bad substitution",
)
BASH = Dialect(
    name="bash",
    extended=True,
    braces=True,
    echo_flags="neE",
    echo_always_escapes=False,
    not_found="{}: command not found",
    prompt="\\u@\\h:\\w\\$ ",
    syntax="syntax error near unexpected token {}",
    missing_end="syntax error: unexpected end of file",
    unterminated="unexpected EOF while looking for matching `{}'",
    bad_substitution="bad substitution",
)
