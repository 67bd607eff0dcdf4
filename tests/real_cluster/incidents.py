"""Problems played on a cluster, one deployment each: `python -m tests.real_cluster.incidents PROBLEM ...`.

`srearena verify` prepares an episode for every script, which on a real cluster takes an hour for each problem. Here one
episode answers the main questions in a row: is the healthy system content, does the fault show, does the oracle fail
where nothing is done, does it pass after the reference remedy, and is the cluster as it was. The fingerprint of the
incident is written to a file, for a comparison with the embedded cluster (`--backend embedded` makes the other one).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from srearena.cluster import Cluster, ClusterError, NodeAccess
from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.shared_cluster import SharedCluster
from srearena.conductor.shared_cluster.inventory import take_inventory
from srearena.conductor.stages import USUAL
from srearena.conductor.validity.player import run_script
from srearena.config import Config, TelemetryConfig
from srearena.errors import SreArenaError
from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes
from tests.real_cluster.fingerprints import Observation, observe
from tests.real_cluster.layout import KUBECONFIG
from tests.real_cluster.spans import seconds
from tests.real_cluster.usage import Usage, take_usage

RATE = 30
"""Requests a second: enough for every operation in two minutes, and little for two cores that are shared."""
START = 1_767_258_000.0
"""When embedded episodes take place: at the same instant every time (1 January 2026, 9:00 UTC)."""
TIMELINE = Timeline(before=45.0, after=75.0)
"""Under load before the fault, and with the fault before it is judged."""

_PATIENCE, _PAUSE = 240.0, 2.0
"""Seconds for which a recovery is awaited, and between two looks."""
SHORTEST = {"_hold": 15.0, "_window": 15.0, "_timeout": 90.0}
"""Seconds for which checks watch or wait here, by the attribute that says so."""


@dataclass(slots=True)
class Played:
    """The answers to the questions above, in order."""

    problem: str
    backend: str
    steps: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    observed: Observation = field(default_factory=Observation)
    recovery: float | None = None
    """Seconds of the cluster's time from the beginning of the remedy until the application serves again."""
    usage: Usage = field(default_factory=dict)
    """Of a healthy system."""

    @property
    def passed(self) -> bool:
        return bool(self.steps) and all(self.steps.values())

    def as_document(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "backend": self.backend,
            "passed": self.passed,
            "steps": self.steps,
            "notes": self.notes,
            "seconds": {key: round(value, 1) for key, value in self.seconds.items()},
            "fingerprint": self.observed.fingerprint,
            "signals": self.observed.signals,
            "first": self.observed.first,
            "recovery": self.recovery,
            **({"usage": self.usage} if self.usage else {}),
        }


class Incident:
    """One problem on one cluster."""

    def __init__(self, problem_id: str, config: Config, timeline: Timeline, nodes: NodeAccess | None = None) -> None:
        self.played = Played(problem_id, "embedded" if config.embedded else "kubernetes")
        self._config = config
        self._spec = EpisodeSpec(
            stages=("noop", *USUAL),
            timeline=timeline,
            fixed=True,
            in_process=True,
            start=START if config.embedded else None,
            speed=0.0,
            config=config,
        )
        self._problem: Problem = ProblemRegistry().get_problem(problem_id, None)
        vars(self._problem)["load"] = {"rate": RATE, **self._problem.load}  # of this instance alone
        self._nodes = nodes
        self._began = monotonic()

    def say(self, text: str) -> None:
        print(f"  {monotonic() - self._began:6.1f} s  {text}", flush=True)

    def play(self) -> Played:
        """Ask every question, up to one whose answer makes the others meaningless."""
        played, problem = self.played, self._problem
        cluster = open_cluster(problem, self._spec, nodes=self._nodes, say=self.say)
        episode = Episode(problem, cluster, self._spec, say=self.say)
        try:
            self._play(episode)
        except SreArenaError as failure:
            self._note("environment", False, str(failure))
        finally:
            try:
                episode.close()
            except SreArenaError as failure:
                self._note("restored", False, str(failure))
            cluster.close()
        played.seconds["restored"] = monotonic() - self._began
        if isinstance(cluster.inner, SharedCluster):
            with Kubernetes(Path(self._config.kubeconfig)) as api:
                left = cluster.inner.ledger.inventory.differences(take_inventory(api))
            self._note("restored", not left, *map(str, left))
        return played

    def _play(self, episode: Episode) -> None:
        problem = self._problem
        episode.prepare()
        self.played.seconds["prepared"] = monotonic() - self._began
        oracle = problem.mitigation_oracle
        assert isinstance(oracle, MitigationOracle)
        shorten(oracle)
        checks = [check for check in oracle.checks if not check.disruptive]
        complaints = [f"{check.name}: {line}" for check in checks for line in check.complaints(problem)]
        self._note("healthy", not complaints, *complaints)
        if problem.level == "none":
            with _telemetry(episode.cluster) as telemetry:
                if telemetry is not None:
                    window = self._spec.timeline.before
                    self.played.usage = take_usage(problem.app, problem.kubernetes, telemetry, window, RATE)
            return
        episode.submit("No")
        self.played.seconds["injected"] = monotonic() - self._began
        with _telemetry(episode.cluster) as telemetry:
            self.played.observed = observe(problem.app, problem.kubernetes, problem.injected_at, telemetry)
        self.say(json.dumps(self.played.observed.fingerprint))
        if not problem.repairable:
            return
        complaint = oracle.first_complaint()
        self._note("nothing fails", bool(complaint), "the oracle passes though nothing was done")
        self.say(f"judged: {complaint}")
        began = seconds(problem.kubernetes.now())
        with tempfile.TemporaryDirectory() as home:
            done = run_script(problem.remedy, episode.kubeconfig, Path(home))
        self.played.seconds["repaired"] = monotonic() - self._began
        if done.returncode:
            self.played.notes.append(f"remedy: status {done.returncode}: {done.stderr.strip()[-300:]}")
        self.played.recovery = self._recovered(episode.cluster, began)
        self.say(f"serves again after {self.played.recovery} s")
        verdict = Verdict.from_answer(oracle.evaluate(None))
        self._note("remedy passes", verdict.passed, *verdict.reasons[:5])

    def _recovered(self, cluster: Cluster, began: float) -> float | None:
        """Seconds until every Deployment has its pods and every sample request works; None where they never do."""
        app, api = self._problem.app, self._problem.kubernetes
        while (spent := seconds(api.now()) - began) < _PATIENCE:
            if serves(app, api):
                return spent
            cluster.wait(_PAUSE)
        return None

    def _note(self, step: str, holds: bool, *reasons: str) -> None:
        self.played.steps[step] = self.played.steps.get(step, True) and holds
        self.say(f"{step}: {'yes' if holds else 'NO'}")
        if not holds:
            for reason in reasons[:5]:
                self.played.notes.append(f"{step}: {reason}")
                self.say(f"    {reason}")


