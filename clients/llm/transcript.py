"""Live transcript of the agent for a person: the model's text as it is streamed, its calls, and how results begin."""

from __future__ import annotations

from typing import TextIO

_RESULT_LINES = 12  # chosen: a screen shows a few steps
_CALL_LINES = 6
_WIDTH = 160


class Transcript:
    """Writes to a stream at once; without a stream it writes nothing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._in_line = False

    def text(self, text: str) -> None:
        """A piece of the model's text."""
        self._write(text)
        self._in_line = not text.endswith("\n")

    def line(self, text: str = "") -> None:
        self._write(("\n" if self._in_line else "") + text + "\n")
        self._in_line = False

    def call(self, step: int, action: str) -> None:
        self.line(f"[{step}] {_bounded(action, _CALL_LINES)}")

    def result(self, state: str) -> None:
        self.line("    " + _bounded(state, _RESULT_LINES).replace("\n", "\n    "))

    def spent(self, tokens_in: int, tokens_out: int, cost: float) -> None:
        self.line(f"    ({tokens_in:,} tokens in, {tokens_out:,} out, ${cost:.4f} so far)")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()


def _bounded(text: str, limit: int) -> str:
    lines = text.splitlines()
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..." for line in lines[:limit]]
    return "\n".join(shown + ([f"... {len(lines) - limit} more lines"] if len(lines) > limit else []))
