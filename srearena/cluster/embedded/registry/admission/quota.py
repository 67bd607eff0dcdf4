"""ResourceQuota: a write that would take a namespace over one of its quotas is refused, or else counted at once."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, dig, name_of
from srearena.cluster.embedded.quantity import ZERO, Quantity, parse
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.quota_usage import Usage, counted_limits, in_scope, missing_from_pod, usage_of
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
        if not self._store.count(QUOTAS):
            return
        resource = attributes.row.group_resource
        after = usage_of(resource, obj)
        before = usage_of(resource, attributes.old) if attributes.old is not None else {}
        quotas = [q for q in self._store.objects(QUOTAS, attributes.namespace) if in_scope(q, resource, obj)]
        for quota in quotas:
            self._check_stated(attributes, quota, resource, obj)
        charges: list[tuple[Obj, Usage]] = []
        for quota in quotas:
            limits = counted_limits(quota)
            # An object that comes into a quota's scope by this write is new to it.
            known = before if attributes.old is not None and in_scope(quota, resource, attributes.old) else {}
            added = {
                name: after.get(name, ZERO) - known.get(name, ZERO)
                for name in limits
                if after.get(name, ZERO) - known.get(name, ZERO) > ZERO
            }
            self._check(attributes, quota, limits, added)
            if added:
                charges.append((quota, added))
        if not attributes.dry_run:
            for quota, added in charges:
                self._charge(quota, added)

    def _check_stated(self, attributes: Attributes, quota: Obj, resource: str, obj: Obj) -> None:
        """A pod must state what a quota limits, and the quota must know what is used already."""
        limits = counted_limits(quota)
        if resource == "pods" and attributes.operation == "CREATE":
            missing = missing_from_pod(obj, limits)
            if missing:
                raise attributes.refusal(f"failed quota: {name_of(quota)}: must specify {'; '.join(missing)}")
        uncounted = sorted(name for name in usage_of(resource, obj) if name in limits)
        if any(name not in dig(quota, "status", "used", default={}) for name in uncounted):
            raise attributes.refusal(f"status unknown for quota: {name_of(quota)}, resources: {','.join(uncounted)}")

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
        status = {**(current.get("status") or {}), "used": used}
        self._store.put(QUOTAS, {**current, "metadata": dict(current["metadata"]), "status": status})
