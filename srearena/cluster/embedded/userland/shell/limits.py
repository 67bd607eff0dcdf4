"""How much a shell may hold; one that wants more is out of memory, as it would be in life a little later."""

from __future__ import annotations

MAX_FIELDS = 100_000
"""Arguments that words may expand to."""
MAX_TEXT = 2 * 1024 * 1024
"""Characters that a word may expand to."""
