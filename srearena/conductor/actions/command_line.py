"""`exec_shell`: runs a command line of kubectl commands and text filters without a shell.

kubectl commands may be joined by `;` and `&&`, piped into text filters, and take a here-document for `-f -`. Nothing
else runs: no file of this machine is read, no other program is started, no variable is expanded.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from srearena.conductor.actions.filters import FILTERS
from srearena.conductor.actions.time_limit import TimeLimit
from srearena.conductor.errors import BadAction

_HEREDOC = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote)")
_JOINS = frozenset((";", "&&", "||"))
_SUPPORTED = f"kubectl, and behind a pipe {', '.join(sorted(FILTERS))}"

Kubectl = Callable[[list[str], str], tuple[int, str]]
"""Runs kubectl with arguments and standard input; returns the exit status and the output."""


@dataclass(slots=True)
class _Command:
    words: list[str]
    filters: list[list[str]]
    stdin: str = ""
    join: str = ";"
    """How it is joined to the previous command."""


def run(text: str, kubectl: Kubectl, sleep: Callable[[float], None], limit: TimeLimit | None = None) -> str:
    """Run the command line and return its output; BadAction where it is not supported or takes too long."""
    commands = _parse(text)
    limit = limit or TimeLimit()
    printed: list[str] = []
    status = 0
    for command in commands:
        if (command.join == "&&" and status) or (command.join == "||" and not status):
            continue
        limit.check()
        status, output = _run_one(command, kubectl, sleep)
        lines = output.splitlines()
        for words in command.filters:
            limit.check()
            lines = FILTERS[words[0]](words[1:], lines)
        printed += lines
        if status and not command.filters and not output.strip():
            printed.append(f"(exit status {status})")
    return "\n".join(printed)


def _run_one(command: _Command, kubectl: Kubectl, sleep: Callable[[float], None]) -> tuple[int, str]:
    name, words = command.words[0], command.words[1:]
    if name == "kubectl":
        return kubectl(words, command.stdin)
    if name == "echo":
        return 0, " ".join(words)
    if name == "sleep" and len(words) == 1 and re.fullmatch(r"\d+(\.\d+)?s?", words[0]):
        sleep(float(words[0].rstrip("s")))
        return 0, ""
    raise BadAction(f"{name!r} does not run here: supported are {_SUPPORTED}")


def _parse(text: str) -> list[_Command]:
    text, bodies = _without_heredocs(text.strip())
    # A new line ends a command, unless it is escaped or inside quotes.
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=";|&<>\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError as problem:
        raise BadAction(f"the command line cannot be read: {problem}") from problem
    commands: list[_Command] = []
    current: list[list[str]] = [[]]
    join = ";"
    for token in [*_merge_redirections(tokens), ";"]:
        if token.strip("\n") == "" and token:
            token = ";"
        if token in _JOINS:
            if any(current):
                commands.append(_command(current, join, bodies))
            current, join = [[]], token
        elif token == "|":
            current.append([])
        elif token and set(token) <= set(";|&<>"):
            raise BadAction(f"{token!r} is not supported here: join commands by ; or &&, and pipe into filters")
        else:
            current[-1].append(token)
    if not commands:
        raise BadAction(f"there is no command: supported are {_SUPPORTED}")
    return commands


def _merge_redirections(tokens: list[str]) -> list[str]:
    """Drop `2>&1` and `2>/dev/null`: standard error is part of the output anyway."""
    remaining: list[str] = []
    position = 0
    while position < len(tokens):
        token, after = tokens[position], tokens[position + 1 : position + 3]
        merged = token == "2" and after == [">&", "1"]
        dropped = token in ("1", "2") and after == [">", "/dev/null"]
        if merged or dropped:
            position += 3
        else:
            remaining.append(token)
            position += 1
    return remaining


def _command(parts: list[list[str]], join: str, bodies: dict[str, str]) -> _Command:
    if not all(parts):
        raise BadAction("there is a pipe with nothing on one side")
    first, stdin = parts[0], ""
    marks = [word for word in first if word in bodies]
    if marks:
        stdin = bodies[marks[0]]
        first = [word for word in first if word not in bodies]
    filters = parts[1:]
    if first[0] == "echo" and filters and filters[0][0] == "kubectl":
        stdin, first, filters = " ".join(first[1:]) + "\n", filters[0], filters[1:]
    for words in filters:
        if words[0] not in FILTERS:
            raise BadAction(f"pipes into {words[0]!r} are not supported here, only into {', '.join(sorted(FILTERS))}")
    return _Command(first, filters, stdin, join)


def _without_heredocs(text: str) -> tuple[str, dict[str, str]]:
    """Replace here-documents by marks, line by line: an expression over the whole text would take quadratic time."""
    bodies: dict[str, str] = {}
    kept: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        start = _HEREDOC.search(line)
        if start is None:
            kept.append(line)
            continue
        body: list[str] = []
        for inner in lines:
            if inner.strip() == start["mark"]:
                break
            body.append(inner)
        else:
            kept += [line, *body]  # without an end it is none
            continue
        mark = f"@here-document-{len(bodies)}@"
        bodies[mark] = "\n".join(body) + "\n"
        kept.append(line[: start.start()] + mark + line[start.end() :])
    return "\n".join(kept), bodies
