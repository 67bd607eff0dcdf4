"""What a person sees while the agent works: the model's words as they come, its calls, and how answers begin."""

from __future__ import annotations

from typing import TextIO

_LINES = 12
_WIDTH = 160


class Transcript:
    """Written to a stream as it happens; without one, nothing is written."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._open = False

    def piece(self, text: str) -> None:
        """Some of the model's words."""
        self._write(text)
        self._open = not text.endswith("\n")

    def line(self, text: str = "") -> None:
        self._write(("\n" if self._open else "") + text + "\n")
        self._open = False

    def call(self, step: int, action: str) -> None:
        self.line(f"[{step}] {_bounded(action, 6)}")

    def answer(self, state: str) -> None:
        self.line("    " + _bounded(state, _LINES).replace("\n", "\n    "))

    def spent(self, tokens_in: int, tokens_out: int, cost: float) -> None:
        self.line(f"    ({tokens_in:,} tokens in, {tokens_out:,} out, ${cost:.4f} so far)")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()


def _bounded(text: str, most: int) -> str:
    lines = text.splitlines()
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..." for line in lines[:most]]
    return "\n".join(shown + ([f"... {len(lines) - most} more lines"] if len(lines) > most else []))
