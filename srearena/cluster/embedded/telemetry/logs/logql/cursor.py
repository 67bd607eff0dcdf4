"""A position in the tokens of a query, and errors about the token there."""

from __future__ import annotations

from srearena.cluster.embedded.telemetry.logs.logql.errors import SyntaxProblem
from srearena.cluster.embedded.telemetry.logs.logql.lexer import Word, token_name, words


class Cursor:
    def __init__(self, query: str) -> None:
        self._words = words(query)
        self._at = 0

    @property
    def word(self) -> Word:
        return self._words[self._at]

    @property
    def kind(self) -> str:
        return self.word.kind

    @property
    def following(self) -> str:
        """The kind of the word after this one."""
        return self._words[min(self._at + 1, len(self._words) - 1)].kind

    def next(self) -> Word:
        word = self.word
        self._at = min(self._at + 1, len(self._words) - 1)
        return word

    def accept(self, kind: str) -> bool:
        if self.kind != kind:
            return False
        self.next()
        return True

    def expect(self, *kinds: str) -> Word:
        """The next word, which must be of one of these kinds."""
        if self.kind not in kinds:
            raise self.unexpected(*kinds)
        return self.next()

    def unexpected(self, *expected: str) -> SyntaxProblem:
        """Return an error about this token. Like Loki's, it lists what was expected only where that is short."""
        word = self.word
        expectation = f", expecting {' or '.join(map(token_name, expected))}" if expected else ""
        return SyntaxProblem(f"syntax error: unexpected {token_name(word.kind)}{expectation}", word.line, word.column)
