"""The arithmetic of DaemonSet rollouts: old pods to delete, and nodes for surge pods. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from srearena.cluster.embedded.controllers.deployment_rollout import resolve_share
from srearena.cluster.embedded.objects import Obj, dig, is_terminating

Test = Callable[[Obj], bool]


@dataclass(slots=True)
class Moves:
    """What a rollout does next."""

    delete: list[Obj] = field(default_factory=list)
    create_on: list[str] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Pair:
    """The pods of one node that matter: the one from before and the one of the present template."""

    old: Obj | None
    new: Obj | None
    clear: bool = True
    """False where there are duplicates, which are deleted first."""


def pair_of(pods: list[Obj], is_updated: Test) -> Pair:
    staying = [pod for pod in pods if not is_terminating(pod)]
    new = [pod for pod in staying if is_updated(pod)]
    old = [pod for pod in staying if not is_updated(pod)]
    return Pair(old[0] if old else None, new[0] if new else None, len(new) <= 1 and len(old) <= 1)


def allows_surge(daemon: Obj) -> bool:
    rolling = dig(daemon, "spec", "updateStrategy", "rollingUpdate", default={})
    return resolve_share(rolling.get("maxSurge"), 100, up=True) > 0


def limits(daemon: Obj, desired: int) -> tuple[int, int]:
    """(how many pods may be doubled, how many missing), of so many desired."""
    rolling = dig(daemon, "spec", "updateStrategy", "rollingUpdate", default={})
    surge = resolve_share(rolling.get("maxSurge"), desired, up=True)
    unavailable = resolve_share(rolling.get("maxUnavailable"), desired, up=True)
    return surge, 1 if desired and not surge and not unavailable else unavailable


def next_moves(
    daemon: Obj, desired: int, by_node: Mapping[str, list[Obj]], is_updated: Test, is_available: Test
) -> Moves:
    surge, unavailable = limits(daemon, desired)
    pairs = {node: pair_of(pods, is_updated) for node, pods in by_node.items()}
    if surge:
        return _surge(pairs, surge, is_available)
    return _replace(pairs, unavailable, is_available)


def _replace(pairs: Mapping[str, Pair], limit: int, is_available: Test) -> Moves:
    """Unavailable old pods are replaced at once; available ones within maxUnavailable."""
    missing = 0
    useless: list[Obj] = []
    candidates: list[Obj] = []
    for pair in pairs.values():
        if not pair.clear or (pair.old is None) == (pair.new is None):
            missing += 1
        elif pair.new is not None:
            missing += 0 if is_available(pair.new) else 1
        elif pair.old is not None and not is_available(pair.old):
            useless.append(pair.old)
            missing += 1
        elif pair.old is not None:
            candidates.append(pair.old)
    return Moves(delete=[*useless, *candidates[: max(0, limit - missing)]])


def _surge(pairs: Mapping[str, Pair], limit: int, is_available: Test) -> Moves:
    """New pods start beside old ones, which are deleted once the new one is available or they are not."""
    moves = Moves()
    doubled = 0
    candidates: list[str] = []
    for node, pair in pairs.items():
        if not pair.clear:
            doubled += 1
        elif pair.old is None:
            continue
        elif pair.new is None:
            (candidates if is_available(pair.old) else moves.create_on).append(node)
        elif not is_available(pair.old) or is_available(pair.new):
            moves.delete.append(pair.old)
        else:
            doubled += 1
    moves.create_on += candidates[: max(0, limit - doubled)]
    return moves
