"""`srearena down`: stops what `srearena up` started."""

from __future__ import annotations

from srearena.commands.cluster import down as command

__all__ = ["command"]
