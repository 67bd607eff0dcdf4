"""Shared by controllers of pod sets: ownership, creation from a template, and ranking of pods.

Adopting, releasing and ranking follow the real controllers, since their effects are visible: the order of
deletion when a workload is scaled down is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cmp_to_key
from math import log2

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    condition,
    condition_is,
    controller_of,
    copy_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.selectors import LabelSelector, label_selector_of
from srearena.cluster.embedded.store import Store

_PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def selector_of(owner: Obj) -> LabelSelector:
    return label_selector_of(dig(owner, "spec", "selector"))


def is_active(pod: Obj) -> bool:
    """Whether the pod counts as one of its controller's replicas."""
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return False
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def ready_since(pod: Obj) -> float | None:
    found = condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return None
    return parse_time(found["lastTransitionTime"]) if found.get("lastTransitionTime") else 0.0


def is_available(pod: Obj, min_ready_seconds: int, now: float) -> bool:
    if not min_ready_seconds:
        return condition_is(pod, "Ready")
    since = ready_since(pod)
    return since is not None and since + min_ready_seconds <= now


def keys_of_pod(
    store: Store, resource: str, kind: str, pod: Obj, selector: Callable[[Obj], LabelSelector] = selector_of
) -> list[str]:
    """The controllers of a kind that a pod is relevant for: its owner, or all whose selector matches."""
    owner = controller_of(pod)
    if owner is not None:
        return [f"{namespace_of(pod)}/{owner['name']}"] if owner["kind"] == kind else []
    return [
        key_of(candidate)
        for candidate in store.objects(resource, namespace_of(pod))
        if selector(candidate).matches(labels_of(pod))
    ]


def claim_pods(
    client: Client,
    store: Store,
    owner: Obj,
    selector: LabelSelector,
    member: Callable[[Obj], bool] = lambda pod: True,
) -> list[Obj]:
    """The pods of a controller: its own that still match; matching orphans are adopted, non-matching ones released.

    `member` says which pods can be its own at all, beside what their labels say.
    """
    kept: list[Obj] = []
    uid = uid_of(owner)
    for resource, pod in store.owned_by(uid):
        if resource != "pods" or (controller_of(pod) or {}).get("uid") != uid:
            continue
        if selector.matches(labels_of(pod)) and member(pod):
            kept.append(pod)
        elif not is_terminating(owner):
            _release(client, owner, pod)
    if is_terminating(owner):
        return kept
    for pod in store.indexed("pods", "orphans", namespace_of(owner)):
        if selector.matches(labels_of(pod)) and is_active(pod) and member(pod):
            adopted = _adopt(client, owner, pod)
            if adopted is not None:
                kept.append(adopted)
    return kept


def orphan_index(pod: Obj) -> tuple[str, ...]:
    """Index keys under which pods without a controller are found: their namespace."""
    return () if controller_of(pod) else (namespace_of(pod),)


def _adopt(client: Client, owner: Obj, pod: Obj) -> Obj | None:
    def change(current: Obj) -> None:
        current["metadata"].setdefault("ownerReferences", []).append(owner_reference(owner))

    return client.modify("pods", namespace_of(pod), name_of(pod), change)


def _release(client: Client, owner: Obj, pod: Obj) -> None:
    def change(current: Obj) -> None:
        references = [r for r in meta(current).get("ownerReferences") or () if r.get("uid") != uid_of(owner)]
        current["metadata"].pop("ownerReferences", None)
        if references:
            current["metadata"]["ownerReferences"] = references

    client.modify("pods", namespace_of(pod), name_of(pod), change)


def pod_from_template(owner: Obj, template: Obj) -> Obj:
    """A pod as the template describes it, owned by `owner` and named by the server."""
    pod = copy_of(template)
    metadata: Obj = {"generateName": f"{name_of(owner)}-", "namespace": namespace_of(owner)}
    source = pod.get("metadata") or {}
    for key in ("labels", "annotations", "finalizers"):
        if source.get(key):
            metadata[key] = source[key]
    metadata["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.get("spec") or {}}


def deletion_order(pods: list[Obj], now: float, crowding: Mapping[str, int] | None = None) -> list[Obj]:
    """Deletion order: unassigned, pending, unready, lower deletion cost, more related pods on the node, younger.

    `crowding` counts related pods by node. Ages are compared by their order of magnitude, and the UID
    breaks ties, so that not always the newest is deleted.
    """
    crowds = crowding or {}

    def rank(pod: Obj) -> tuple[int, ...]:
        node = dig(pod, "spec", "nodeName", default="")
        return (
            1 if node else 0,
            _PHASE_RANK.get(dig(pod, "status", "phase"), 0),
            1 if condition_is(pod, "Ready") else 0,
            _cost(pod),
            -crowds.get(node, 0),
        )

    def compare(one: tuple[tuple[int, ...], Obj], other: tuple[tuple[int, ...], Obj]) -> int:
        if one[0] != other[0]:
            return -1 if one[0] < other[0] else 1
        return _compare_ages(one[1], other[1], now)

    ranked = [(rank(pod), pod) for pod in pods]
    return [pod for _, pod in sorted(ranked, key=cmp_to_key(compare))]


def _compare_ages(one: Obj, other: Obj, now: float) -> int:
    verdict = _compare_moments(ready_since(one), ready_since(other), one, other, now)
    if verdict:
        return verdict
    restarts = _most_restarts(other) - _most_restarts(one)
    if restarts:
        return restarts
    born = (parse_time(meta(pod)["creationTimestamp"]) for pod in (one, other))
    return _compare_moments(next(born), next(born), one, other, now) or _by_uid(one, other)


def _compare_moments(mine: float | None, theirs: float | None, one: Obj, other: Obj, now: float) -> int:
    if mine is None or theirs is None or mine == theirs:
        return 0
    return _magnitude(now - mine) - _magnitude(now - theirs) or _by_uid(one, other)


def _magnitude(age: float) -> int:
    return int(log2(age * 1e9)) if age > 0 else -1


def _by_uid(one: Obj, other: Obj) -> int:
    return -1 if uid_of(one) < uid_of(other) else 1


def _most_restarts(pod: Obj) -> int:
    statuses = dig(pod, "status", "containerStatuses", default=())
    return max((int(status.get("restartCount", 0)) for status in statuses), default=0)


def _cost(pod: Obj) -> int:
    text = annotations_of(pod).get("controller.kubernetes.io/pod-deletion-cost", "")
    try:
        return int(text) if text else 0
    except ValueError:
        return 0


def is_refused_for_good(problem: ApiError) -> bool:
    """Whether creation fails because the namespace is being deleted."""
    return any(cause.get("reason") == "NamespaceTerminating" for cause in problem.causes)
