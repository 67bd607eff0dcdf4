"""ResourceQuota: a write that would take a namespace over one of its quotas is refused, or else counted at once."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, dig, name_of
from srearena.cluster.embedded.quantity import ZERO, Quantity, parse
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.quota_usage import Usage, hard_limits, in_scope, missing_from_pod, usage_of
from srearena.cluster.embedded.store import Store

QUOTAS = "resourcequotas"


class ResourceQuota(Plugin):
    name = "ResourceQuota"

    def __init__(self, store: Store) -> None:
        self._store = store

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None or attributes.subresource or attributes.operation not in ("CREATE", "UPDATE"):
            return
        if not self._store.count(QUOTAS) or attributes.row.group_resource == QUOTAS:
            return
        resource = attributes.row.group_resource
        after = usage_of(resource, obj)
        before = usage_of(resource, attributes.old) if attributes.old is not None else {}
        charges: list[tuple[Obj, Usage]] = []
        for quota in self._store.objects(QUOTAS, attributes.namespace):
            if not in_scope(quota, resource, obj):
                continue
            limits = hard_limits(quota)
            if resource == "pods" and attributes.operation == "CREATE":
                missing = missing_from_pod(obj, limits)
                if missing:
                    why = f"failed quota: {name_of(quota)}: must specify {'; '.join(missing)}"
                    raise attributes.refusal(why)
            added = {
                name: after.get(name, ZERO) - before.get(name, ZERO)
                for name in limits
                if after.get(name, ZERO) - before.get(name, ZERO) > ZERO
            }
            self._check(attributes, quota, limits, added)
            if added:
                charges.append((quota, added))
        if not attributes.dry_run:
            for quota, added in charges:
                self._charge(quota, added)

    def _check(self, attributes: Attributes, quota: Obj, limits: Usage, added: Usage) -> None:
        used = {name: parse(dig(quota, "status", "used", name, default="0")) for name in limits}
        over = sorted(name for name, amount in added.items() if used[name] + amount > limits[name])
        if not over:
            return

        def listed(amounts: Usage) -> str:
            return ",".join(f"{name}={amounts[name]}" for name in over)

        why = (
            f"exceeded quota: {name_of(quota)}, requested: {listed(added)}, "
            f"used: {listed(used)}, limited: {listed(limits)}"
        )
        raise attributes.refusal(why)

    def _charge(self, quota: Obj, added: Usage) -> None:
        """Count the new object now, so that the next write in the same moment meets the right number."""
        current = self._store.get(QUOTAS, quota["metadata"]["namespace"], name_of(quota)) or quota
        used = dict(dig(current, "status", "used", default={}))
        for name, amount in added.items():
            total: Quantity = parse(used.get(name, "0")) + amount
            used[name] = str(total)
        status = {**(current.get("status") or {}), "hard": dig(current, "spec", "hard", default={}), "used": used}
        self._store.put(QUOTAS, {**current, "metadata": dict(current["metadata"]), "status": status})
