"""Words as text again: quoted so that a shell would read them back, and commands as `jobs` shows them."""

from __future__ import annotations

import re

from srearena.cluster.embedded.userland.shell.syntax import (
    DoubleQuoted,
    Literal,
    Node,
    Parameter,
    Pipeline,
    Simple,
    Word,
)

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^{}\[\]!-]+\Z")


def quoted(text: str, *, always: bool = False) -> str:
    if not always and _PLAIN.match(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def word_text(word: Word) -> str:
    texts: list[str] = []
    for part in word.parts:
        if isinstance(part, Literal):
            texts.append(part.text)
        elif isinstance(part, DoubleQuoted):
            texts.append(f'"{word_text(Word(part.parts))}"')
        elif isinstance(part, Parameter):
            texts.append(f"${part.name}" if not part.operator else f"${{{part.name}{part.operator}...}}")
        else:
            texts.append("$(...)")
    return "".join(texts)


def command_text(node: Node) -> str:
    """Roughly what was typed."""
    if isinstance(node, Simple):
        assignments = [f"{item.name}={word_text(item.value)}" for item in node.assignments]
        return " ".join([*assignments, *(word_text(word) for word in node.words)])
    if isinstance(node, Pipeline):
        return " | ".join(command_text(command) for command in node.commands)
    return f"({type(node).__name__.lower()})"
