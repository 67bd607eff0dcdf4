"""Tables for a terminal: aligned columns, and a live table of trials.

Where the output is not a terminal, one line per finished trial is printed instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import IO, Any

import click

from srearena.conductor.trials.suite import Progress
from srearena.utils.status import outcome_colour

_MOST_ROWS = 40
_LONGEST_REASON = 100
"""Characters in a row; `srearena results` and the result have all of it."""


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as aligned lines."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def stage_marks(result: dict[str, Any] | None) -> str:
    """Format the stages as `det+ locx mit-`: passed, failed, not reached."""
    marks = []
    for stage in (result or {}).get("stages") or ():
        verdict = stage.get("verdict")
        mark = "-" if verdict is None else "+" if verdict["passed"] else "x"
        marks.append(f"{stage['stage'][:3]}{mark}")
    return " ".join(marks)


class LiveTable:
    """The progress of trials, redrawn on every change."""

    def __init__(self, output: IO[str], *, live: bool, quiet: bool = False) -> None:
        self._output = output
        self._live = live
        self._quiet = quiet
        self._lines_drawn = 0

    def show(self, progress: Sequence[Progress], changed: Progress) -> None:
        if self._quiet:
            return
        if self._live:
            self._draw(progress)
        elif changed.result is not None:
            click.echo(_line(changed), file=self._output)  # without colours where it is not a terminal

    def _draw(self, progress: Sequence[Progress]) -> None:
        width = shutil.get_terminal_size().columns
        shown = [entry for entry in progress if entry.began is not None or entry.result is not None][-_MOST_ROWS:]
        lines = [_line(entry)[:width] for entry in shown]
        if os.environ.get("NO_COLOR"):
            lines = [click.unstyle(line) for line in lines]
        waiting = sum(entry.began is None and entry.result is None for entry in progress)
        if waiting:
            lines.append(f"... {waiting} more to come")
        up = f"\x1b[{self._lines_drawn}A" if self._lines_drawn else ""
        self._output.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        self._output.flush()
        self._lines_drawn = len(lines)

    def close(self) -> None:
        self._lines_drawn = 0


def _reason(text: str) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 3]}..."


def _line(entry: Progress) -> str:
    number = f" #{entry.trial.number}" if entry.trial.number else ""
    name = f"{entry.trial.problem}{number}"
    state = entry.state if entry.result is None else entry.result["outcome"]
    steps = (entry.result or {}).get("usage", {}).get("steps", "")
    tail = f"{stage_marks(entry.result)}  {steps} steps" if entry.result is not None and steps != "" else ""
    tail += "  (kept)" if entry.from_earlier_run else ""
    if entry.result is not None and entry.result["outcome"] != "pass" and entry.result.get("reason"):
        tail += f"  {_reason(entry.result['reason'])}"
    coloured = click.style(f"{state:<18}", fg=outcome_colour(state)) if entry.result is not None else f"{state:<18}"
    return f"{name:<52} {coloured} {entry.seconds:6.1f} s  {tail}".rstrip()
