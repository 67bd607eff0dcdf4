"""What a tool answers when it cannot answer: always with what to call instead."""

from __future__ import annotations

from srearena.errors import SreArenaError


class ToolError(SreArenaError):
    """The arguments, the path or the data do not allow an answer; the text tells the agent what to do."""
