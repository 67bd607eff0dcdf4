"""The arithmetic of rollouts: how many pods each generation of a deployment may have at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from srearena.cluster.embedded.objects import Obj, dig


def resolve_share(value: int | str | None, whole: int, *, up: bool) -> int:
    """An absolute number, or a percentage of the whole rounded up or down."""
    if value is None:
        return 0
    if isinstance(value, str) and value.endswith("%"):
        share = whole * int(value[:-1]) / 100
        return ceil(share) if up else floor(share)
    return int(value)


@dataclass(slots=True, frozen=True)
class Bounds:
    """How far a rolling update may stray from the wanted number."""

    surge: int
    unavailable: int


def bounds_of(deployment: Obj) -> Bounds:
    replicas = dig(deployment, "spec", "replicas", default=1)
    if dig(deployment, "spec", "strategy", "type") != "RollingUpdate" or not replicas:
        return Bounds(0, 0)
    rolling = dig(deployment, "spec", "strategy", "rollingUpdate", default={})
    surge = resolve_share(rolling.get("maxSurge"), replicas, up=True)
    unavailable = resolve_share(rolling.get("maxUnavailable"), replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1  # both rounded to nothing: something must move
    return Bounds(surge, min(unavailable, replicas))


def new_size(deployment: Obj, new_replicas: int, total: int) -> int:
    """The size the newest ReplicaSet may have now."""
    wanted = dig(deployment, "spec", "replicas", default=1)
    if dig(deployment, "spec", "strategy", "type") != "RollingUpdate":
        return int(wanted)
    room = wanted + bounds_of(deployment).surge - total
    if room <= 0:
        return new_replicas
    return int(new_replicas + min(room, wanted - new_replicas))


def proportions(deployment: Obj, sizes: dict[str, int], most: int, annotated: dict[str, int]) -> dict[str, int]:
    """New sizes for several active ReplicaSets when the deployment as a whole is resized mid-rollout."""
    wanted = dig(deployment, "spec", "replicas", default=1)
    allowed = wanted + bounds_of(deployment).surge if wanted else 0
    total = sum(sizes.values())
    to_add = allowed - total
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    result = dict(sizes)
    left = to_add
    for name in order:
        if not to_add:
            break
        before = annotated.get(name) or most or total
        share = round(sizes[name] * allowed / before) - sizes[name] if before else 0
        share = min(share, left) if to_add > 0 else max(share, left)
        result[name] = max(0, sizes[name] + share)
        left -= share
    if left and order:
        result[order[0]] = max(0, result[order[0]] + left)
    return result
