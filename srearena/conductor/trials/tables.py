"""The live table of trials on a terminal.

Where the output is not a terminal, only the lines of trials that have ended are printed.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from typing import IO, Any

import click

from srearena.conductor.trials.suite import Progress
from srearena.conductor.trials.trial import AGENT_WORKS
from srearena.utils.status import Outcome, outcome_colour

_NAME_WIDTH = 44
"""Of most ids; longer ones move the rest of their row."""
_LONGEST_REASON = 100
"""Characters in a row; `srearena results` and the result have all of it."""


def stage_marks(result: dict[str, Any] | None) -> str:
    """Format the stages as `det+ locx mit-`: passed, failed, not reached."""
    marks = []
    for stage in (result or {}).get("stages") or ():
        verdict = stage.get("verdict")
        mark = "-" if verdict is None else "+" if verdict["passed"] else "x"
        marks.append(f"{stage['stage'][:3]}{mark}")
    return " ".join(marks)


class LiveTable:
    """The progress of trials: a line for each that has ended; on a terminal those that run below them, redrawn."""

    def __init__(self, output: IO[str], *, live: bool, quiet: bool = False) -> None:
        self._output = output
        self._live = live
        self._quiet = quiet
        self._lines_drawn = 0

    def show(self, progress: Sequence[Progress], changed: Progress) -> None:
        if self._quiet:
            return
        self._erase()
        if changed.result is not None:
            click.echo(ended_row(changed), file=self._output)  # without colours where it is not a terminal
        if self._live:
            self._draw(progress)

    def close(self) -> None:
        """Remove the rows of what has not ended."""
        self._erase()

    def _draw(self, progress: Sequence[Progress]) -> None:
        size = shutil.get_terminal_size()
        running = [entry for entry in progress if entry.began is not None and entry.result is None]
        lines = [running_row(entry) for entry in running[: max(1, size.lines - 3)]]
        lines.append(_totals(progress))
        self._output.write("".join(f"{line[: size.columns - 1]}\n" for line in lines))
        self._output.flush()
        self._lines_drawn = len(lines)

    def _erase(self) -> None:
        if self._lines_drawn:
            self._output.write(f"\x1b[{self._lines_drawn}A\x1b[J")
            self._output.flush()
            self._lines_drawn = 0


def running_row(entry: Progress) -> str:
    """A trial that has not ended: what it is at, and what it has used so far."""
    state = entry.stage if entry.stage and entry.state == AGENT_WORKS else entry.state
    used = entry.usage
    tokens = used.get("tokens_in", 0) + used.get("tokens_out", 0)
    return (
        f"{_name(entry):<{_NAME_WIDTH}} {state:<18.18} {entry.seconds:6.0f} s  {used.get('steps', 0):>3} steps"
        f"{f'  {tokens:,} tokens' if tokens else ''}"
    )


def ended_row(entry: Progress) -> str:
    """A trial that has ended: its outcome, what it took, and why it did not pass."""
    result = entry.result or {}
    outcome, usage = str(result["outcome"]), result.get("usage") or {}
    seconds = entry.seconds if not entry.from_earlier_run else float(usage.get("wall_seconds") or 0.0)
    tokens = usage.get("tokens_in", 0) + usage.get("tokens_out", 0)
    parts = [
        f"{_name(entry):<{_NAME_WIDTH}} {click.style(f'{outcome:<18}', fg=outcome_colour(outcome))} {seconds:6.0f} s",
        f"{usage['steps']:>3} steps" if "steps" in usage else "",
        f"{tokens:,} tokens" if tokens else "",
        stage_marks(result),
        "(kept)" if entry.from_earlier_run else "",
        _reason(result["reason"]) if outcome != Outcome.PASS and result.get("reason") else "",
    ]
    return "  ".join(part for part in parts if part)


def _totals(progress: Sequence[Progress]) -> str:
    """One line over all trials: how many have ended and how, and what all have used."""
    outcomes = Counter(str(entry.result["outcome"]) for entry in progress if entry.result is not None)
    used = [(entry.result or {}).get("usage") or entry.usage for entry in progress]
    tokens = sum(one.get("tokens_in", 0) + one.get("tokens_out", 0) for one in used)
    cost = sum(one.get("cost", 0.0) for one in used)
    parts = [
        f"{outcomes.total()} of {len(progress)} ended",
        *(f"{count} {outcome}" for outcome, count in outcomes.items()),
        f"{sum(one.get('steps', 0) for one in used)} steps",
        f"{tokens:,} tokens" if tokens else "",
        f"${cost:.2f}" if cost else "",
    ]
    return "-- " + ", ".join(part for part in parts if part)


def _name(entry: Progress) -> str:
    return f"{entry.trial.problem}{f' #{entry.trial.number}' if entry.trial.number else ''}"


def _reason(text: str) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 3]}..."
