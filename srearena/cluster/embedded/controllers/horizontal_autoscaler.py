"""The horizontal pod autoscaler: every fifteen seconds, as many replicas as the measured load asks for.

The replica count follows the ratio of use to target, within a tolerance of a tenth; pods that are not ready or not
measured count conservatively (as idle when growing, as busy when shrinking); scaling down waits until five minutes
have not asked for more. What stands in the way is said in the conditions and events an operator knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.controllers.autoscaling_metrics import MetricFailure, Proposal, propose
from srearena.cluster.embedded.controllers.autoscaling_pace import Pace
from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.pod_metrics import NoMetrics, PodMetrics
from srearena.cluster.embedded.controllers.scale_target import ScaleTarget, find_target, set_replicas
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, meta, namespace_of, with_condition
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

AUTOSCALERS = "horizontalpodautoscalers.autoscaling"
SYNC_SECONDS = 15.0


@dataclass(slots=True)
class _Verdict:
    """What one look came to, on its way into the status."""

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
            self._paces.pop(f"{namespace_of(change.new)}/{meta(change.new)['name']}", None)

    def reconcile(self, key: str) -> None:
        autoscaler = self.client.get(AUTOSCALERS, *split_key(key))
        if autoscaler is None or is_terminating(autoscaler):
            return
        pace = self._paces.get(key)
        if pace is None:
            pace = self._paces[key] = Pace()
        if self.clock.now >= pace.looked_at + SYNC_SECONDS - 1e-6:
            pace.looked_at = self.clock.now
            self._decide(autoscaler, pace)
        self.enqueue(key, pace.looked_at + SYNC_SECONDS - self.clock.now)

    def _decide(self, autoscaler: Obj, pace: Pace) -> None:
        verdict = _Verdict(conditions=list(dig(autoscaler, "status", "conditions", default=())))
        reference = dig(autoscaler, "spec", "scaleTargetRef", default={})
        target = find_target(self.client, namespace_of(autoscaler), reference)
        if target is None:
            self._no_target(autoscaler, verdict, reference)
            return
        self._set(
            verdict, "AbleToScale", "True", "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )  # fmt: skip
        verdict.current = target.wanted
        least, most = dig(autoscaler, "spec", "minReplicas", default=1), autoscaler["spec"]["maxReplicas"]
        if target.wanted == 0 and least != 0:
            self._set(
                verdict, "ScalingActive", "False", "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )  # fmt: skip
            verdict.desired = 0
        elif target.wanted > most:
            self._rescale(autoscaler, target, verdict, most, "Current number of replicas above Spec.MaxReplicas")
        elif target.wanted < least:
            self._rescale(autoscaler, target, verdict, least, "Current number of replicas below Spec.MinReplicas")
        else:
            self._follow_metrics(autoscaler, target, verdict, pace, least, most)
        self._write(autoscaler, verdict, pace)

    def _no_target(self, autoscaler: Obj, verdict: _Verdict, reference: Obj) -> None:
        row = self.world.registry.resources.of_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
        if row is None:
            message = f'no matches for kind "{reference.get("kind")}" in version "{reference.get("apiVersion")}"'
        else:
            message = f'{row.group_resource} "{reference.get("name")}" not found'
        text = f"the HPA controller was unable to get the target's current scale: {message}"
        self._set(verdict, "AbleToScale", "False", "FailedGetScale", text)
        self.recorder.event(autoscaler, "Warning", "FailedGetScale", message)
        verdict.current = dig(autoscaler, "status", "currentReplicas", default=0)
        verdict.desired = dig(autoscaler, "status", "desiredReplicas", default=0)
        self._write(autoscaler, verdict, Pace())

    # Metrics

    def _follow_metrics(
        self, autoscaler: Obj, target: ScaleTarget, verdict: _Verdict, pace: Pace, least: int, most: int
    ) -> None:
        proposals: list[Proposal] = []
        failures: list[MetricFailure] = []
        for metric in dig(autoscaler, "spec", "metrics", default=()):
            try:
                found = propose(metric, target, self.store, self.metrics, self.clock.now)
            except MetricFailure as failure:
                failures.append(failure)
                self.recorder.event(autoscaler, "Warning", failure.reason, failure.message)
                verdict.metrics.append({"type": ""})
            else:
                proposals.append(found)
                verdict.metrics.append(found.status)
        # With one metric missing it may still grow, but never shrink on half a picture.
        if failures and (not proposals or max(p.replicas for p in proposals) < target.wanted):
            self._cannot_tell(autoscaler, verdict, failures[0], len(failures), target)
            return
        winner = max(proposals, key=lambda proposal: proposal.replicas)
        text = f"the HPA was able to successfully calculate a replica count from {winner.name}"
        self._set(verdict, "ScalingActive", "True", "ValidMetricFound", text)
        wanted = pace.stabilised(autoscaler, winner.replicas, target.wanted, self.clock.now)
        self._note_stabilisation(verdict, winner.replicas, wanted, target.wanted)
        allowed, limited = pace.limited(autoscaler, wanted, target.wanted, least, most, self.clock.now)
        self._set(verdict, "ScalingLimited", *limited)
        if allowed == target.wanted:
            verdict.desired = allowed
            return
        above = allowed > target.wanted
        reason = f"{winner.name} {'above' if above else 'below'} target" if above else "All metrics below target"
        self._rescale(autoscaler, target, verdict, allowed, reason)
        if verdict.scaled:
            pace.note(allowed - target.wanted, self.clock.now)

    def _note_stabilisation(self, verdict: _Verdict, proposed: int, wanted: int, current: int) -> None:
        if wanted == proposed:
            if wanted == current:
                text = "recommended size matches current size"
                self._set(verdict, "AbleToScale", "True", "ReadyForNewScale", text)
        elif proposed < wanted:
            text = "recent recommendations were higher than current one, applying the highest recent recommendation"
            self._set(verdict, "AbleToScale", "True", "ScaleDownStabilized", text)
        else:
            text = "recent recommendations were lower than current one, applying the lowest recent recommendation"
            self._set(verdict, "AbleToScale", "True", "ScaleUpStabilized", text)

    def _cannot_tell(
        self, autoscaler: Obj, verdict: _Verdict, failure: MetricFailure, count: int, target: ScaleTarget
    ) -> None:
        text = f"the HPA was unable to compute the replica count: {failure.message}"
        self._set(verdict, "ScalingActive", "False", failure.reason, text)
        summary = (
            f"invalid metrics ({count} invalid out of {len(autoscaler['spec'].get('metrics') or ())}), "
            f"first error is: {failure.summary}"
        )
        self.recorder.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", summary)
        verdict.desired = target.wanted
        verdict.metrics = dig(autoscaler, "status", "currentMetrics", default=[])

    # Acting

    def _rescale(self, autoscaler: Obj, target: ScaleTarget, verdict: _Verdict, replicas: int, reason: str) -> None:
        set_replicas(self.client, target, replicas)
        verdict.desired = replicas
        verdict.scaled = True
        text = f"the HPA controller was able to update the target scale to {replicas}"
        self._set(verdict, "AbleToScale", "True", "SucceededRescale", text)
        self.recorder.event(autoscaler, "Normal", "SuccessfulRescale", f"New size: {replicas}; reason: {reason}")

    def _set(self, verdict: _Verdict, kind: str, status: str, reason: str, message: str) -> None:
        new = {"type": kind, "status": status, "reason": reason, "message": message}
        verdict.conditions = with_condition(verdict.conditions, new, self.clock.timestamp())

    def _write(self, autoscaler: Obj, verdict: _Verdict, pace: Pace) -> None:
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
        if status != before:
            self.client.set_status(AUTOSCALERS, autoscaler, status)
