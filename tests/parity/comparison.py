"""Plays scenarios on the embedded cluster and holds what it says against the recordings of the real one."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from srearena.cluster import start_embedded
from tests.parity import scenarios
from tests.parity.passing import StandingTime
from tests.parity.scenarios import Scenario
from tests.parity.substance import substance
from tests.parity.transcripts import Terminal, View, read

ALLOWED = Path(__file__).parent / "allowed.yaml"
IMAGES = ("busybox:1.36", "nginx:1.26", "nginx:1.27", "registry.k8s.io/e2e-test-images/agnhost:2.53")
START = 1_767_225_600
"""The instant every replay begins at, so that all of them are the same; long ago, so that all ages are positive."""

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
        return _in_order(self.real) == _in_order(self.embedded)

    @property
    def same_substance(self) -> bool:
        """Equal in exit code, phases, reasons, conditions and the reasons of events."""
        return substance(self.real) == substance(self.embedded)

    @property
    def difference(self) -> str:
        real, embedded = _shown(_in_order(self.real)), _shown(_in_order(self.embedded))
        return "\n".join(difflib.unified_diff(real, embedded, "real", "embedded", lineterm="", n=1))


@contextmanager
def embedded_terminal() -> Iterator[Terminal]:
    """A terminal of an embedded cluster of the real one's shape."""
    with (
        tempfile.TemporaryDirectory() as home,
        start_embedded(addons=False, nodes=2, seed=1, speed=0, start=START, in_process=True) as cluster,
    ):
        terminal = Terminal(cluster.kubeconfig, Path(home), StandingTime(cluster), cluster.nodes.perform)
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
    """Known differences: scenario and command, with the reason."""
    entries = yaml.safe_load(ALLOWED.read_text()) or []
    return {(entry["scenario"], entry["view"]): entry["why"] for entry in entries}


def _in_order(view: View) -> View:
    """kubectl goes through the containers of a pod in whatever order a map of Go has them, another one each time."""
    if "--all-containers" not in view.command:
        return view
    return replace(view, output="".join(sorted(view.output.splitlines(keepends=True))))


def _shown(view: View) -> list[str]:
    return [f"[exit {view.exit}]", *view.output.splitlines(), *view.errors.splitlines()]
