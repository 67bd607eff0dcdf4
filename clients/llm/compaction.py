"""Shorten long conversations without a model call. The question and the latest turns stay unchanged.

First, old results of tools are cut to their beginning. If that is not enough, old turns become one message that lists
the calls and how each result began. A call is never separated from its result, which endpoints would refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srearena.llm.messages import Message

CHARACTERS_PER_TOKEN = 3.5  # between English text (about 4) and JSON or YAML (about 3)
_RECENT_TURNS = 6  # chosen: the steps that a model refers back to
_SHORT = 300  # characters of an old result; chosen: a few lines of kubectl's output


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Approximate number of tokens."""
    characters = sum(len(m.text) + sum(len(call.arguments) + len(call.name) for call in m.calls) for m in messages)
    return int(characters / CHARACTERS_PER_TOKEN) + 8 * len(messages)


def compact(messages: Sequence[Message], goal: int) -> list[Message]:
    """The conversation in about `goal` tokens, as far as that is possible."""
    if estimate_tokens(messages) <= goal:
        return list(messages)
    border = _start_of_recent(messages)
    shortened = [_shorten(message) if at < border else message for at, message in enumerate(messages)]
    if estimate_tokens(shortened) > goal and border > 1:
        shortened = [shortened[0], _digest(shortened[1:border]), *shortened[border:]]
    length = _SHORT * 20
    while estimate_tokens(shortened) > goal and length > _SHORT:
        length //= 2
        shortened = [
            replace(m, text=_cut(m.text, length)) if m.role == "tool" and len(m.text) > length else m for m in shortened
        ]
    return shortened


def _start_of_recent(messages: Sequence[Message]) -> int:
    """Index of the first of the latest turns, which is a turn of the assistant."""
    turns = [at for at, message in enumerate(messages) if message.role == "assistant"]
    return turns[-_RECENT_TURNS] if len(turns) > _RECENT_TURNS else (turns[0] if turns else len(messages))


def _shorten(message: Message) -> Message:
    if message.role != "tool" or len(message.text) <= _SHORT:
        return message
    return replace(message, text=_cut(message.text, _SHORT))


def _cut(text: str, length: int) -> str:
    return f"{text[:length]}\n... ({len(text) - length} characters left out to save space; ask again if you need them)"


def _digest(messages: Sequence[Message]) -> Message:
    lines = ["What happened so far, in short:"]
    for message in messages:
        if message.role == "assistant":
            text = " ".join(message.text.split())[:200]
            lines += [f"- you said: {text}"] if text else []
            lines += [f"- you called {call.name}({call.arguments[:200]})" for call in message.calls]
        else:
            lines.append(f"  -> {' '.join(message.text.split())[:160]}")
    return Message("user", "\n".join(lines))
