"""The error of a tool call."""

from __future__ import annotations

from srearena.errors import SreArenaError


class ToolError(SreArenaError):
    """A call cannot be answered because of its arguments, path or data; the text tells the agent what to do instead."""
