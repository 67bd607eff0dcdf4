"""Preparation of an episode: deploy the application, start load, run for a while, inject the fault.

On an embedded cluster all of this happens in the past: its clock starts behind and is simulated at full speed up to the
present, where the agent starts. On a real cluster the same steps take real time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from srearena.cluster import Cluster, start_embedded
from srearena.cluster.base import DelegatingCluster, FastForward
from srearena.conductor.episode.agent_access import access_to, own_objects
from srearena.conductor.episode.noise import Noise
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.errors import EnvironmentFailure
from srearena.conductor.grading.baseline import Baseline, capture
from srearena.conductor.grading.known_objects import KnownObjects
from srearena.conductor.oracles.checks.probing import ProbeFailed
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.errors import SreArenaError
from srearena.generators.fault.authors import draw_author
from srearena.generators.fault.testbed import target_cluster

Say = Callable[[str], None]


class TimedCluster(DelegatingCluster[Cluster]):
    """A cluster that counts how much of its time has passed through waiting, and remembers the harness's writes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.elapsed = 0.0
        self.written: dict[str, Mapping[str, Any] | None] = {}
        """The harness's writes since this was last cleared: by path, the new content where it is known."""

    def record_written(self, path: str, obj: Mapping[str, Any] | None) -> None:
        self.written[path] = obj
        super().record_written(path, obj)

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
        start_embedded(
            seed=spec.seed,
            start=spec.start,
            speed=spec.speed,
            behind=spec.phases.total + problem.arrival_seconds,
            models=models,
            in_process=spec.in_process,
        )
    )


class Preparation:
    """Prepares one problem on one cluster, up to the moment the agent starts."""

    def __init__(
        self,
        problem: Problem,
        cluster: TimedCluster,
        timeline: Timeline,
        say: Say = lambda text: None,
        *,
        seed: int = 0,
        noise: Noise | None = None,
    ) -> None:
        self.problem = problem
        self.cluster = cluster
        self.timeline = timeline
        self.noise = noise
        self._author = draw_author(random.Random(f"{seed}:author"))
        self.say = say
        self.handed_over: Baseline | None = None
        problem.attach(cluster)

    def deploy(self) -> None:
        """Deploy the application and wait until it is ready."""
        problem, app = self.problem, self.problem.app
        try:
            self.say(f"deploying {app.name}")
            app.deploy(self.cluster)
            app.wait_until_ready(self.cluster)
            problem.set_up()
            app.wait_until_ready(self.cluster)
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the application did not become ready: {failure}") from failure

    def settle(self) -> None:
        """Run for the healthy part of the timeline, and capture the baseline."""
        self.run_under_load()
        self.record_baseline()

    def run_under_load(self) -> None:
        """Start load and run for the healthy part of the timeline."""
        problem, app = self.problem, self.problem.app
        try:
            app.start_workload(self.cluster, **problem.load)
            self.say("running under load")
            self._run(self.timeline.before)
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the application did not run stably under load: {failure}") from failure

    def record_baseline(self, late: float = 0.0) -> None:
        """Capture the healthy system, after as many seconds as it was prepared too early."""
        problem = self.problem
        try:
            if late > 0:
                self.cluster.wait(late)
            problem.baseline = self.capture()
            problem.known_objects = KnownObjects.of(problem.baseline)
            problem.baseline.facts.update(self._baseline_facts())
        except (SreArenaError, ProbeFailed) as failure:
            raise EnvironmentFailure(f"the application did not run stably under load: {failure}") from failure

    def _baseline_facts(self) -> dict[str, Any]:
        oracle = self.problem.mitigation_oracle
        return oracle.record_baseline() if isinstance(oracle, MitigationOracle) else {}

    def inject_fault(self) -> None:
        """Inject the fault and wait for its symptoms."""
        self.say("injecting the fault")
        try:
            self.problem.injected_at = self.problem.kubernetes.now()
            with target_cluster(self.cluster, self._author):
                self.problem.inject_fault()
            self._run(self.timeline.after, after_fault=True)
            self.handed_over = self.problem.handed_over = self.capture()
            self.problem.known_objects = KnownObjects.of(self.problem.baseline, self.handed_over)
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the fault could not be injected: {failure}") from failure

    def _run(self, seconds: float, *, after_fault: bool = False) -> None:
        """Let the system run for so long, with innocent changes where there is noise."""
        if self.noise is None:
            self.cluster.wait(seconds)
        elif after_fault:
            self.noise.after_fault(seconds)
        else:
            self.noise.before_fault(seconds)

    def hand_over(self) -> None:
        """Bring the cluster to the present; its clock runs from here on."""
        self.cluster.catch_up()

    def capture(self) -> Baseline:
        """Capture the objects of the system, without those of the agent's identity."""
        problem = self.problem
        baseline = capture(problem.kubernetes, (*problem.app.namespaces, *problem.extra_namespaces))
        for key in own_objects(access_to(problem)):
            baseline.objects.pop(key, None)
        return baseline
