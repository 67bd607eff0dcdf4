"""`srearena down`: the end of what `srearena up` brought up."""

from __future__ import annotations

from srearena.commands.cluster import down as command

__all__ = ["command"]
