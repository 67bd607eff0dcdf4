"""Disruption budgets: the number of currently allowed disruptions."""

from __future__ import annotations

from math import ceil

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.scale_target import find_target
from srearena.cluster.embedded.controllers.selector_text import printed_selector
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import (
    Obj,
    condition,
    condition_is,
    controller_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    pod_condition,
    with_condition,
)
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Change

BUDGETS = "poddisruptionbudgets.policy"
_REACTION = 0.1
_EVICTION_GRACE = 120.0
"""How long an evicted pod that still exists counts as disrupted."""
_STALE = "stale:"
_SCALED = ("replicasets.apps", "deployments.apps", "statefulsets.apps", "replicationcontrollers")


class DisruptionController(Controller):
    name = "disruption-controller"
    source = "controllermanager"

    def start(self) -> None:
        self.watch(BUDGETS)
        self.world.on_change("pods", self._pod_changed)
        for resource in _SCALED:
            self.watch(resource, lambda obj: self._budgets_in(namespace_of(obj)))

    def _pod_changed(self, change: Change) -> None:
        for pod in (change.new,) if change.old is None else (change.new, change.old):
            keys = self._budgets_of(pod)
            if pod is change.new and change.type != "DELETED" and _stale_since(pod) is not None:
                self.enqueue(f"{_STALE}{key_of(pod)}")
            for key in keys:
                self.enqueue(key, _REACTION)
            if len(keys) > 1 and pod is change.new and change.type != "DELETED":
                where, chosen = quoted(namespace_of(pod)), quoted(split_key(keys[0])[1])
                text = (
                    f"Pod {where}/{quoted(name_of(pod))} matches multiple PodDisruptionBudgets.  "
                    f"Chose {chosen} arbitrarily."
                )
                self.recorder.event(pod, "Warning", "MultiplePodDisruptionBudgets", text)

    def _budgets_in(self, namespace: str) -> list[str]:
        return [key_of(budget) for budget in self.store.objects(BUDGETS, namespace)]

    def _budgets_of(self, pod: Obj) -> list[str]:
        return [
            key_of(budget)
            for budget in self.store.objects(BUDGETS, namespace_of(pod))
            if label_selector_of(dig(budget, "spec", "selector")).matches(labels_of(pod))
        ]

    def reconcile(self, key: str) -> None:
        if key.startswith(_STALE):
            self._clear_stale(key.removeprefix(_STALE))
            return
        namespace, name = split_key(key)
        budget = self.client.get(BUDGETS, namespace, name)
        if budget is None or is_terminating(budget):
            return
        selector = label_selector_of(dig(budget, "spec", "selector"))
        pods = [pod for pod in self.store.objects("pods", namespace) if selector.matches(labels_of(pod))]
        if not pods:
            self.recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        try:
            expected, wanted = self._expectation(budget, pods)
        except _Unscalable as problem:
            text = f"Failed to calculate the number of expected pods: {problem}"
            self.recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", text)
            self._give_up(budget, str(problem))
            return
        leaving = self._leaving(budget, pods)
        healthy = sum(
            1 for pod in pods if condition_is(pod, "Ready") and not is_terminating(pod) and name_of(pod) not in leaving
        )
        allowed = max(0, healthy - wanted) if expected > 0 else 0
        counts = {
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
        }
        self._write(budget, counts, "SufficientPods" if allowed else "InsufficientPods", "", leaving)

    def _clear_stale(self, key: str) -> None:
        """Clear a stale DisruptionTarget condition of a pod that was not deleted."""
        pod = self.client.get("pods", *split_key(key))
        since = _stale_since(pod) if pod is not None else None
        if pod is None or since is None:
            return
        left = since + _EVICTION_GRACE - self.clock.now
        if left > 0:
            self.enqueue(f"{_STALE}{key}", left)
            return
        cleared = pod_condition(pod, "DisruptionTarget", "False")
        kept = [c for c in pod["status"]["conditions"] if c["type"] != "DisruptionTarget"]
        conditions = [*kept, *with_condition((), cleared, self.clock.timestamp())]
        self.client.set_status("pods", pod, {**pod["status"], "conditions": conditions})

    def _give_up(self, budget: Obj, problem: str) -> None:
        """Without a result, no disruption is allowed."""
        before = budget.get("status") or {}
        counts = {key: before.get(key, 0) for key in ("currentHealthy", "desiredHealthy", "expectedPods")}
        self._write(
            budget, {**counts, "disruptionsAllowed": 0}, "SyncFailed", problem, before.get("disruptedPods") or {}
        )

    def _leaving(self, budget: Obj, pods: list[Obj]) -> dict[str, str]:
        """Pods with a recently granted eviction that still exist."""
        present = {name_of(pod): pod for pod in pods if not is_terminating(pod)}
        now = self.clock.now
        kept: dict[str, str] = {}
        for name, when in dig(budget, "status", "disruptedPods", default={}).items():
            left = parse_time(when) + _EVICTION_GRACE - now
            if name in present and left > 0:
                kept[name] = when
                self.enqueue(key_of(budget), left)
            elif name in present:
                namespace = namespace_of(budget)
                # Named as the real controller does: by its namespace, twice.
                text = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
                self.recorder.event(present[name], "Warning", "NotDeleted", text)
        return kept

    def _expectation(self, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
        """(how many pods there ought to be, how many of them must be healthy)"""
        spec = budget.get("spec") or {}
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most is not None:
            expected = self._scale_of(budget, pods)
            return expected, max(0, expected - _share(most, expected))
        if isinstance(least, str) and least.endswith("%"):
            expected = self._scale_of(budget, pods)
            return expected, _share(least, expected)
        return len(pods), int(least or 0)

    def _scale_of(self, budget: Obj, pods: list[Obj]) -> int:
        """The desired sizes of the pods' controllers; pods without one are not counted, but reported."""
        sizes: dict[str, int] = {}
        unmanaged = False
        for pod in pods:
            owner = controller_of(pod)
            if owner is None:
                unmanaged = True
            elif owner["uid"] not in sizes:
                sizes.update(self._scales(namespace_of(pod), owner))
        if unmanaged:
            text = (
                "Pods selected by this PodDisruptionBudget (selector: "
                f"{printed_selector(dig(budget, 'spec', 'selector'))}) were found to be unmanaged. As a result, the "
                "status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account "
                'for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
            )
            self.recorder.event(budget, "Warning", "UnmanagedPods", text)
        return sum(sizes.values())

    def _scales(self, namespace: str, owner: Obj) -> dict[str, int]:
        """The size asked for, under the UID of the topmost controller; that of the pods' own stands for nothing."""
        row = self.world.registry.resources.of_kind(owner.get("apiVersion", ""), owner["kind"])
        if row is None:
            raise _Unscalable(f'no matches for kind "{owner["kind"]}" in version "{owner.get("apiVersion")}"')
        if row.subresource("scale") is None:
            raise _Unscalable(f"{row.group_resource} does not implement the scale subresource")
        target = find_target(self.client, namespace, owner)
        if target is None:
            return {}
        above = controller_of(target.obj)
        if above is not None and row.kind == "ReplicaSet":
            return {owner["uid"]: 0, **self._scales(namespace, above)}
        return {owner["uid"]: target.wanted}

    def _write(self, budget: Obj, counts: dict[str, int], reason: str, message: str, leaving: dict[str, str]) -> None:
        generation = meta(budget).get("generation", 1)
        verdict = {
            "type": "DisruptionAllowed",
            "status": "True" if reason == "SufficientPods" else "False",
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
        }
        known = dig(budget, "status", "conditions", default=())
        status: Obj = {
            "conditions": with_condition(known, verdict, self.clock.timestamp()),
            **counts,
            "observedGeneration": generation,
        }
        if leaving:
            status["disruptedPods"] = leaving
        if status != budget.get("status"):
            self.client.set_status(BUDGETS, budget, status)


def _stale_since(pod: Obj) -> float | None:
    """Since when a pod is said to be going away that neither goes nor has ended; its kubelet is given all the time."""
    target = condition(pod, "DisruptionTarget")
    if target is None or target.get("status") != "True" or target.get("reason") == "TerminationByKubelet":
        return None
    if is_terminating(pod) or dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return None
    return parse_time(target["lastTransitionTime"]) if target.get("lastTransitionTime") else 0.0


class _Unscalable(Exception):
    """The size of a pod's controller cannot be known."""


def _share(value: int | str, whole: int) -> int:
    """An absolute number, or a percentage of the whole, rounded up."""
    if isinstance(value, str):
        return ceil(whole * int(value.rstrip("%")) / 100) if value.endswith("%") else int(value)
    return value
