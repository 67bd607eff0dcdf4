"""Recording a problem: the stage that an agent would get, looked at every minute, and written down as a snapshot.

What is recorded is what the engineer on call may read: the cluster's APIs are asked with that identity. On the
embedded cluster the clock starts at a fixed moment and stands still but for what the stage lets pass, so the same
problem and seed give the same files. On a real one everything takes the time it takes, and the cluster is given back
as it was. The directory appears under its name when it is whole, and nothing in it says
which problem it was: the answer key goes elsewhere, unless it is asked for beside the evidence.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from srearena.cluster import Cluster, start_embedded
from srearena.conductor.episode.agent_access import grant, revoke
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.preparation import Preparation, TimedCluster
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.problems.base import Problem
from srearena.config import Config
from srearena.observer.errors import ObserverError
from srearena.observer.log_api import LogApi
from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.log_lines import severity
from srearena.observer.recording.propagation import Spread
from srearena.observer.recording.raw_files import RawFiles
from srearena.observer.recording.telemetry import all_spans, write_logs, write_metrics, write_spans
from srearena.observer.recording.truth import Workloads, answer_key
from srearena.observer.recording.watching import Watcher
from srearena.observer.trace_api import TraceApi
from srearena.observer.window import Window
from srearena.service.kubernetes import Kubernetes, Obj

GROUND_TRUTH = "ground_truth.yaml"
START = 1_767_603_600.0
"""When recorded incidents happen: 2026-01-05 09:00 UTC, so that recordings repeat."""
EVERY = 60.0
_SYSTEM = "kube-system"
_WARM_UP = 120.0
"""Seconds of load before anything is recorded: alerts about starting up are over by then."""
_GRAVE = ("ERROR", "FATAL")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recording:
    """What came of one recording."""

    directory: Path
    answer_key: Path
    rows: dict[str, int]
    fault_at: float
    ended_at: float


class _Watched(TimedCluster):
    """A cluster that is looked at every so often while its time passes."""

    def __init__(self, cluster: Cluster, every: float) -> None:
        super().__init__(cluster)
        self._every = every
        self._due: float | None = None
        self._look: Callable[[], object] = lambda: None

    def watch(self, look: Callable[[], object], *, after: float) -> None:
        """Begin to look, so many seconds from now."""
        self._look, self._due = look, self.elapsed + after

    def wait(self, seconds: float) -> None:
        until = self.elapsed + seconds
        while self._due is not None and self._due <= until:
            super().wait(max(self._due - self.elapsed, 0.0))
            self._due += self._every
            self._look()
        super().wait(max(until - self.elapsed, 0.0))


class _UnprobedPreparation(Preparation):
    """Nothing will be judged, so nothing need be tried out beforehand: probes would be seen in the recording."""

    def _baseline_facts(self) -> dict[str, Any]:
        return {}


class Recorder:
    def __init__(
        self,
        *,
        seed: int = 0,
        timeline: Timeline | None = None,
        every: float = EVERY,
        config: Config | None = None,
    ) -> None:
        """`config` says where problems run: on an embedded cluster, unless it names a real one."""
        self.seed = seed
        self.config = config or Config()
        self.timeline = timeline or Timeline(before=300.0, after=600.0)
        self.every = every

    def record(self, problem: Problem, out: Path, answers: Path, say: Say = lambda text: None) -> Recording:
        """Run a problem and write its snapshot to `out`, its answer key to `answers`."""
        if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
            raise ObserverError(f"{out} is not empty: name a new directory, or remove it first")
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        try:
            beside = answers.resolve() == out.resolve()
            recording = self._staged(problem, draft, draft if beside else answers, say)
            draft.chmod(0o755)
            if out.exists():
                out.rmdir()
            draft.rename(out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        key = out / GROUND_TRUTH if beside else recording.answer_key
        return replace(recording, directory=out, answer_key=key)

    def _staged(self, problem: Problem, draft: Path, answers: Path, say: Say) -> Recording:
        if not self.config.embedded:
            return self._on_a_real_cluster(problem, draft, answers, say)
        model = problem.app.model_path
        cluster = start_embedded(
            seed=self.seed,
            start=START,
            speed=0,
            secret=hashlib.sha256(f"recording {self.seed}".encode()).hexdigest(),
            models=[model.parent] if model is not None else [],
            in_process=True,
        )
        watched = _Watched(cluster, self.every)
        try:
            return self._run(problem, watched, draft, answers, say)
        finally:
            problem.kubernetes.close()
            watched.close()

    def _on_a_real_cluster(self, problem: Problem, draft: Path, answers: Path, say: Say) -> Recording:
        opened = open_cluster(problem, EpisodeSpec(self.seed, timeline=self.timeline, config=self.config), say=say)
        watched = _Watched(opened.inner, self.every)
        try:
            try:
                return self._run(problem, watched, draft, answers, say)
            finally:
                say("giving the cluster back")
                if problem.fault_injected:
                    problem.recover_fault()
                revoke(problem.kubernetes, problem.app.namespaces)
                problem.app.delete(watched)
        finally:
            if "kubernetes" in problem.__dict__:
                problem.kubernetes.close()
            watched.close()

    def _run(self, problem: Problem, cluster: _Watched, draft: Path, answers: Path, say: Say) -> Recording:
        timeline = replace(self.timeline, before=self.timeline.before + _WARM_UP)
        stage = _UnprobedPreparation(problem, cluster, timeline, say)
        stage.deploy()
        endpoints = cluster.telemetry
        with (
            tempfile.TemporaryDirectory() as place,
            MetricApi(endpoints.prometheus, endpoints.token) as prometheus,
            LogApi(endpoints.loki, endpoints.token) as loki,
            TraceApi(endpoints.jaeger, endpoints.token) as jaeger,
            RawFiles(draft) as files,
        ):
            identity = grant(cluster, problem.kubernetes, problem.app.namespaces, Path(place))
            with Kubernetes(identity) as api:
                watcher = Watcher(api, prometheus, files)
                cluster.watch(watcher.look, after=_WARM_UP)
                stage.settle()
                start, fault = min(watcher.fired), watcher.now()
                stage.inject_fault()
                end = watcher.look(final=True)
            say("writing logs, traces and metrics")
            window = Window(start, end + 0.001)
            spans = all_spans(jaeger, window)
            rows = {
                "logs": write_logs(loki, window, files, watcher.deployment_of),
                "spans": write_spans(spans, files),
                "metrics": write_metrics(prometheus, window, files, (*problem.app.namespaces, _SYSTEM)),
                "looks": len(watcher.fired),
            }
            roots = [entity.name for entity in problem.roots]
            pods = unready(watcher, problem.app.namespaces)
            accused = accusers(loki, Window(fault, end + 0.001), roots, watcher, pods)
        before, after = problem.baseline, stage.handed_over
        assert before is not None and after is not None
        workloads = Workloads(before, problem.app.namespaces)
        by_component = {workloads.component(name): who for name, who in accused.items()}
        spread = Spread(spans, fault, start, end, workloads.component, pods, by_component)
        document = answer_key(problem, before, after, spread, workloads, pods, began(watcher, fault))
        return Recording(draft, write_answer_key(document, answers), rows, fault, end)


def write_answer_key(document: Mapping[str, Any], directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / GROUND_TRUTH
    path.write_text(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120))
    return path


def began(watcher: Watcher, fault: float) -> list[Mapping[str, Any]]:
    """The labels of the alerts that fired after the fault and not at the last look before it, each once."""
    old = [moment for moment in watcher.fired if moment <= fault]
    known = {_identity(alert) for alert in watcher.fired[max(old)]} if old else set()
    found: dict[str, Mapping[str, Any]] = {}
    for moment in sorted(set(watcher.fired) - set(old)):
        for alert in watcher.fired[moment]:
            if _identity(alert) not in known:
                found.setdefault(_identity(alert), alert["labels"])
    return list(found.values())


def _identity(alert: Mapping[str, Any]) -> str:
    return repr(sorted(alert["labels"].items()))


def unready(watcher: Watcher, namespaces: Sequence[str]) -> dict[str, str]:
    """Workloads with pods that are not ready at the end, and the reason."""
    found: dict[str, str] = {}
    for (resource, place, name), pod in sorted(watcher.objects.items()):
        if resource != "pods" or place not in namespaces:
            continue
        owner = watcher.deployment_of(place, name)
        status = pod.get("status") or {}
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
        if owner and not ready and status.get("phase") != "Succeeded":
            found.setdefault(owner, _why(status))
    return found


def accusers(
    loki: LogApi, window: Window, names: Sequence[str], watcher: Watcher, failing: Collection[str]
) -> dict[str, set[str]]:
    """The workloads that name each of these in an error they log, or in any line where they do not come up."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        for row in loki.lines(window, f'{{pod=~".+"}} |= "{name}"'):
            labels = row["labels"]
            who = watcher.deployment_of(labels.get("namespace", ""), labels.get("pod", ""))
            if who and who != name and (who in failing or severity(row["line"]) in _GRAVE):
                found[name].add(who)
    return found


def _why(status: Obj) -> str:
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return str(waiting["reason"])
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("reason"):
            return str(condition["reason"])
    return str(status.get("phase") or "not ready")
