"""Aggregated ClusterRoles: their rules are those of the roles their selectors find."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, labels_of, name_of
from srearena.cluster.embedded.registry.selectors import label_selector_of

ROLES = "clusterroles.rbac.authorization.k8s.io"


class RoleAggregation(Controller):
    name = "clusterrole-aggregation-controller"

    def start(self) -> None:
        self.watch(ROLES, lambda role: [name_of(r) for r in self.store.objects(ROLES) if r.get("aggregationRule")])

    def reconcile(self, key: str) -> None:
        role = self.client.get(ROLES, "", key)
        if role is None or not role.get("aggregationRule"):
            return
        rules: list[Obj] = []
        for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
            matcher = label_selector_of(selector)
            for other in self.store.objects(ROLES):
                if name_of(other) != key and matcher.matches(labels_of(other)):
                    rules += [rule for rule in other.get("rules") or () if rule not in rules]
        if rules != (role.get("rules") or []):
            self.client.modify(ROLES, "", key, lambda obj: obj.update(rules=rules))
