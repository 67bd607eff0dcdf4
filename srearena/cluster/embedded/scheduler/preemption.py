"""Making room for a more important pod by evicting less important ones.

Victims are the fewest and least important pods that must go; pods whose disruption budget allows no more losses are
spared where another node can do without hurting one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj, dig, labels_of, meta, namespace_of, uid_of
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.scheduler.filters import Cycle, Rejection
from srearena.cluster.embedded.scheduler.node_state import NodeState, PodInfo
from srearena.cluster.embedded.store import Store

Fits = Callable[[NodeState], bool]
"""Whether the pod would fit the node in that state."""

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


@dataclass(slots=True)
class Plan:
    node: NodeState
    victims: list[PodInfo]
    budget_violations: int


def find_plan(
    cycle: Cycle, nodes: dict[str, NodeState], rejections: dict[str, Rejection], fits: Fits
) -> tuple[Plan | None, str]:
    """The best node to clear, or why no clearing helps."""
    pod = cycle.info.pod
    if dig(pod, "spec", "preemptionPolicy") == "Never":
        return None, "not eligible due to preemptionPolicy=Never."
    plans: list[Plan] = []
    helpless = futile = 0
    for name, node in nodes.items():
        rejection = rejections.get(name)
        if rejection is not None and not rejection.preemption_helps:
            helpless += 1
            continue
        plan = _plan_for(cycle, node, fits)
        if plan is None:
            futile += 1
        else:
            plans.append(plan)
    if plans:
        return min(plans, key=_cost), ""
    counted = [(futile, NO_VICTIMS), (helpless, NOT_HELPFUL)]
    reasons = ", ".join(sorted(f"{count} {reason}" for count, reason in counted if count))
    return None, f"0/{len(nodes)} nodes are available: {reasons}."


def _plan_for(cycle: Cycle, node: NodeState, fits: Fits) -> Plan | None:
    lower = [info for info in node.pods.values() if info.priority < cycle.info.priority]
    if not lower or not fits(node.without({uid_of(info.pod) for info in lower})):
        return None
    guarded = _over_budget(cycle.store, lower)
    # Spare as many as possible, the most important and the protected ones first.
    order = sorted(lower, key=lambda info: (uid_of(info.pod) not in guarded, -info.priority, _started(info.pod)))
    victims = list(lower)
    for candidate in order:
        rest = [info for info in victims if info is not candidate]
        if fits(node.without({uid_of(info.pod) for info in rest})):
            victims = rest
    violations = sum(1 for info in victims if uid_of(info.pod) in guarded)
    return Plan(node, sorted(victims, key=lambda info: (-info.priority, _started(info.pod))), violations)


def _started(pod: Obj) -> str:
    return str(dig(pod, "status", "startTime") or meta(pod).get("creationTimestamp") or "")


def _cost(plan: Plan) -> tuple[int, int, int, int, tuple[int, ...], str]:
    highest = max((info.priority for info in plan.victims), default=0)
    latest = max((_started(info.pod) for info in plan.victims if info.priority == highest), default="")
    return (
        plan.budget_violations,
        highest,
        sum(info.priority for info in plan.victims),
        len(plan.victims),
        tuple(-ord(character) for character in latest),
        plan.node.name,
    )


def _over_budget(store: Store, pods: list[PodInfo]) -> set[str]:
    """Pods whose budget has no disruption left for them, counting those that come before."""
    left: dict[str, int] = {}
    guarded: set[str] = set()
    for info in sorted(pods, key=lambda info: (-info.priority, _started(info.pod))):
        for budget in store.objects("poddisruptionbudgets.policy", namespace_of(info.pod)):
            selector = dig(budget, "spec", "selector")
            if selector is None or not label_selector_of(selector).matches(labels_of(info.pod)):
                continue
            uid = uid_of(budget)
            left.setdefault(uid, dig(budget, "status", "disruptionsAllowed", default=0))
            left[uid] -= 1
            if left[uid] < 0:
                guarded.add(uid_of(info.pod))
    return guarded
