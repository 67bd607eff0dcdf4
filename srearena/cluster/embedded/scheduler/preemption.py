"""Preemption: evict pods of lower priority to make room for one of higher priority.

Victims are the fewest pods of the lowest priority; nodes that need no violation of a disruption budget are preferred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from srearena.cluster.embedded.objects import (
    Obj,
    condition,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.scheduler.filters import Cycle, Rejection
from srearena.cluster.embedded.scheduler.node_state import NodeState, PodInfo
from srearena.cluster.embedded.store import Store

Verdict = Callable[[NodeState], Rejection | None]
"""Why the pod would not fit the node in that state; None where it would."""

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


@dataclass(slots=True)
class Plan:
    node: NodeState
    victims: list[PodInfo]
    budget_violations: int


def reasons_told(reasons: Counter[str], nodes: int) -> str:
    """`0/3 nodes are available: 1 this, 2 that.`: counted reasons in the order of their text."""
    counted_reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available: {counted_reasons}."


def not_eligible(info: PodInfo, nodes: dict[str, NodeState], rejections: dict[str, Rejection]) -> str:
    """Why the pod may not preempt now: its policy forbids it, or its victims are still terminating."""
    if dig(info.pod, "spec", "preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = dig(info.pod, "status", "nominatedNodeName", default="")
    rejection, node = rejections.get(nominated), nodes.get(nominated)
    if node is None or (rejection is not None and not rejection.preemption_helps):
        return ""
    if any(other.priority < info.priority and _preempted(other.pod) for other in node.pods.values()):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _preempted(pod: Obj) -> bool:
    target = condition(pod, "DisruptionTarget") or {}
    return is_terminating(pod) and (target.get("status"), target.get("reason")) == ("True", "PreemptionByScheduler")


def find_plan(
    cycle: Cycle, nodes: dict[str, NodeState], rejections: dict[str, Rejection], verdict: Verdict
) -> tuple[Plan | None, str]:
    """The best node for preemption, or why preemption does not help."""
    plans: list[Plan] = []
    reasons: Counter[str] = Counter()
    for name, node in nodes.items():
        rejection = rejections.get(name)
        if rejection is not None and not rejection.preemption_helps:
            reasons[NOT_HELPFUL] += 1
            continue
        plan = _plan_for(cycle, node, verdict)
        if isinstance(plan, Plan):
            plans.append(plan)
        else:
            reasons.update(plan)
    if plans:
        return min(plans, key=lambda plan: _cost(plan, cycle.now)), ""
    return None, reasons_told(reasons, len(nodes))


def _plan_for(cycle: Cycle, node: NodeState, verdict: Verdict) -> Plan | list[str]:
    """The victims on the node, or why evicting all candidates is not enough."""
    lower = [info for info in node.pods.values() if info.priority < cycle.info.priority]
    if not lower:
        return [NO_VICTIMS]
    rejection = verdict(node.without({uid_of(info.pod) for info in lower}))
    if rejection is not None:
        return rejection.reasons
    lower.sort(key=lambda info: _importance(info, cycle.now))
    guarded = _over_budget(cycle.store, lower)
    # Reprieve as many pods as possible, those of high priority and those protected by a budget first.
    victims = list(lower)
    for candidate in sorted(lower, key=lambda info: uid_of(info.pod) not in guarded):
        rest = [info for info in victims if info is not candidate]
        if verdict(node.without({uid_of(info.pod) for info in rest})) is None:
            victims = rest
    violations = sum(1 for info in victims if uid_of(info.pod) in guarded)
    return Plan(node, victims, violations)


def _started(info: PodInfo, now: str) -> str:
    """When the pod was started; one that was not yet counts as started now."""
    return str(dig(info.pod, "status", "startTime") or now)


def _importance(info: PodInfo, now: str) -> tuple[int, str]:
    """Sort order of pods: higher priority first, then earlier start."""
    return -info.priority, _started(info, now)


def _cost(plan: Plan, now: str) -> tuple[int, int, int, int, tuple[int, ...], str]:
    highest = max((info.priority for info in plan.victims), default=0)
    earliest = min((_started(info, now) for info in plan.victims if info.priority == highest), default="")
    return (
        plan.budget_violations,
        highest,
        # Each victim adds to the sum regardless of its priority, so that fewer victims win.
        sum(info.priority + 2**31 for info in plan.victims),
        len(plan.victims),
        tuple(-ord(character) for character in earliest),
        plan.node.name,
    )


def _over_budget(store: Store, pods: list[PodInfo]) -> set[str]:
    """The pods, highest priority first, whose eviction would violate a disruption budget."""
    left: dict[str, int] = {}
    guarded: set[str] = set()
    for info in pods:
        for budget in (
            store.objects("poddisruptionbudgets.policy", namespace_of(info.pod)) if labels_of(info.pod) else ()
        ):
            selector = dig(budget, "spec", "selector")
            if not selector or not label_selector_of(selector).matches(labels_of(info.pod)):
                continue
            if name_of(info.pod) in dig(budget, "status", "disruptedPods", default={}):
                continue
            uid = uid_of(budget)
            left.setdefault(uid, dig(budget, "status", "disruptionsAllowed", default=0))
            left[uid] -= 1
            if left[uid] < 0:
                guarded.add(uid_of(info.pod))
    return guarded
