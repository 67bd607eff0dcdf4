"""Scenarios as data: what a person types, and what must have happened before the next thing is typed.

A file in `scenarios/` maps names to lists of steps. A step is one of

    get pods                          a kubectl command; what it says and how it ends is a view
    {"apply -f -": "kind: Pod ..."}   the same, with standard input
    {events: web}                     a view of the events whose object's name begins so ("" for all)
    {until: get pod web, is: Running} wait until what the command says matches; not a view
    {quiet: delete node x}            a command that only prepares or cleans up; not a view
    {settle: 5}                       let so many seconds pass
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "scenarios"
RECORDED = Path(__file__).parent / "recorded"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a scenario; `kind` is view, events, until, quiet or settle."""

    kind: str
    command: str
    stdin: str | None = None
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    topic: str
    name: str
    steps: tuple[Step, ...]

    @property
    def recording(self) -> Path:
        return RECORDED / self.topic / f"{self.name}.yaml"


def load() -> list[Scenario]:
    """All scenarios, by topic."""
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for name, steps in yaml.safe_load(path.read_text()).items():
            found.append(Scenario(path.stem, name, tuple(_step(step) for step in steps)))
    names = [scenario.name for scenario in found]
    assert len(set(names)) == len(names), "a scenario's name is also its namespace and must be its own"
    return found


def _step(written: Any) -> Step:
    if isinstance(written, str):
        return Step("view", written)
    if "until" in written:
        return Step("until", written["until"], pattern=str(written["is"]))
    [(key, value)] = written.items()
    if key in ("events", "quiet"):
        return Step(key, value)
    if key == "settle":
        return Step("settle", str(value))
    # kubectl takes what begins with a brace for JSON; our manifests are YAML written on one line.
    return Step("view", key, stdin=yaml.safe_dump(yaml.safe_load(value)))
