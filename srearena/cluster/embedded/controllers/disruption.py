"""Disruption budgets: how many of the pods they guard may go at this moment."""

from __future__ import annotations

from math import ceil

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    controller_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    with_condition,
)
from srearena.cluster.embedded.registry.selectors import label_selector_of

BUDGETS = "poddisruptionbudgets.policy"
_EVICTION_GRACE = 120.0
"""How long an evicted pod that did not go yet counts as gone."""
_SCALED = {
    "ReplicaSet": "replicasets.apps",
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}


class DisruptionController(Controller):
    name = "disruption-controller"

    def start(self) -> None:
        self.watch(BUDGETS)
        self.watch("pods", self._budgets_of)
        for resource in _SCALED.values():
            self.watch(resource, lambda obj: self._budgets_in(namespace_of(obj)))

    def _budgets_in(self, namespace: str) -> list[str]:
        return [key_of(budget) for budget in self.store.objects(BUDGETS, namespace)]

    def _budgets_of(self, pod: Obj) -> list[str]:
        return [
            key_of(budget)
            for budget in self.store.objects(BUDGETS, namespace_of(pod))
            if label_selector_of(dig(budget, "spec", "selector")).matches(labels_of(pod))
        ]

    def reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        budget = self.client.get(BUDGETS, namespace, name)
        if budget is None or is_terminating(budget):
            return
        selector = label_selector_of(dig(budget, "spec", "selector"))
        pods = [
            pod
            for pod in self.store.objects("pods", namespace)
            if selector.matches(labels_of(pod)) and dig(pod, "status", "phase") not in ("Succeeded", "Failed")
        ]
        if not pods:
            self.recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        leaving = self._leaving(budget, pods)
        expected, wanted = self._expectation(budget, pods)
        healthy = sum(
            1 for pod in pods if condition_is(pod, "Ready") and not is_terminating(pod) and name_of(pod) not in leaving
        )
        allowed = max(0, healthy - wanted) if expected > 0 else 0
        self._write(budget, healthy, wanted, expected, allowed, leaving)

    def _leaving(self, budget: Obj, pods: list[Obj]) -> dict[str, str]:
        """Pods whose eviction was granted lately and who have not gone yet."""
        present = {name_of(pod) for pod in pods if not is_terminating(pod)}
        now = self.clock.now
        kept: dict[str, str] = {}
        for name, when in dig(budget, "status", "disruptedPods", default={}).items():
            left = parse_time(when) + _EVICTION_GRACE - now
            if name in present and left > 0:
                kept[name] = when
                self.enqueue(key_of(budget), left)
        return kept

    def _expectation(self, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
        """(how many pods there ought to be, how many of them must be healthy)"""
        spec = budget.get("spec") or {}
        if spec.get("maxUnavailable") is not None:
            expected = self._scale_of(pods)
            return expected, max(0, expected - _share(spec["maxUnavailable"], expected))
        least = spec.get("minAvailable", 1)
        if isinstance(least, str) and least.endswith("%"):
            expected = self._scale_of(pods)
            return expected, _share(least, expected)
        return len(pods), int(least)

    def _scale_of(self, pods: list[Obj]) -> int:
        """What the controllers of these pods were asked for; a pod without one counts itself."""
        seen: set[str] = set()
        total = 0
        for pod in pods:
            owner = controller_of(pod)
            found = self._top(namespace_of(pod), owner) if owner else None
            if found is None:
                total += 0 if owner else 1
            elif meta(found)["uid"] not in seen:
                seen.add(meta(found)["uid"])
                total += dig(found, "spec", "replicas", default=1)
        return total

    def _top(self, namespace: str, owner: Obj) -> Obj | None:
        resource = _SCALED.get(owner["kind"])
        found = self.client.get(resource, namespace, owner["name"]) if resource else None
        above = controller_of(found) if found is not None else None
        return (self._top(namespace, above) if above else None) or found

    def _write(
        self, budget: Obj, healthy: int, wanted: int, expected: int, allowed: int, leaving: dict[str, str]
    ) -> None:
        fine = allowed > 0
        verdict = {
            "type": "DisruptionAllowed",
            "status": "True" if fine else "False",
            "reason": "SufficientPods" if fine else "InsufficientPods",
            "message": "",
            "observedGeneration": meta(budget).get("generation", 1),
        }
        status: Obj = {
            "conditions": with_condition(
                dig(budget, "status", "conditions", default=()), verdict, self.clock.timestamp()
            ),
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": meta(budget).get("generation", 1),
        }
        if leaving:
            status["disruptedPods"] = leaving
        if status != budget.get("status"):
            self.client.set_status(BUDGETS, budget, status)


def _share(value: int | str, whole: int) -> int:
    """An absolute number, or a percentage of the whole, rounded up."""
    if isinstance(value, str):
        return ceil(whole * int(value.rstrip("%")) / 100) if value.endswith("%") else int(value)
    return value
