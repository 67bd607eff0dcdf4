"""Resource quotas: recompute usage when relevant objects of a namespace change."""

from __future__ import annotations

from collections.abc import Collection

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, key_of, namespace_of
from srearena.cluster.embedded.quantity import ZERO
from srearena.cluster.embedded.registry.quota_usage import hard_limits, in_scope, usage_of
from srearena.cluster.embedded.store import Change

QUOTAS = "resourcequotas"
_REACTION = 0.5


class ResourceQuotaController(Controller):
    name = "resourcequota-controller"

    def start(self) -> None:
        self.watch(QUOTAS)
        self.store.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if not self.store.count(QUOTAS) or change.resource == QUOTAS:
            return
        if change.type == "MODIFIED" and (
            change.resource not in ("pods", "services", "persistentvolumeclaims") or _same_use(change)
        ):
            return
        for quota in self.store.objects(QUOTAS, namespace_of(change.new)):
            self.enqueue(key_of(quota), _REACTION)

    def reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        quota = self.client.get(QUOTAS, namespace, name)
        if quota is None or is_terminating(quota):
            return
        used = dict.fromkeys(hard_limits(quota), ZERO)
        for row in self.world.registry.resources:
            if not row.namespaced or not _names(row.group_resource, used):
                continue
            for obj in self.store.objects(row.storage_key, namespace):
                if not in_scope(quota, row.group_resource, obj):
                    continue
                for what, amount in usage_of(row.group_resource, obj).items():
                    if what in used:
                        used[what] = used[what] + amount
        status = {
            "hard": dig(quota, "spec", "hard", default={}),
            "used": {what: str(amount) for what, amount in used.items()},
        }
        if status != quota.get("status"):
            self.client.set_status(QUOTAS, quota, status)


def _names(resource: str, limited: Collection[str]) -> bool:
    """Whether any limit can be about that resource."""
    if f"count/{resource}" in limited or resource in limited:
        return True
    return resource in ("pods", "services", "persistentvolumeclaims")


def _same_use(change: Change) -> bool:
    old: Obj = change.old or {}
    return usage_of(change.resource, old) == usage_of(change.resource, change.new)
