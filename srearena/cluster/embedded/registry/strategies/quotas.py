"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle
from srearena.cluster.embedded.registry.strategies.parts import items, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_LIMIT_LISTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _default_quota(obj: Obj) -> None:
    settle(part(obj, "spec"), "hard")
    settle(part(obj, "status"), "hard", "used")


def _prepare_quota_status(new: Obj, old: Obj, context: WriteContext) -> None:
    settle(new.get("status"), "hard", "used")


def _default_limit_range(obj: Obj) -> None:
    for limit in items(part(obj, "spec"), "limits"):
        settle(limit, *_LIMIT_LISTS)
        if limit.get("type") == "Container":
            default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            request = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
            for key, value in (("default", default), ("defaultRequest", request)):
                if value and value != limit.get(key):
                    limit[key] = value


STRATEGIES = {
    "resourcequotas": Strategy(default=reading(_default_quota), prepare_status=_prepare_quota_status),
    "limitranges": Strategy(default=reading(_default_limit_range)),
}
