"""Events, kept in the core version; what is not said in one is said to be empty."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.parts import part
from srearena.cluster.embedded.registry.strategy import Strategy

_MOMENTS = ("firstTimestamp", "lastTimestamp", "eventTime")
_NAMES = ("reportingComponent", "reportingInstance")


def _default(obj: Obj) -> None:
    part(obj, "involvedObject")
    part(obj, "source")
    for key in _MOMENTS:
        obj.setdefault(key, None)
    for key in _NAMES:
        if obj.get(key) is None:
            obj[key] = ""


STRATEGIES = {"events": Strategy(default=_default)}
