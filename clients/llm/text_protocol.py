"""Protocol for models without tools: an action is a call in a fenced code block of the model's text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_BLOCK = re.compile(r"```[ \t]*\w*[ \t]*\n?(.*?)```", re.DOTALL)


def with_actions(template: str, actions: Mapping[str, str]) -> str:
    """The prompt with the descriptions of all actions."""
    return template.replace("{actions}", "\n\n".join(actions.values()))


def action_in(text: str, names: Sequence[str]) -> str | None:
    """The first code block that is an action. Later ones are ignored: they may follow invented results.

    A block that calls anything else is an action too: the episode reports what is wrong with it.
    """
    blocks: list[str] = [block.strip() for block in _BLOCK.findall(text) if block.strip()]
    for block in blocks:
        if re.match(r"kubectl\s+[-a-z]", block) or block.partition("(")[0].strip() in names:
            return block
    for block in blocks:
        if re.match(r"[A-Za-z_]\w*\s*\(.*\)$", block, re.DOTALL):
            return block
    unfenced = text.strip()
    return unfenced if unfenced.partition("(")[0].strip() in names and unfenced.endswith(")") else None
