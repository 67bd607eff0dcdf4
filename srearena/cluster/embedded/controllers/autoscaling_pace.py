"""Scaling rate of an autoscaler: stabilisation windows and scaling policies over its recent history.

An autoscaler without `behavior` may at most double (to four at least) in one step, and scales down to the highest
recommendation of the last five minutes. One with `behavior` follows its policies and windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from srearena.cluster.embedded.objects import Obj, dig

_DOWN_WINDOW = 300
_LONGEST_MEMORY = 3600.0
_STEP_FACTOR = 2
_STEP_MINIMUM = 4

Choice = Callable[[list[int]], int]
Verdict = tuple[str, str, str]
"""Status, reason and message of a condition."""

_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_READY: Verdict = ("True", "ReadyForNewScale", "recommended size matches current size")
_HELD_UP: Verdict = (
    "True",
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_HELD_DOWN: Verdict = (
    "True",
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)


@dataclass(slots=True)
class Pace:
    """Recent recommendations and scale events of one autoscaler."""

    looked_at: float
    recommendations: deque[tuple[float, int]] = field(default_factory=deque)
    changes: deque[tuple[float, int]] = field(default_factory=deque)

    def begin(self, current: int, now: float) -> None:
        """The size it finds counts as the first recommendation."""
        if not self.recommendations:
            self.recommendations.append((now, current))

    def note(self, change: int, now: float) -> None:
        self.changes.append((now, change))
        while self.changes[0][0] < now - _LONGEST_MEMORY:
            self.changes.popleft()

    def stabilised(self, autoscaler: Obj, proposed: int, current: int, now: float) -> tuple[int, Verdict]:
        """The recommendation after stabilisation, and the AbleToScale condition."""
        behavior = dig(autoscaler, "spec", "behavior")
        down = dig(behavior, "scaleDown", "stabilizationWindowSeconds", default=_DOWN_WINDOW)
        up = dig(behavior, "scaleUp", "stabilizationWindowSeconds", default=0)
        highest = max((value for when, value in self.recommendations if when > now - down), default=proposed)
        lowest = min((value for when, value in self.recommendations if when > now - up), default=proposed)
        self.recommendations.append((now, proposed))
        while self.recommendations[0][0] < now - _LONGEST_MEMORY:
            self.recommendations.popleft()
        if behavior is None:
            recommended = max(proposed, highest)
            return recommended, _READY if recommended == proposed else _HELD_DOWN
        recommended = min(max(current, min(lowest, proposed)), max(highest, proposed))
        if recommended == proposed:
            return recommended, _READY
        return recommended, _HELD_UP if proposed >= current else _HELD_DOWN

    def limited(
        self, autoscaler: Obj, recommended: int, current: int, least: int, most: int, now: float
    ) -> tuple[int, Verdict]:
        """The size after rate limits, and the ScalingLimited condition."""
        if dig(autoscaler, "spec", "behavior") is None:
            allowed, reason = _by_rule(recommended, current, least, most)
        else:
            allowed, reason = self._by_policies(autoscaler, recommended, current, least, most, now)
        return allowed, ("False" if allowed == recommended else "True", *reason)

    def _by_policies(
        self, autoscaler: Obj, recommended: int, current: int, least: int, most: int, now: float
    ) -> tuple[int, tuple[str, str]]:
        if recommended > current:
            step = max(current, self._ceiling(autoscaler, current, now))
            bound, reason = (step, _UP_LIMIT) if most > step else (most, _TOO_MANY)
            if recommended > bound:
                return bound, reason
        elif recommended < current:
            step = min(current, self._floor(autoscaler, current, now))
            bound, reason = (step, _DOWN_LIMIT) if least < step else (least, _TOO_FEW)
            if recommended < bound:
                return bound, reason
        return recommended, _WITHIN

    def _ceiling(self, autoscaler: Obj, current: int, now: float) -> int:
        rules = dig(autoscaler, "spec", "behavior", "scaleUp", default={})
        limits: list[int] = []
        for policy in rules.get("policies") or ():
            start = self._start(current, policy, now, 1)
            if policy["type"] == "Pods":
                limits.append(start + policy["value"])
            else:
                limits.append(ceil(start * (100 + policy["value"]) / 100))
        return _selected(rules, limits, current, max, min)

    def _floor(self, autoscaler: Obj, current: int, now: float) -> int:
        rules = dig(autoscaler, "spec", "behavior", "scaleDown", default={})
        limits: list[int] = []
        for policy in rules.get("policies") or ():
            start = self._start(current, policy, now, -1)
            if policy["type"] == "Pods":
                limits.append(start - policy["value"])
            else:
                limits.append(int(start * (100 - policy["value"]) / 100))
        return _selected(rules, limits, current, min, max)

    def _start(self, current: int, policy: Obj, now: float, sign: int) -> int:
        """The size at the beginning of the policy's period."""
        since = now - policy["periodSeconds"]
        return current - sum(change for when, change in self.changes if when > since and change * sign > 0)


def _by_rule(recommended: int, current: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    step = max(_STEP_FACTOR * current, _STEP_MINIMUM)
    bound, reason = (step, _UP_LIMIT) if most > step else (most, _TOO_MANY)
    if recommended < least:
        return least, _TOO_FEW
    if recommended > bound:
        return bound, reason
    return recommended, _WITHIN


def _selected(rules: Obj, limits: list[int], current: int, generous: Choice, strict: Choice) -> int:
    choice = rules.get("selectPolicy", "Max")
    if choice == "Disabled" or not limits:
        return current
    return generous(limits) if choice == "Max" else strict(limits)
