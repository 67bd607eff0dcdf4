"""Recording a problem as a snapshot: the incident is prepared as for an agent and captured every minute.

A recording contains what the on-call engineer may read: requests use that identity. On the embedded cluster the clock
starts at a fixed time and advances only as the preparation requires, so the same problem and seed give the same files.
A real cluster runs in real time and is restored afterwards. The directory is renamed to its name when it is complete,
and nothing in it reveals the problem: the answer key is written elsewhere, unless it is requested beside the recording.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from srearena.cluster import Cluster, start_embedded
from srearena.conductor.episode.agent_access import access_to, grant, revoke
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.noise import Noise
from srearena.conductor.episode.preparation import Preparation, TimedCluster
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.problems.base import Problem
from srearena.config import Config
from srearena.observer.errors import ObserverError
from srearena.observer.log_api import LogApi
from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.answer_key import Workloads, answer_key
from srearena.observer.recording.itbench_layout import apply_itbench_layout
from srearena.observer.recording.itbench_names import rename_namespaces
from srearena.observer.recording.log_lines import severity
from srearena.observer.recording.propagation import Propagation
from srearena.observer.recording.raw_files import RawFiles
from srearena.observer.recording.telemetry import all_spans, write_logs, write_metrics, write_spans
from srearena.observer.recording.watcher import Watcher
from srearena.observer.trace_api import TraceApi
from srearena.observer.window import Window
from srearena.service.kubernetes import Kubernetes, Obj

GROUND_TRUTH = "ground_truth.yaml"
START = 1_767_603_600.0
"""The start time of recorded incidents, 2026-01-05 09:00 UTC: fixed, so that recordings are reproducible."""
LAYOUTS = ("srearena", "itbench")
"""Ours, which is that of ITBench's published recordings, and that of its present recorder."""
INTERVAL = 60.0
"""Seconds between two captures."""
_SYSTEM = "kube-system"
_WARM_UP = 180.0
"""Seconds of load before the recording starts: as far as the rules on crashed containers look back
(alert_rules/pods.yaml), so that the alerts that the deployment caused have resolved by then."""
_ERROR_SEVERITIES = ("ERROR", "FATAL")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recording:
    """The result of a recording."""

    directory: Path
    answer_key: Path
    rows: dict[str, int]
    fault_at: float
    ended_at: float


class _SampledCluster(TimedCluster):
    """A cluster that is captured at intervals while its time passes."""

    def __init__(self, cluster: Cluster, interval: float) -> None:
        super().__init__(cluster)
        self._interval = interval
        self._due: float | None = None
        self._capture: Callable[[], object] = lambda: None

    def capture_with(self, capture: Callable[[], object], *, after: float) -> None:
        """Start calling `capture` at intervals, after so many seconds."""
        self._capture, self._due = capture, self.elapsed + after

    def wait(self, seconds: float) -> None:
        until = self.elapsed + seconds
        while self._due is not None and self._due <= until:
            super().wait(max(self._due - self.elapsed, 0.0))
            self._due += self._interval
            self._capture()
        super().wait(max(until - self.elapsed, 0.0))


