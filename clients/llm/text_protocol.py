"""For models without tools: an action is a call in a fenced block of the model's text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_BLOCK = re.compile(r"```[ \t]*\w*[ \t]*\n?(.*?)```", re.DOTALL)


def described(template: str, actions: Mapping[str, str]) -> str:
    """The prompt with every action in it."""
    return template.replace("{actions}", "\n\n".join(actions.values()))


def action_in(text: str, names: Sequence[str]) -> str | None:
    """The first block that is an action; a model that writes on may make up answers, and those do not count.

    A block that is a call of anything else is an action too: the episode says what is wrong with it.
    """
    blocks: list[str] = [block.strip() for block in _BLOCK.findall(text) if block.strip()]
    for block in blocks:
        if re.match(r"kubectl\s+[-a-z]", block) or block.partition("(")[0].strip() in names:
            return block
    for block in blocks:
        if re.match(r"[A-Za-z_]\w*\s*\(.*\)$", block, re.DOTALL):
            return block
    bare = text.strip()
    return bare if bare.partition("(")[0].strip() in names and bare.endswith(")") else None
