"""The horizontal pod autoscaler: every fifteen seconds, the replicas that the metrics require.

Each metric proposes a number and the highest wins; an unavailable metric prevents scaling down.
Errors are reported in conditions and events.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.controllers.autoscaling_metrics import MetricFailure, Proposal, propose
from srearena.cluster.embedded.controllers.autoscaling_pace import Pace
from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.pod_metrics import NoMetrics, PodMetrics
from srearena.cluster.embedded.controllers.scale_target import ScaleTarget, find_target, set_replicas
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import (
    Obj,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    namespace_of,
    with_condition,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

AUTOSCALERS = "horizontalpodautoscalers.autoscaling"
SYNC_SECONDS = 15.0
_METRICS_API = ("metrics.k8s.io", "v1beta1")


@dataclass(slots=True)
class _Verdict:
    """The result of one reconciliation, for the status."""

    conditions: list[Obj] = field(default_factory=list)
    metrics: list[Obj] = field(default_factory=list)
    current: int = 0
    desired: int = 0
    scaled: bool = False


class HorizontalAutoscaler(Controller):
    name = "horizontal-pod-autoscaler"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.metrics: PodMetrics = NoMetrics()
        self._paces: dict[str, Pace] = {}

    def start(self) -> None:
        self.watch(AUTOSCALERS)
        self.world.on_change(AUTOSCALERS, self._forget)

    def _forget(self, change: Change) -> None:
        if change.type == "DELETED":
            self._paces.pop(key_of(change.new), None)

    def reconcile(self, key: str) -> None:
        autoscaler = self.client.get(AUTOSCALERS, *split_key(key))
        if autoscaler is None or is_terminating(autoscaler):
            return
        pace = self._paces.setdefault(key, Pace(self.clock.now))
        if self.clock.now >= pace.looked_at + SYNC_SECONDS - 1e-6:
            pace.looked_at = self.clock.now
            self._decide(autoscaler, pace)
        self.enqueue(key, pace.looked_at + SYNC_SECONDS - self.clock.now)

    def _decide(self, autoscaler: Obj, pace: Pace) -> None:
        verdict = _Verdict(
            conditions=list(dig(autoscaler, "status", "conditions", default=())),
            current=dig(autoscaler, "status", "currentReplicas", default=0),
            desired=dig(autoscaler, "status", "desiredReplicas", default=0),
        )
        target = self._target(autoscaler, verdict)
        if target is not None:
            pace.begin(target.wanted, self.clock.now)
            verdict.current = target.wanted
            self._size(autoscaler, target, verdict, pace)
        self._write(autoscaler, verdict)

    def _target(self, autoscaler: Obj, verdict: _Verdict) -> ScaleTarget | None:
        reference = dig(autoscaler, "spec", "scaleTargetRef", default={})
        target = find_target(self.client, namespace_of(autoscaler), reference)
        if target is not None:
            text = "the HPA controller was able to get the target's current scale"
            self._set(verdict, "AbleToScale", "True", "SucceededGetScale", text)
            return target
        row = self.world.registry.resources.of_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
        if row is None:
            group = str(reference.get("apiVersion", "")).rpartition("/")[0]
            message = f'no matches for kind "{reference.get("kind")}" in group "{group}"'
        elif row.subresource("scale") is None:
            message = "the server could not find the requested resource"
        else:
            message = f'{row.group_resource} "{reference.get("name")}" not found'
        text = f"the HPA controller was unable to get the target's current scale: {message}"
        self._set(verdict, "AbleToScale", "False", "FailedGetScale", text)
        self.recorder.event(autoscaler, "Warning", "FailedGetScale", message)
        verdict.metrics = dig(autoscaler, "status", "currentMetrics", default=[])
        return None

    def _size(self, autoscaler: Obj, target: ScaleTarget, verdict: _Verdict, pace: Pace) -> None:
        least, most = dig(autoscaler, "spec", "minReplicas", default=1), autoscaler["spec"]["maxReplicas"]
        if target.wanted == 0 and least != 0:
            text = "scaling is disabled since the replica count of the target is zero"
            self._set(verdict, "ScalingActive", "False", "ScalingDisabled", text)
            verdict.desired = 0
        elif target.wanted > most:
            self._rescale(autoscaler, target, verdict, pace, most, "Current number of replicas above Spec.MaxReplicas")
        elif target.wanted < least:
            self._rescale(autoscaler, target, verdict, pace, least, "Current number of replicas below Spec.MinReplicas")
        elif self._may_select(autoscaler, target, verdict):
            self._follow_metrics(autoscaler, target, verdict, pace, least, most)

    # Metrics

    def _may_select(self, autoscaler: Obj, target: ScaleTarget, verdict: _Verdict) -> bool:
        """Whether the target says which pods are its own, and no other autoscaler claims them."""
        if target.selector.empty:
            self._set(
                verdict, "ScalingActive", "False", "InvalidSelector", "the HPA target's scale is missing a selector"
            )
            self.recorder.event(autoscaler, "Warning", "SelectorRequired", "selector is required")
            self.recorder.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", "selector is required")
            return False
        namespace = namespace_of(autoscaler)
        pods = [pod for pod in self.store.objects("pods", namespace) if target.selector.matches(labels_of(pod))]
        rivals: list[str] = []
        for other in self.store.objects(AUTOSCALERS, namespace):
            theirs = find_target(self.client, namespace, dig(other, "spec", "scaleTargetRef", default={}))
            if theirs is not None and any(theirs.selector.matches(labels_of(pod)) for pod in pods):
                rivals.append(key_of(other))
        if len(rivals) < 2:
            return True
        text = f"pods by selector {target.selector} are controlled by multiple HPAs: [{' '.join(rivals)}]"
        self._set(verdict, "ScalingActive", "False", "AmbiguousSelector", text)
        self.recorder.event(autoscaler, "Warning", "AmbiguousSelector", text)
        self.recorder.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", text)
        return False

    def _follow_metrics(
        self, autoscaler: Obj, target: ScaleTarget, verdict: _Verdict, pace: Pace, least: int, most: int
    ) -> None:
        proposals: list[Proposal] = []
        failures: list[MetricFailure] = []
        for metric in dig(autoscaler, "spec", "metrics", default=()):
            try:
                found = propose(metric, target, self.store, self._metrics_now(), self.clock.now)
            except MetricFailure as failure:
                failures.append(failure)
                self.recorder.event(autoscaler, "Warning", failure.reason, failure.message)
                verdict.metrics.append({"type": ""})
            else:
                proposals.append(found)
                verdict.metrics.append(found.status)
        # With a missing metric it may scale up, but not down.
        if failures and (not proposals or max(p.replicas for p in proposals) < target.wanted):
            self._cannot_tell(autoscaler, verdict, failures)
            return
        winner = max(proposals, key=lambda proposal: proposal.replicas)
        text = f"the HPA was able to successfully calculate a replica count from {winner.name}"
        self._set(verdict, "ScalingActive", "True", "ValidMetricFound", text)
        wanted, ability = pace.stabilised(autoscaler, winner.replicas, target.wanted, self.clock.now)
        self._set(verdict, "AbleToScale", *ability)
        allowed, limit = pace.limited(autoscaler, wanted, target.wanted, least, most, self.clock.now)
        self._set(verdict, "ScalingLimited", *limit)
        if allowed == target.wanted:
            verdict.desired = allowed
            return
        reason = f"{winner.name} above target" if winner.replicas > target.wanted else "All metrics below target"
        self._rescale(autoscaler, target, verdict, pace, allowed, reason)

    def _metrics_now(self) -> PodMetrics:
        """Metrics from the resource metrics API, if it is available."""
        resources = self.world.registry.resources
        if not resources.rows(*_METRICS_API):
            return NoMetrics()
        if _METRICS_API in resources.unavailable:
            return NoMetrics("the server is currently unable to handle the request")
        return self.metrics

    def _cannot_tell(self, autoscaler: Obj, verdict: _Verdict, failures: list[MetricFailure]) -> None:
        first = failures[0]
        text = f"the HPA was unable to compute the replica count: {first.message}"
        self._set(verdict, "ScalingActive", "False", first.reason, text)
        summary = (
            f"invalid metrics ({len(failures)} invalid out of {len(autoscaler['spec'].get('metrics') or ())}), "
            f"first error is: {first.summary}"
        )
        self.recorder.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", summary)

    # Acting

    def _rescale(
        self, autoscaler: Obj, target: ScaleTarget, verdict: _Verdict, pace: Pace, replicas: int, reason: str
    ) -> None:
        try:
            set_replicas(self.client, target, replicas)
        except ApiError as problem:
            text = f"New size: {replicas}; reason: {reason}; error: {problem.message}"
            self.recorder.event(autoscaler, "Warning", "FailedRescale", text)
            text = f"the HPA controller was unable to update the target scale: {problem.message}"
            self._set(verdict, "AbleToScale", "False", "FailedUpdateScale", text)
            return
        verdict.desired = replicas
        verdict.scaled = True
        text = f"the HPA controller was able to update the target scale to {replicas}"
        self._set(verdict, "AbleToScale", "True", "SucceededRescale", text)
        self.recorder.event(autoscaler, "Normal", "SuccessfulRescale", f"New size: {replicas}; reason: {reason}")
        pace.note(replicas - target.wanted, self.clock.now)
        line = f'HPA="{key_of(autoscaler)}" currentReplicas={target.wanted} desiredReplicas={replicas}'
        scope = 'logger="horizontal-pod-autoscaler-controller"'
        self.log("I", "horizontal.go:927", f'"Successfully rescaled" {scope} {line} reason={quoted(reason)}')

    def _set(self, verdict: _Verdict, kind: str, status: str, reason: str, message: str) -> None:
        new = {"type": kind, "status": status, "reason": reason, "message": message}
        verdict.conditions = with_condition(verdict.conditions, new, self.clock.timestamp())

    def _write(self, autoscaler: Obj, verdict: _Verdict) -> None:
        before = autoscaler.get("status") or {}
        status: Obj = {
            "currentReplicas": verdict.current,
            "desiredReplicas": verdict.desired,
            "conditions": verdict.conditions,
            "currentMetrics": verdict.metrics or None,
        }
        if verdict.scaled:
            status["lastScaleTime"] = self.clock.timestamp()
        elif "lastScaleTime" in before:
            status["lastScaleTime"] = before["lastScaleTime"]
        if meta(autoscaler).get("generation"):
            status["observedGeneration"] = meta(autoscaler)["generation"]
        if not status["currentReplicas"]:
            del status["currentReplicas"]
        if status != before:
            self.client.set_status(AUTOSCALERS, autoscaler, status)
