"""Setting the stage: a cluster, the application on it with load, a past, the fault, and the hand-over to the present.

On an embedded cluster all of it lies in the past and costs no waiting: the cluster starts behind, and when the agent
first looks, its now is the agent's. On a real one the same steps take the time they take.
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


class TimeKeeper(DelegatingCluster[Cluster]):
    """A cluster that counts how much of its time was let pass, so that the past can be planned."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.passed = 0.0

    def wait(self, seconds: float) -> None:
        self.inner.wait(seconds)
        self.passed += seconds

    @contextmanager
    def fast_forward(self, limit: float) -> Iterator[FastForward]:
        skip = FastForward(limit)
        try:
            with self.inner.fast_forward(limit) as skip:
                yield skip
        finally:
            self.passed += skip.skipped_seconds


def embedded_cluster(problem: Problem, spec: EpisodeSpec) -> TimeKeeper:
    """Start an embedded cluster far enough in the past for the whole timeline, with the application's model."""
    model = problem.app.model_path
    models = [model.parent] if model is not None else []
    return TimeKeeper(
        start_embedded(seed=spec.seed, behind=spec.timeline.total, models=models, in_process=spec.in_process)
    )


class Preparation:
    """One problem on one cluster, from nothing to the moment the agent takes over."""

    def __init__(self, problem: Problem, cluster: TimeKeeper, timeline: Timeline, say: Say = lambda text: None) -> None:
        self.problem = problem
        self.cluster = cluster
        self.timeline = timeline
        self._say = say
        self.handed_over: Baseline | None = None
        problem.attach(cluster)

    def deploy(self) -> None:
        """The application, up and healthy."""
        problem, app = self.problem, self.problem.app
        try:
            self._say(f"deploying {app.name}")
            app.deploy(self.cluster)
            app.wait_until_ready(self.cluster)
            problem.set_up()
            app.wait_until_ready(self.cluster)
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the application did not come up: {failure}") from failure

    def settle(self) -> None:
        """Load, a past, and the baseline of the healthy system."""
        problem, app = self.problem, self.problem.app
        try:
            app.start_workload(self.cluster)
            self._say("letting it run")
            self.cluster.wait(self.timeline.before)
            problem.baseline = self.captured()
            problem.baseline.facts.update(self._remembered())
        except (SreArenaError, ProbeFailed) as failure:
            raise EnvironmentFailure(f"the application did not settle: {failure}") from failure

    def _remembered(self) -> dict[str, Any]:
        oracle = self.problem.mitigation_oracle
        return oracle.remember() if isinstance(oracle, MitigationOracle) else {}

    def break_it(self) -> None:
        """Inject the fault, and let it show."""
        self._say("injecting the fault")
        try:
            self.problem.broken_since = self.problem.kubernetes.now()
            with target_cluster(self.cluster):
                self.problem.inject_fault()
            self.cluster.wait(self.timeline.after)
            self.handed_over = self.captured()
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the fault could not be injected: {failure}") from failure

    def hand_over(self) -> None:
        """Bring the cluster to the present; from here on its time flows."""
        self.cluster.catch_up()

    def captured(self) -> Baseline:
        return capture(self.problem.kubernetes, self.problem.app.namespaces)
