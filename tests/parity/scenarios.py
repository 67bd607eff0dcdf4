"""Scenarios as data: what a person types, and what must have happened before the next thing is typed.

A file in `scenarios/` maps names to lists of steps. A step is one of

    get pods                          a kubectl command; what it says and how it ends is a view
    {"apply -f -": "kind: Pod ..."}   the same, with standard input
    {helm: install web charts/web}    a helm command; `charts` is the folder beside this file
    {events: web}                     a view of the events whose object's name begins so ("" for all)
    {forward: pod/web 80 /}           a view of a request through `port-forward`: target, port and path
    {until: get pod web, is: Running} wait until what the command says matches; not a view
    {quiet: delete node x}            a command that only prepares or cleans up; not a view
    {machine: stop_kubelet worker-2}  something done to a machine; not a view
    {settle: 5}                       let so many seconds pass

Commands run in a folder with the charts of `charts/`, and with the certificate of a webhook in `hook/` (webhooks.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "scenarios"
RECORDED = Path(__file__).parent / "recorded"
_KINDS = ("events", "quiet", "helm", "forward", "machine", "settle")


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a scenario; `kind` is view, helm, events, forward, until, quiet, machine or settle."""

    kind: str
    command: str
    stdin: str | None = None
    pattern: str = ""

    @property
    def title(self) -> str:
        """What its view is called in recordings."""
        prefix = {"view": "", "helm": "helm ", "events": "events ", "forward": "port-forward "}[self.kind]
        return f"{prefix}{self.command}".strip()

    @property
    def shows(self) -> bool:
        return self.kind in ("view", "helm", "events", "forward")


@dataclass(frozen=True, slots=True)
class Scenario:
    topic: str
    name: str
    steps: tuple[Step, ...]

    @property
    def recording(self) -> Path:
        return RECORDED / self.topic / f"{self.name}.yaml"

    @property
    def needs_helm(self) -> bool:
        return any(step.kind == "helm" for step in self.steps)


def load() -> list[Scenario]:
    """All scenarios, by topic."""
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for name, steps in yaml.safe_load(path.read_text()).items():
            found.append(Scenario(path.stem, name, tuple(_step(step) for step in steps)))
    names = [scenario.name for scenario in found]
    assert len(set(names)) == len(names), "a scenario's name is also its namespace and must be its own"
    return found


def chosen(names: list[str]) -> list[Scenario]:
    """The scenarios of these names or topics, all where none is given."""
    return [one for one in load() if not names or one.name in names or one.topic in names]


def _step(written: Any) -> Step:
    if isinstance(written, str):
        return Step("view", written)
    if "until" in written:
        return Step("until", written["until"], pattern=str(written["is"]))
    [(key, value)] = written.items()
    if key in _KINDS:
        return Step(key, str(value))
    if "--raw" in key:
        # Sent as it is, so it must be what a server reads.
        return Step("view", key, stdin=json.dumps(yaml.safe_load(value)))
    # kubectl takes what begins with a brace for JSON; our manifests are YAML written on one line.
    return Step("view", key, stdin=yaml.safe_dump_all(yaml.safe_load_all(value)))
