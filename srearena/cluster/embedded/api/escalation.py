"""Privilege escalation check on writing roles and bindings: users cannot grant rules they do not have.

Writing a role is allowed to who has all its rules (or may `escalate`), binding one to who has all rules of the role
bound (or may `bind` it). What is missing is named in the refusal, in the real server's compact notation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

from srearena.cluster.embedded.api.authorization import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    Attributes,
    Authorizer,
    RoleMissing,
    compiled,
)
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.registry.errors import Forbidden, NotFound
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from srearena.cluster.embedded.registry.resources import Resource

GUARDED: Final = frozenset({ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS})
_FIELDS: Final = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def check(authorizer: Authorizer, row: Resource, user: User, namespace: str, new: Obj, old: Obj | None) -> None:
    """Forbidden if writing `new` would grant more than the user has."""
    if SUPERUSERS in user.groups or row.group_resource not in GUARDED:
        return
    if row.group_resource in (ROLES, CLUSTER_ROLES):
        _check_role(authorizer, row, user, namespace, new, old)
    else:
        _check_binding(authorizer, row, user, namespace, new, old)


def _check_role(authorizer: Authorizer, row: Resource, user: User, namespace: str, new: Obj, old: Obj | None) -> None:
    same = ("rules", "aggregationRule")
    if old is not None and all((new.get(key) or None) == (old.get(key) or None) for key in same):
        return
    wanted = Attributes("escalate", GROUP, row.plural, "", name_of(new), namespace)
    if authorizer.decide(user, wanted).allowed:
        return
    rules = list(new.get("rules") or ())
    if new.get("aggregationRule"):
        # An aggregation rule can add any rule, so the user must have them all.
        rules = [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]
    _check_held(authorizer, row, user, namespace, name_of(new), rules)


def _check_binding(
    authorizer: Authorizer, row: Resource, user: User, namespace: str, new: Obj, old: Obj | None
) -> None:
    same = ("roleRef", "subjects")
    if old is not None and all((new.get(key) or None) == (old.get(key) or None) for key in same):
        return
    reference = new.get("roleRef") or {}
    kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
    plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind, "")
    wanted = Attributes("bind", GROUP, plural, "", name, namespace)
    if plural and authorizer.decide(user, wanted).allowed:
        return
    try:
        rules = authorizer.referenced_rules(reference, namespace)
    except RoleMissing:
        # The registry of bindings names its own resource in whatever it did not find.
        raise NotFound(row.group_resource, name) from None
    _check_held(authorizer, row, user, namespace, name_of(new), rules)


def _check_held(authorizer: Authorizer, row: Resource, user: User, namespace: str, name: str, rules: list[Obj]) -> None:
    grants = authorizer.grants(user, namespace)
    missing = [rule for rule in _broken_down(rules) if not _covered(rule, (granted.wire for granted in grants.rules))]
    if not missing:
        return
    groups = " ".join(quoted(group) for group in user.groups)
    described = "\n".join(sorted({_text(rule) for rule in _compact(missing)}))
    why = (
        f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n"
        f"{described}"
    )
    if grants.errors:
        why += f"; resolution errors: [{', '.join(grants.errors)}]"
    raise Forbidden(row.group_resource, name, why)


def _broken_down(rules: Iterable[Obj]) -> Iterator[Obj]:
    """Rules of one verb on one thing each."""
    for rule in rules:
        verbs = rule.get("verbs") or ()
        for url, verb in product(rule.get("nonResourceURLs") or (), verbs):
            yield {"nonResourceURLs": [url], "verbs": [verb]}
        for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
            single = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            names = rule.get("resourceNames") or ()
            yield from ({**single, "resourceNames": [name]} for name in names) if names else (single,)


def _covered(single: Obj, granted: Iterable[Obj]) -> bool:
    return any(_covers(rule, single) for rule in granted)


def _covers(rule: Obj, single: Obj) -> bool:
    owner = compiled(rule, "")
    verb = single["verbs"][0]
    if "*" not in owner.verbs and verb not in owner.verbs:
        return False
    if "nonResourceURLs" in single:
        url = single["nonResourceURLs"][0]
        return any(mine in ("*", url) or (mine.endswith("*") and url.startswith(mine[:-1])) for mine in owner.urls)
    if "*" not in owner.groups and single["apiGroups"][0] not in owner.groups:
        return False
    names = single.get("resourceNames")
    if owner.names and (not names or names[0] not in owner.names):
        return False
    resource = single["resources"][0]
    if "*" in owner.resources or resource in owner.resources:
        return True
    _, slash, part = resource.partition("/")
    return bool(slash) and f"*/{part}" in owner.resources


def _compact(rules: list[Obj]) -> list[Obj]:
    """Verbs on the same resource together again."""
    merged: dict[tuple[str, str], Obj] = {}
    result: list[Obj] = []
    for rule in rules:
        if "nonResourceURLs" in rule or "resourceNames" in rule:
            result.append(rule)
            continue
        key = (rule["apiGroups"][0], rule["resources"][0])
        if key in merged:
            merged[key]["verbs"] += [verb for verb in rule["verbs"] if verb not in merged[key]["verbs"]]
        else:
            merged[key] = {**rule, "verbs": list(rule["verbs"])}
            result.append(merged[key])
    return result


def _text(rule: Obj) -> str:
    parts = [f"{label}:[{' '.join(quoted(value) for value in rule[key])}]" for label, key in _FIELDS if rule.get(key)]
    return "{" + ", ".join(parts) + "}"
