"""Roles and their bindings."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.strategies.parts import fill_empty, items, part
from srearena.cluster.embedded.registry.strategy import Strategy

GROUP = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS = {"User": GROUP, "Group": GROUP}


def _default_role(obj: Obj) -> None:
    obj.setdefault("rules", None)


def _default_binding(obj: Obj) -> None:
    fill_empty(part(obj, "roleRef"), {"apiGroup": GROUP})
    for subject in items(obj, "subjects"):
        group = _SUBJECT_GROUPS.get(subject.get("kind", ""))
        if group and not subject.get("apiGroup"):
            subject["apiGroup"] = group


_ROLE = Strategy(default=_default_role, name_errors=names.path_segment_errors)
_BINDING = Strategy(default=_default_binding, name_errors=names.path_segment_errors)

STRATEGIES = {
    f"roles.{GROUP}": _ROLE,
    f"clusterroles.{GROUP}": _ROLE,
    f"rolebindings.{GROUP}": _BINDING,
    f"clusterrolebindings.{GROUP}": _BINDING,
}
