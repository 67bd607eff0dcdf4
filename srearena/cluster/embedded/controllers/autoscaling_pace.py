"""How fast an autoscaler may move: stabilisation windows and scaling policies over its own recent history."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import ceil

from srearena.cluster.embedded.objects import Obj, dig

_DOWN_WINDOW = 300
_DEFAULT_UP: list[Obj] = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
_DEFAULT_DOWN: list[Obj] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
_LONGEST_MEMORY = 3600.0


@dataclass(slots=True)
class Pace:
    """What one autoscaler recommended and did lately."""

    looked_at: float = float("-inf")
    recommendations: deque[tuple[float, int]] = field(default_factory=deque)
    changes: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, change: int, now: float) -> None:
        self.changes.append((now, change))

    def stabilised(self, autoscaler: Obj, proposed: int, current: int, now: float) -> int:
        """The proposal, held back by what was proposed within the stabilisation windows."""
        self.recommendations.append((now, proposed))
        while self.recommendations and self.recommendations[0][0] < now - _LONGEST_MEMORY:
            self.recommendations.popleft()
        down = dig(autoscaler, "spec", "behavior", "scaleDown", "stabilizationWindowSeconds", default=_DOWN_WINDOW)
        up = dig(autoscaler, "spec", "behavior", "scaleUp", "stabilizationWindowSeconds", default=0)
        highest = max(value for when, value in self.recommendations if when >= now - down)
        lowest = min(value for when, value in self.recommendations if when >= now - up)
        return min(max(current, lowest), highest)

    def limited(
        self, autoscaler: Obj, wanted: int, current: int, least: int, most: int, now: float
    ) -> tuple[int, tuple[str, str, str]]:
        """How far it may go at once, and the (status, reason, message) of the ScalingLimited condition."""
        allowed = wanted
        reason, message = "", ""
        if wanted > current:
            ceiling = self._ceiling(autoscaler, current, now)
            if ceiling < wanted:
                allowed, reason = ceiling, "ScaleUpLimit"
                message = "the desired replica count is increasing faster than the maximum scale rate"
        elif wanted < current:
            floor = self._floor(autoscaler, current, now)
            if floor > wanted:
                allowed, reason = floor, "ScaleDownLimit"
                message = "the desired replica count is decreasing faster than the maximum scale rate"
        if allowed > most:
            return most, ("True", "TooManyReplicas", "the desired replica count is more than the maximum replica count")
        if allowed < least:
            return least, ("True", "TooFewReplicas", "the desired replica count is less than the minimum replica count")
        if reason:
            return allowed, ("True", reason, message)
        return allowed, ("False", "DesiredWithinRange", "the desired count is within the acceptable range")

    def _ceiling(self, autoscaler: Obj, current: int, now: float) -> int:
        rules = dig(autoscaler, "spec", "behavior", "scaleUp", default={})
        limits = [
            self._start(current, policy, now, 1) + self._step(policy, self._start(current, policy, now, 1))
            for policy in rules.get("policies") or _DEFAULT_UP
        ]
        return current if rules.get("selectPolicy") == "Disabled" else _selected(rules, limits, grow=True)

    def _floor(self, autoscaler: Obj, current: int, now: float) -> int:
        rules = dig(autoscaler, "spec", "behavior", "scaleDown", default={})
        limits = [
            self._start(current, policy, now, -1) - self._step(policy, self._start(current, policy, now, -1))
            for policy in rules.get("policies") or _DEFAULT_DOWN
        ]
        return current if rules.get("selectPolicy") == "Disabled" else max(0, _selected(rules, limits, grow=False))

    def _start(self, current: int, policy: Obj, now: float, sign: int) -> int:
        """The size at the beginning of the policy's period."""
        since = now - policy["periodSeconds"]
        return current - sum(change for when, change in self.changes if when > since and change * sign > 0)

    @staticmethod
    def _step(policy: Obj, base: int) -> int:
        return int(policy["value"]) if policy["type"] == "Pods" else ceil(base * policy["value"] / 100)


def _selected(rules: Obj, limits: list[int], *, grow: bool) -> int:
    generous = rules.get("selectPolicy", "Max") != "Min"
    return max(limits) if generous == grow else min(limits)