class _UnprobedPreparation(Preparation):
    """A preparation without the probes of oracles, which nothing needs here and which would show in the recording."""

    def _baseline_facts(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Records problems."""

    seed: int = 0
    timeline: Timeline = field(default_factory=lambda: Timeline(before=300.0, after=600.0))
    interval: float = INTERVAL
    config: Config = field(default_factory=Config)
    """Selects the cluster: an embedded one, unless it names a real one."""
    itbench_names: bool = False
    """Whether namespaces are those of ITBench's data set."""
    layout: str = LAYOUTS[0]
    """One of `LAYOUTS`."""

    def record(self, problem: Problem, out: Path, answers: Path, say: Say = lambda text: None) -> Recording:
        """Run a problem and write its snapshot to `out`, its answer key to `answers`."""
        if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
            raise ObserverError(f"{out} is not empty: name a new directory, or remove it first")
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        try:
            beside = answers.resolve() == out.resolve()
            recording = self._record(problem, draft, draft if beside else answers, say)
            if self.layout == "itbench":
                apply_itbench_layout(draft)
            if self.itbench_names:
                rename_namespaces(draft, recording.answer_key)
            draft.chmod(0o755)
            if out.exists():
                out.rmdir()
            draft.rename(out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        key = out / GROUND_TRUTH if beside else recording.answer_key
        return replace(recording, directory=out, answer_key=key)

    def _seed_of(self, problem: Problem) -> int:
        """An incident in a file has its own seed."""
        return int(problem.pins.get("seed", self.seed))

    def _record(self, problem: Problem, draft: Path, answers: Path, say: Say) -> Recording:
        if not self.config.embedded:
            return self._record_on_real_cluster(problem, draft, answers, say)
        model = problem.app.model_path
        cluster = start_embedded(
            seed=self._seed_of(problem),
            start=START,
            speed=0,
            secret=hashlib.sha256(f"recording {self._seed_of(problem)}".encode()).hexdigest(),
            models=[model.parent] if model is not None else [],
            in_process=True,
        )
        sampled = _SampledCluster(cluster, self.interval)
        try:
            return self._run(problem, sampled, draft, answers, say)
        finally:
            problem.kubernetes.close()
            sampled.close()

    def _record_on_real_cluster(self, problem: Problem, draft: Path, answers: Path, say: Say) -> Recording:
        opened = open_cluster(problem, EpisodeSpec(self.seed, timeline=self.timeline, config=self.config), say=say)
        sampled = _SampledCluster(opened.inner, self.interval)
        try:
            try:
                return self._run(problem, sampled, draft, answers, say)
            finally:
                say("restoring the cluster")
                if problem.fault_injected:
                    problem.recover_fault()
                revoke(problem.kubernetes, access_to(problem))
                problem.app.delete(sampled)
        finally:
            if "kubernetes" in problem.__dict__:
                problem.kubernetes.close()
            sampled.close()

    def _run(self, problem: Problem, cluster: _SampledCluster, draft: Path, answers: Path, say: Say) -> Recording:
        timeline = replace(self.timeline, before=self.timeline.before + _WARM_UP)
        seed = self._seed_of(problem)
        noise = Noise(problem, seed) if problem.pins.get("noise") else None
        stage = _UnprobedPreparation(problem, cluster, timeline, say, seed=seed, noise=noise)
        stage.deploy()
        endpoints = cluster.telemetry
        with (
            tempfile.TemporaryDirectory() as folder,
            MetricApi(endpoints.prometheus, endpoints.token) as prometheus,
            LogApi(endpoints.loki, endpoints.token) as loki,
            TraceApi(endpoints.jaeger, endpoints.token) as jaeger,
            RawFiles(draft) as files,
        ):
            identity = grant(cluster, problem.kubernetes, access_to(problem), Path(folder))
            with Kubernetes(identity) as api:
                watcher = Watcher(api, prometheus, files)
                cluster.capture_with(watcher.capture, after=_WARM_UP)
                stage.settle()
                start, fault = min(watcher.firing_alerts), watcher.now()
                stage.inject_fault()
                end = watcher.capture(final=True)
            say("writing logs, traces and metrics")
            window = Window(start, end + 0.001)
            spans = all_spans(jaeger, window)
            rows = {
                "logs": write_logs(loki, window, files, watcher.deployment_of),
                "spans": write_spans(spans, files),
                "metrics": write_metrics(prometheus, window, files, (*problem.app.namespaces, _SYSTEM)),
                "looks": len(watcher.firing_alerts),
            }
            roots = [entity.name for origin in problem.origins for entity in origin.members]
            pods = unready(watcher, problem.app.namespaces)
            named_in_logs = components_naming(loki, Window(fault, end + 0.001), roots, watcher, pods)
        before, after = problem.baseline, stage.handed_over
        assert before is not None and after is not None
        workloads = Workloads(before, problem.app.namespaces)
        named_components = {workloads.component(name): naming for name, naming in named_in_logs.items()}
        propagation = Propagation(spans, fault, start, end, workloads.component, pods, named_components)
        document = answer_key(problem, before, after, propagation, workloads, pods, new_alerts(watcher, fault))
        return Recording(draft, write_answer_key(document, answers), rows, fault, end)


def write_answer_key(document: Mapping[str, Any], directory: Path) -> Path:
    """Write `ground_truth.yaml` and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / GROUND_TRUTH
    path.write_text(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120))
    return path


def new_alerts(watcher: Watcher, fault: float) -> list[Mapping[str, Any]]:
    """The labels of the alerts that fired after the fault but not at the last capture before it."""
    old = [time for time in watcher.firing_alerts if time <= fault]
    firing_before = {_identity(alert) for alert in watcher.firing_alerts[max(old)]} if old else set()
    labels: dict[str, Mapping[str, Any]] = {}
    for time in sorted(set(watcher.firing_alerts) - set(old)):
        for alert in watcher.firing_alerts[time]:
            if _identity(alert) not in firing_before:
                labels.setdefault(_identity(alert), alert["labels"])
    return list(labels.values())


def _identity(alert: Mapping[str, Any]) -> str:
    return repr(sorted(alert["labels"].items()))


def unready(watcher: Watcher, namespaces: Sequence[str]) -> dict[str, str]:
    """Workloads with pods that are not ready at the end, with the reason."""
    reasons: dict[str, str] = {}
    for (resource, namespace, name), pod in sorted(watcher.objects.items()):
        if resource != "pods" or namespace not in namespaces:
            continue
        owner = watcher.deployment_of(namespace, name)
        status = pod.get("status") or {}
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
        if owner and not ready and status.get("phase") != "Succeeded":
            reasons.setdefault(owner, _reason(status))
    return reasons


def components_naming(
    loki: LogApi, window: Window, names: Sequence[str], watcher: Watcher, failing: Collection[str]
) -> dict[str, set[str]]:
    """For each name, the workloads that log it in an error, or in any line where the workload itself fails."""
    workloads: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        for line in loki.lines(window, f'{{pod=~".+"}} |= "{name}"'):
            workload = watcher.deployment_of(line.labels.get("namespace", ""), line.labels.get("pod", ""))
            if workload and workload != name and (workload in failing or severity(line.text) in _ERROR_SEVERITIES):
                workloads[name].add(workload)
    return workloads


def _reason(status: Obj) -> str:
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return str(waiting["reason"])
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("reason"):
            return str(condition["reason"])
    return str(status.get("phase") or "not ready")
