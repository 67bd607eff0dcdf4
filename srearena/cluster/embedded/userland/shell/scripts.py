"""Texts that shells run again and again, parsed once: probes, and commands of harnesses and agents.

A text is parsed command by command as it runs, so what comes before a mistake in it has its effects.
"""

from __future__ import annotations

from functools import lru_cache

from srearena.cluster.embedded.userland.shell.dialect import Dialect
from srearena.cluster.embedded.userland.shell.parser import Parser
from srearena.cluster.embedded.userland.shell.syntax import Node
from srearena.cluster.embedded.userland.shell.tokens import ShellSyntaxError

_LONGEST = 8_192
"""Characters of a text that is remembered. Chosen: longer than probes and commands; generated scripts seldom repeat."""
_REMEMBERED = 128


class Script:
    """The commands of a text, parsed when they are first needed."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._parser = Parser(text, dialect)
        self._commands: list[tuple[Node, bool]] = []
        self._is_whole = False
        self._mistake: ShellSyntaxError | None = None

    def command(self, number: int) -> tuple[Node, bool] | None:
        """A command, and whether it is the last; None after that. ShellSyntaxError where it is none."""
        while number >= len(self._commands):
            if self._mistake is not None:
                known = self._mistake
                raise ShellSyntaxError(known.message, known.line, incomplete=known.incomplete)
            if self._is_whole:
                return None
            self._parse_next()
        return self._commands[number]

    def _parse_next(self) -> None:
        try:
            node = self._parser.next_command()
        except ShellSyntaxError as mistake:
            self._mistake = mistake
            return
        except BaseException:
            _remembered.cache_clear()  # the parser has stopped somewhere
            raise
        if node is None:
            self._is_whole = True
        else:
            self._commands.append((node, self._parser.at_end))


_remembered = lru_cache(_REMEMBERED)(Script)


def script_of(text: str, dialect: Dialect) -> Script:
    return _remembered(text, dialect) if len(text) <= _LONGEST else Script(text, dialect)
