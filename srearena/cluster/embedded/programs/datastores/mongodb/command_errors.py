"""The error of a command that fails: a message, a code and its name."""

from __future__ import annotations


class CommandError(Exception):
    def __init__(self, message: str, code: int, name: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.name = name
