"""The arithmetic of rollouts: how many pods each generation of a deployment may have. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from srearena.cluster.embedded.objects import Obj, annotations_of, dig, meta, name_of

DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"


def resolve_share(value: int | str | None, whole: int, *, up: bool) -> int:
    """An absolute number, or a percentage of the whole rounded up or down."""
    if value is None:
        return 0
    if isinstance(value, str) and value.endswith("%"):
        share = whole * int(value[:-1]) / 100
        return ceil(share) if up else floor(share)
    return int(value)


def replicas_of(obj: Obj) -> int:
    """The desired size of a deployment or ReplicaSet."""
    found: int = dig(obj, "spec", "replicas", default=1)
    return found


def available_of(replica_set: Obj) -> int:
    found: int = dig(replica_set, "status", "availableReplicas", default=0)
    return found


def is_rolling(deployment: Obj) -> bool:
    return bool(dig(deployment, "spec", "strategy", "type") == "RollingUpdate")


@dataclass(slots=True, frozen=True)
class Bounds:
    """maxSurge and maxUnavailable of a rolling update."""

    surge: int
    unavailable: int


def bounds_of(deployment: Obj) -> Bounds:
    if not is_rolling(deployment):
        return Bounds(0, 0)
    wanted = replicas_of(deployment)
    rolling = dig(deployment, "spec", "strategy", "rollingUpdate", default={})
    surge = resolve_share(rolling.get("maxSurge"), wanted, up=True)
    unavailable = resolve_share(rolling.get("maxUnavailable"), wanted, up=False)
    if not surge and not unavailable:
        unavailable = 1  # both rounded to zero: allow at least one unavailable pod
    return Bounds(surge, min(unavailable, wanted))


def new_size(deployment: Obj, size: int, total: int) -> int:
    """The size the newest ReplicaSet, now of `size`, may have when all together have `total`."""
    wanted = replicas_of(deployment)
    if not is_rolling(deployment):
        return wanted
    room = wanted + bounds_of(deployment).surge - total
    return size if room <= 0 else size + min(room, wanted - size)


def shrunk_sizes(deployment: Obj, newest: Obj, old: list[Obj]) -> dict[str, int]:
    """New sizes of those old ReplicaSets that may give up pods now, by name.

    Unavailable pods are removed first, since that costs no availability; then as many available ones as the others,
    old and new, can replace.
    """
    old = sorted(old, key=creation_order)
    sizes = {name_of(obj): replicas_of(obj) for obj in old}
    if not sum(sizes.values()):
        return {}
    least = replicas_of(deployment) - bounds_of(deployment).unavailable
    new_unavailable = replicas_of(newest) - available_of(newest)
    room = replicas_of(newest) + sum(sizes.values()) - least - new_unavailable
    if room <= 0:
        return {}
    changed: dict[str, int] = {}
    for obj in old:
        step = min(room, sizes[name_of(obj)] - available_of(obj))
        if step > 0:
            sizes[name_of(obj)] -= step
            changed[name_of(obj)] = sizes[name_of(obj)]
            room -= step
    # A ReplicaSet that was just scaled down may not have deleted its pods yet: count its new size.
    surplus = sum(min(available_of(obj), replicas_of(obj)) for obj in (*old, newest)) - least
    for obj in old:
        step = min(sizes[name_of(obj)], surplus)
        if step > 0:
            sizes[name_of(obj)] -= step
            changed[name_of(obj)] = sizes[name_of(obj)]
            surplus -= step
    return changed


def scaled_sizes(deployment: Obj, active: list[Obj]) -> dict[str, int]:
    """New sizes of several active ReplicaSets, by name, when the deployment is resized in the middle of a rollout.

    Each gets its share of what is added or taken; the largest gets what rounding left over.
    """
    wanted = replicas_of(deployment)
    allowed = wanted + bounds_of(deployment).surge if wanted else 0
    to_add = allowed - sum(replicas_of(obj) for obj in active)
    # Of equally large ones the newer grows first, and the older shrinks first.
    by_age = sorted(active, key=creation_order, reverse=to_add > 0)
    ordered = sorted(by_age, key=replicas_of, reverse=True)
    sizes: dict[str, int] = {}
    added = 0
    for obj in ordered:
        share = _share(deployment, obj, to_add, added) if to_add else 0
        sizes[name_of(obj)] = replicas_of(obj) + share
        added += share
    if ordered and to_add:
        first = name_of(ordered[0])
        sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _share(deployment: Obj, replica_set: Obj, to_add: int, added: int) -> int:
    size = replicas_of(replica_set)
    if not size or to_add == added:
        return 0
    if not replicas_of(deployment):
        fraction = -size
    else:
        allowed = replicas_of(deployment) + bounds_of(deployment).surge
        before = _number(annotations_of(replica_set).get(MOST)) or dig(deployment, "status", "replicas", default=0)
        fraction = floor(size * allowed / before + 0.5) - size if before else 0
    left = to_add - added
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def creation_order(obj: Obj) -> tuple[str, str]:
    return meta(obj).get("creationTimestamp", ""), name_of(obj)