def serves(app: Application, api: Kubernetes) -> bool:
    """Whether every Deployment of the application has its pods, and every sample request works."""
    for namespace in app.namespaces:
        for one in api.list("deployments", namespace):
            if (one.get("status") or {}).get("availableReplicas", 0) < one["spec"].get("replicas", 1):
                return False
    frontend = app.frontend
    return frontend is None or all(frontend.probe(api, app.namespace, request).ok for request in frontend.requests)


@contextmanager
def _telemetry(cluster: Cluster) -> Iterator[Telemetry | None]:
    """A client of the cluster's metrics and alerts; None where none are installed."""
    try:
        installed = bool(cluster.telemetry.prometheus)
    except ClusterError:
        installed = False
    client = Telemetry(cluster)
    try:
        yield client if installed else None
    finally:
        client.close()


def shorten(oracle: MitigationOracle) -> None:
    """Let the checks that watch the system watch it for seconds: the same questions, answered in real time."""
    for check in oracle.checks:
        for name, most in SHORTEST.items():
            if name in vars(check):
                vars(check)[name] = min(vars(check)[name], most)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_cluster.incidents", description=__doc__)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--backend", choices=["kubernetes", "embedded"], default="kubernetes")
    parser.add_argument("--kubeconfig", default=str(KUBECONFIG))
    parser.add_argument("--without-telemetry", action="store_true", help="install no Prometheus, Loki and the rest")
    parser.add_argument("--before", type=float, default=TIMELINE.before, help="seconds under load before the fault")
    parser.add_argument(
        "--after", type=float, default=TIMELINE.after, help="seconds with the fault before it is judged"
    )
    parser.add_argument("--output", type=Path, help="folder for one JSON file per problem")
    chosen = parser.parse_args(arguments)
    telemetry = TelemetryConfig() if chosen.without_telemetry else None
    config = (
        Config()
        if chosen.backend == "embedded"
        else Config(k8s_host="kubernetes", kubeconfig=chosen.kubeconfig, telemetry=telemetry)
    )
    failed = 0
    for problem_id in chosen.problems:
        print(f"{problem_id} on {chosen.backend}", flush=True)
        try:
            played = Incident(problem_id, config, Timeline(before=chosen.before, after=chosen.after)).play()
        except SreArenaError as failure:
            played = Played(problem_id, chosen.backend, {"environment": False}, [str(failure)])
            print(f"  {failure}", flush=True)
        failed += not played.passed
        if chosen.output is not None:
            chosen.output.mkdir(parents=True, exist_ok=True)
            document = json.dumps(played.as_document(), indent=1) + "\n"
            (chosen.output / f"{problem_id}.json").write_text(document)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
