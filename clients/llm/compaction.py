"""Long conversations made shorter, without asking a model: the question and the latest turns stay as they are.

First, old answers of tools are cut to their beginning. Where that is not enough, old turns become one message that
lists what was done and how each answer began. A call is never parted from its answer, which endpoints would refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clients.llm.messages import Message

CHARACTERS_PER_TOKEN = 3.5
_KEPT_TURNS = 6
_SHORT = 300


def estimate(messages: Sequence[Message]) -> int:
    """About how many tokens they are."""
    characters = sum(len(m.text) + sum(len(call.arguments) + len(call.name) for call in m.calls) for m in messages)
    return int(characters / CHARACTERS_PER_TOKEN) + 8 * len(messages)


def compacted(messages: Sequence[Message], goal: int) -> list[Message]:
    """The conversation in about `goal` tokens, as far as that can be."""
    if estimate(messages) <= goal:
        return list(messages)
    border = _border(messages)
    shortened = [_short(message) if at < border else message for at, message in enumerate(messages)]
    if estimate(shortened) > goal and border > 1:
        shortened = [shortened[0], _digest(shortened[1:border]), *shortened[border:]]
    keep = _SHORT * 20
    while estimate(shortened) > goal and keep > _SHORT:
        keep //= 2
        shortened = [
            replace(m, text=_cut(m.text, keep)) if m.role == "tool" and len(m.text) > keep else m for m in shortened
        ]
    return shortened


def _border(messages: Sequence[Message]) -> int:
    """Where the latest turns begin: at a turn of the assistant."""
    turns = [at for at, message in enumerate(messages) if message.role == "assistant"]
    return turns[-_KEPT_TURNS] if len(turns) > _KEPT_TURNS else (turns[0] if turns else len(messages))


def _short(message: Message) -> Message:
    if message.role != "tool" or len(message.text) <= _SHORT:
        return message
    return replace(message, text=_cut(message.text, _SHORT))


def _cut(text: str, length: int) -> str:
    return f"{text[:length]}\n... ({len(text) - length} characters left out to save space; ask again if you need them)"


def _digest(messages: Sequence[Message]) -> Message:
    lines = ["What happened so far, in short:"]
    for message in messages:
        if message.role == "assistant":
            said = " ".join(message.text.split())[:200]
            lines += [f"- you said: {said}"] if said else []
            lines += [f"- you called {call.name}({call.arguments[:200]})" for call in message.calls]
        else:
            lines.append(f"  -> {' '.join(message.text.split())[:160]}")
    return Message("user", "\n".join(lines))
