"""Runs scenarios with the real kubectl and writes down what it says, normalised.

The same code runs on both clusters; they differ only in how time passes.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.parity.normal import normal_events, normal_text
from tests.parity.scenarios import Scenario, Step

POLLS = 120


@dataclass(frozen=True, slots=True)
class View:
    """What one command showed."""

    command: str
    exit: int
    output: str
    errors: str = ""


class Unsettled(AssertionError):
    """A scenario waited for something that never came."""


@dataclass(slots=True)
class Terminal:
    """A person at a terminal of one cluster."""

    kubeconfig: Path
    home: Path
    pause: Callable[[float], None]

    def play(self, scenario: Scenario) -> list[View]:
        """Go through a scenario in a namespace of its own; the views."""
        namespace = scenario.name
        self._kubectl(f"create namespace {namespace}", "default")
        self._await(Step("until", "get serviceaccount default -o name", pattern="default"), namespace)
        views = []
        try:
            for step in scenario.steps:
                if step.kind == "until":
                    self._await(step, namespace)
                elif step.kind == "settle":
                    self.pause(float(step.command))
                elif step.kind == "quiet":
                    self._kubectl(step.command, namespace)
                else:
                    views.append(self._view(step, namespace))
        finally:
            self._kubectl(f"delete namespace {namespace} --wait=false", "default")
        return views

    def _view(self, step: Step, namespace: str) -> View:
        if step.kind == "events":
            done = self._kubectl("get events -o json", namespace)
            items = json.loads(done.stdout)["items"]
            chosen = [item for item in items if item["involvedObject"].get("name", "").startswith(step.command)]
            return View(f"events {step.command}".strip(), 0, normal_events(chosen))
        done = self._kubectl(step.command, namespace, step.stdin)
        return View(step.command, done.returncode, normal_text(done.stdout), normal_text(done.stderr))

    def _await(self, step: Step, namespace: str) -> None:
        said = ""
        for _ in range(POLLS):
            done = self._kubectl(step.command, namespace)
            said = done.stdout + done.stderr
            if re.search(step.pattern, said):
                return
            self.pause(1)
        raise Unsettled(f"{step.command!r} never said {step.pattern!r} but {said!r}")

    def _kubectl(self, command: str, namespace: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", f"--namespace={namespace}", *shlex.split(command)],
            env={"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def save(path: Path, version: str, views: list[View]) -> None:
    """Write a recording."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = []
    for view in views:
        entry: dict[str, object] = {"command": view.command, "exit": view.exit}
        entry |= {name: text for name, text in (("output", view.output), ("errors", view.errors)) if text}
        shown.append(entry)
    path.write_text(yaml.dump({"version": version, "views": shown}, Dumper=_Dumper, sort_keys=False, width=10_000))


def read(path: Path) -> list[View]:
    """Read a recording."""
    document = yaml.safe_load(path.read_text())
    return [
        View(entry["command"], entry["exit"], entry.get("output", ""), entry.get("errors", ""))
        for entry in document["views"]
    ]


class _Dumper(yaml.SafeDumper):
    """Text of several lines as a block, so that a recording reads as a transcript."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
