"""Plays scenarios on the embedded cluster and holds what it says against the recordings of the real one."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from srearena.cluster import start_embedded
from tests.parity import scenarios
from tests.parity.scenarios import Scenario
from tests.parity.transcripts import Terminal, Unsettled, View, read

ALLOWED = Path(__file__).parent / "allowed.yaml"
IMAGES = ("busybox:1.36", "nginx:1.26", "nginx:1.27")
_REASON = re.compile(r"\b(?:phase|reason|type|status|exitCode|restartCount): (\S+)")

PULLED = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "images"},
    "spec": {
        "selector": {"matchLabels": {"app": "images"}},
        "template": {
            "metadata": {"labels": {"app": "images"}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {"name": f"image-{number}", "image": image, "command": ["sleep", "infinity"]}
                    for number, image in enumerate(IMAGES)
                ],
            },
        },
    },
}
"""The real cluster's nodes have all images from the start; so must the embedded one's."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One view of a scenario on both clusters."""

    scenario: Scenario
    real: View
    embedded: View

    @property
    def equal(self) -> bool:
        return self.real == self.embedded

    @property
    def same_substance(self) -> bool:
        """Equal in exit code, phases, reasons, conditions and the reasons of events."""
        return substance(self.real) == substance(self.embedded)

    @property
    def difference(self) -> str:
        lines = difflib.unified_diff(_shown(self.real), _shown(self.embedded), "real", "embedded", lineterm="", n=1)
        return "\n".join(lines)


def substance(view: View) -> tuple[int, list[str]]:
    """What an operator acts on."""
    if view.command.startswith("events"):
        return view.exit, sorted({" ".join(line.split(" ")[:2]) for line in view.output.splitlines()})
    if " | " in view.output:
        rows = [line for line in view.output.splitlines() if " | " in line]
        return view.exit, sorted(" | ".join(row.split(" | ")[:4]) for row in rows)
    return view.exit, sorted(_REASON.findall(view.output))


@contextmanager
def embedded_terminal() -> Iterator[Terminal]:
    """A terminal of an embedded cluster of the real one's shape."""
    with (
        tempfile.TemporaryDirectory() as home,
        start_embedded(nodes=2, seed=1, speed=10, in_process=True) as cluster,
    ):
        terminal = Terminal(cluster.kubeconfig, Path(home), cluster.wait)
        prepare = Scenario(
            "",
            "images",
            (
                scenarios.Step("view", "apply -f -", stdin=yaml.safe_dump(PULLED)),
                scenarios.Step("until", "get daemonset images -o jsonpath={.status.numberReady}", pattern="3"),
                scenarios.Step("quiet", "delete daemonset images --cascade=foreground"),
            ),
        )
        terminal.play(prepare)
        yield terminal


def compare(terminal: Terminal, scenario: Scenario) -> list[Comparison]:
    """All views of a scenario that has a recording."""
    recorded = read(scenario.recording)
    played = terminal.play(scenario)
    return [Comparison(scenario, real, embedded) for real, embedded in zip(recorded, played, strict=True)]


def allowed() -> dict[tuple[str, str], str]:
    """Known differences: scenario and command (* where a scenario does not come to an end), with the reason."""
    entries = yaml.safe_load(ALLOWED.read_text()) or []
    return {(entry["scenario"], entry["view"]): entry["why"] for entry in entries}


def report(names: list[str], *, differences: bool) -> int:
    """Print a table of all scenarios; 1 where something differs that is not allowed."""
    known = allowed()
    views = equal = substantial = unexpected = 0
    with embedded_terminal() as terminal:
        for scenario in scenarios.load():
            if not scenario.recording.exists() or (
                names and scenario.name not in names and scenario.topic not in names
            ):
                continue
            try:
                compared = compare(terminal, scenario)
            except Unsettled as problem:
                views += len(read(scenario.recording))
                unexpected += (scenario.name, "*") not in known
                print(f"{scenario.topic}/{scenario.name}: {problem}", flush=True)
                continue
            bad = [one for one in compared if not one.equal]
            views += len(compared)
            equal += len(compared) - len(bad)
            substantial += sum(one.same_substance for one in compared)
            unknown = [one for one in bad if (scenario.name, one.real.command) not in known]
            unexpected += len(unknown)
            print(f"{scenario.topic}/{scenario.name}: {len(compared) - len(bad)} of {len(compared)} equal", flush=True)
            for one in bad if differences else unknown:
                print(f"  $ kubectl {one.real.command}\n    " + one.difference.replace("\n", "\n    "), flush=True)
    if views:
        print(f"{views} views: {equal / views:.1%} equal to the letter, {substantial / views:.1%} in substance")
    return 1 if unexpected else 0


def _shown(view: View) -> list[str]:
    return [f"[exit {view.exit}]", *view.output.splitlines(), *view.errors.splitlines()]
