"""Preparation of an episode: deploy the application, start load, run for a while, inject the fault.

On an embedded cluster all of this happens in the past: its clock starts behind and is simulated at full speed up to the
present, where the agent starts. On a real cluster the same steps take real time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from srearena.cluster import Cluster, start_embedded
from srearena.cluster.base import DelegatingCluster, FastForward
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.errors import EnvironmentFailure
from srearena.conductor.grading.baseline import Baseline, capture
from srearena.conductor.oracles.checks.probing import ProbeFailed
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.errors import SreArenaError
from srearena.generators.fault.testbed import target_cluster

Say = Callable[[str], None]


class TimedCluster(DelegatingCluster[Cluster]):
    """A cluster that counts how much of its time has passed through waiting."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.elapsed = 0.0

    def wait(self, seconds: float) -> None:
        self.inner.wait(seconds)
        self.elapsed += seconds

    @contextmanager
    def fast_forward(self, limit: float) -> Iterator[FastForward]:
        skip = FastForward(limit)
        try:
            with self.inner.fast_forward(limit) as skip:
                yield skip
        finally:
            self.elapsed += skip.skipped_seconds


def embedded_cluster(problem: Problem, spec: EpisodeSpec) -> TimedCluster:
    """Start an embedded cluster far enough in the past for the whole timeline, with the application's model."""
    model = problem.app.model_path
    models = [model.parent] if model is not None else []
    return TimedCluster(
        start_embedded(seed=spec.seed, behind=spec.timeline.total, models=models, in_process=spec.in_process)
    )


class Preparation:
    """Prepares one problem on one cluster, up to the moment the agent starts."""

    def __init__(
        self, problem: Problem, cluster: TimedCluster, timeline: Timeline, say: Say = lambda text: None
    ) -> None:
        self.problem = problem
        self.cluster = cluster
        self.timeline = timeline
        self._say = say
        self.handed_over: Baseline | None = None
        problem.attach(cluster)

    def deploy(self) -> None:
        """Deploy the application and wait until it is ready."""
        problem, app = self.problem, self.problem.app
        try:
            self._say(f"deploying {app.name}")
            app.deploy(self.cluster)
            app.wait_until_ready(self.cluster)
            problem.set_up()
            app.wait_until_ready(self.cluster)
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the application did not become ready: {failure}") from failure

    def settle(self) -> None:
        """Start load, run for the healthy part of the timeline, and capture the baseline."""
        problem, app = self.problem, self.problem.app
        try:
            app.start_workload(self.cluster)
            self._say("running under load")
            self.cluster.wait(self.timeline.before)
            problem.baseline = self.capture()
            problem.baseline.facts.update(self._baseline_facts())
        except (SreArenaError, ProbeFailed) as failure:
            raise EnvironmentFailure(f"the application did not run stably under load: {failure}") from failure

    def _baseline_facts(self) -> dict[str, Any]:
        oracle = self.problem.mitigation_oracle
        return oracle.record_baseline() if isinstance(oracle, MitigationOracle) else {}

    def inject_fault(self) -> None:
        """Inject the fault and wait for its symptoms."""
        self._say("injecting the fault")
        try:
            self.problem.injected_at = self.problem.kubernetes.now()
            with target_cluster(self.cluster):
                self.problem.inject_fault()
            self.cluster.wait(self.timeline.after)
            self.handed_over = self.capture()
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the fault could not be injected: {failure}") from failure

    def hand_over(self) -> None:
        """Bring the cluster to the present; its clock runs from here on."""
        self.cluster.catch_up()

    def capture(self) -> Baseline:
        return capture(self.problem.kubernetes, self.problem.app.namespaces)
