"""Eviction: deleting a pod as far as the disruption budgets that cover it allow.

The budget is charged before the pod is deleted, so that two evictions at once cannot both take the last disruption;
the disruption controller sees the charge in `status.disruptedPods` and does not count the pod twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.decoding import object_in
from srearena.cluster.embedded.api.options import checked_delete_options, write_wish
from srearena.cluster.embedded.api.pod_containers import stored_pod
from srearena.cluster.embedded.api.presenting import show
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.views import view_of_kind
from srearena.cluster.embedded.api.waiting import settled
from srearena.cluster.embedded.api.writing import success
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    dig,
    is_terminating,
    labels_of,
    meta,
    name_of,
    with_condition,
)
from srearena.cluster.embedded.registry import deletion
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, Forbidden, TooManyRequests
from srearena.cluster.embedded.registry.registry import WriteOptions
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.selectors import label_selector_of

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

BUDGETS: Final = "poddisruptionbudgets.policy"
_MOST_DISRUPTED: Final = 2_000
_FREE_PHASES: Final = ("Succeeded", "Failed", "Pending")
_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


async def create(backend: Backend, request: Request, row: Resource) -> None:
    wished = write_wish(request, "CreateOptions")
    eviction = object_in(await request.body(), request, view_of_kind("policy/v1", "Eviction"), wished)
    options = wished.options()
    namespace, name = request.info.namespace, request.info.name
    if name_of(eviction) not in ("", name):
        raise BadRequest("name in URL does not match name in Eviction object")
    wish = checked_delete_options(eviction.get("deleteOptions") or {})
    options.dry_run = options.dry_run or bool(wish.pop("dryRun", None))
    pod = stored_pod(backend, namespace, name)
    if not _free_to_go(pod):
        _charge(backend, pod, options)
    await settled(lambda: _delete(backend, row, namespace, name, dict(wish), options))
    await show(request, {**success({}), "code": 201}, 201)


def _free_to_go(pod: Obj) -> bool:
    return is_terminating(pod) or dig(pod, "status", "phase") in _FREE_PHASES


def _budgets(backend: Backend, pod: Obj) -> list[Obj]:
    found = []
    for budget in backend.store.objects(BUDGETS, meta(pod)["namespace"]):
        try:
            selector = label_selector_of(dig(budget, "spec", "selector"))
        except ApiError:
            continue
        if selector.matches(labels_of(pod)):
            found.append(budget)
    return found


def _charge(backend: Backend, pod: Obj, options: WriteOptions) -> None:
    """Take one disruption from the budget of the pod; refuse where there is none left."""
    budgets = _budgets(backend, pod)
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(message, code=500)
    if not budgets or _unhealthy_may_go(pod, budgets[0]):
        return
    budget = budgets[0]
    status = budget.get("status") or {}
    name, allowed = name_of(budget), status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < meta(budget).get("generation", 0):
        raise TooManyRequests.disruption_budget_unsettled(name)
    if allowed < 0:
        raise Forbidden("poddisruptionbudget", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise Forbidden("poddisruptionbudget", name, why)
    if allowed == 0:
        raise TooManyRequests.disruption_budget(name, status.get("desiredHealthy", 0), status.get("currentHealthy", 0))
    if options.dry_run:
        return
    now = backend.world.clock.timestamp()

    def change(current: Obj) -> Obj:
        noted = current["status"]
        noted["disruptionsAllowed"] -= 1
        noted["disruptedPods"] = {**(noted.get("disruptedPods") or {}), name_of(pod): now}
        return current

    row = backend.registry.row(BUDGETS)
    backend.registry.update(row, meta(pod)["namespace"], name, change, options, subresource="status")


def _unhealthy_may_go(pod: Obj, budget: Obj) -> bool:
    """Whether an unhealthy pod may be evicted: by unhealthyPodEvictionPolicy, or because the budget is satisfied."""
    if condition_is(pod, "Ready"):
        return False
    if dig(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _delete(backend: Backend, row: Resource, namespace: str, name: str, wish: Obj, options: WriteOptions) -> None:
    if not options.dry_run and not is_terminating(stored_pod(backend, namespace, name)):
        now = backend.world.clock.timestamp()

        def mark(pod: Obj) -> Obj:
            status = pod.setdefault("status", {})
            status["conditions"] = with_condition(status.get("conditions") or (), dict(_TARGET), now)
            return pod

        backend.registry.update(row, namespace, name, mark, options, subresource="status")
    deletion.delete(backend.registry, row, namespace, name, wish, options)
