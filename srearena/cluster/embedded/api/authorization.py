"""What a user may do: RBAC, read from the Role, ClusterRole and binding objects as they are at this moment.

Rules are compiled per user and namespace and kept until any of those objects changes. A ClusterRole with an
aggregationRule grants what the roles it selects grant, also before the controller has written that into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig, labels_of, name_of
from srearena.cluster.embedded.registry.errors import ApiError, Forbidden
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Change, Store

GROUP: Final = "rbac.authorization.k8s.io"
ROLES: Final = f"roles.{GROUP}"
CLUSTER_ROLES: Final = f"clusterroles.{GROUP}"
ROLE_BINDINGS: Final = f"rolebindings.{GROUP}"
CLUSTER_ROLE_BINDINGS: Final = f"clusterrolebindings.{GROUP}"
_NODES: Final = "system:nodes"
_CACHED_USERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a request."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""
    """Set for paths outside the API instead of the fields above."""

    def message(self, user: User) -> str:
        if self.path:
            return f"User {quoted(user.name)} cannot {self.verb} path {quoted(self.path)}"
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f"in the namespace {quoted(self.namespace)}" if self.namespace else "at the cluster scope"
        what = f"resource {quoted(resource)} in API group {quoted(self.group)} {where}"
        return f"User {quoted(user.name)} cannot {self.verb} {what}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One PolicyRule, compiled, and where it comes from."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    urls: tuple[str, ...]
    source: str
    wire: Obj

    def allows(self, attributes: Attributes) -> bool:
        if "*" not in self.verbs and attributes.verb not in self.verbs:
            return False
        if attributes.path:
            return any(_url_matches(url, attributes.path) for url in self.urls)
        if "*" not in self.groups and attributes.group not in self.groups:
            return False
        if self.names and attributes.name not in self.names:
            return False
        if "*" in self.resources:
            return True
        if attributes.subresource:
            full = f"{attributes.resource}/{attributes.subresource}"
            return full in self.resources or f"*/{attributes.subresource}" in self.resources
        return attributes.resource in self.resources


def _url_matches(rule: str, path: str) -> bool:
    return rule in ("*", path) or (rule.endswith("*") and path.startswith(rule[:-1]))


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grants:
    """All rules of one user in one namespace (or at the cluster scope, for the empty one)."""

    rules: tuple[Rule, ...]
    errors: tuple[str, ...]


class Authorizer:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._grants: dict[tuple[str, tuple[str, ...], str], Grants] = {}
        for resource in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            store.subscribe(self._changed, resource)

    def _changed(self, change: Change) -> None:
        self._grants.clear()

    def decide(self, user: User, attributes: Attributes) -> Decision:
        if SUPERUSERS in user.groups:
            return Decision(True)
        grants = self.grants(user, attributes.namespace)
        for rule in grants.rules:
            if rule.allows(attributes):
                return Decision(True, f"RBAC: allowed by {rule.source}")
        return Decision(False, f"RBAC: {_joined(grants.errors)}" if grants.errors else "")

    def check(self, user: User, attributes: Attributes) -> None:
        """Forbidden, in the server's words, unless the user may do this."""
        decision = self.decide(user, attributes)
        if decision.allowed:
            return
        resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
        why = attributes.message(user)
        if decision.reason:
            why = f"{why}: {decision.reason}"
        raise Forbidden("" if attributes.path else resource, "" if attributes.path else attributes.name, why)

    def grants(self, user: User, namespace: str) -> Grants:
        key = (user.name, user.groups, namespace)
        found = self._grants.get(key)
        if found is None:
            if len(self._grants) >= _CACHED_USERS:
                self._grants.clear()
            errors: list[str] = []
            rules = tuple(self._collect(user, namespace, errors))
            found = self._grants[key] = Grants(rules, tuple(errors))
        return found

    def _collect(self, user: User, namespace: str, errors: list[str]) -> Iterator[Rule]:
        if _NODES in user.groups and (role := self._store.get(CLUSTER_ROLES, "", "system:node")):
            yield from (compiled(rule, "the node authorizer") for rule in self.rules_of(role))
        for binding in self._store.objects(CLUSTER_ROLE_BINDINGS):
            if subject := _matching(binding, user, ""):
                source = f"ClusterRoleBinding {quoted(name_of(binding))} of {_reference(binding)} to {subject}"
                yield from self._granted(binding, "", source, errors)
        if not namespace:
            return
        for binding in self._store.objects(ROLE_BINDINGS, namespace):
            if subject := _matching(binding, user, namespace):
                name = f"{name_of(binding)}/{namespace}"
                source = f"RoleBinding {quoted(name)} of {_reference(binding)} to {subject}"
                yield from self._granted(binding, namespace, source, errors)

    def _granted(self, binding: Obj, namespace: str, source: str, errors: list[str]) -> Iterator[Rule]:
        try:
            rules = self.referenced_rules(binding.get("roleRef") or {}, namespace)
        except RoleMissing as missing:
            errors.append(str(missing))
            return
        for rule in rules:
            yield compiled(rule, source)

    def referenced_rules(self, reference: Obj, namespace: str) -> list[Obj]:
        """The rules of the role that a binding refers to."""
        kind, name = reference.get("kind", ""), reference.get("name", "")
        if kind == "ClusterRole":
            role = self._store.get(CLUSTER_ROLES, "", name)
        elif kind == "Role":
            role = self._store.get(ROLES, namespace, name)
        else:
            raise RoleMissing(f"unsupported role reference kind: {quoted(kind)}")
        if role is None:
            raise RoleMissing(f"{kind.lower()}.{GROUP} {quoted(name)} not found")
        return self.rules_of(role)

    def rules_of(self, role: Obj) -> list[Obj]:
        rules = list(role.get("rules") or ())
        for selector in dig(role, "aggregationRule", "clusterRoleSelectors", default=()):
            try:
                matcher = label_selector_of(selector)
            except ApiError:
                continue
            for other in self._store.objects(CLUSTER_ROLES):
                if name_of(other) != name_of(role) and matcher.matches(labels_of(other)):
                    rules.extend(rule for rule in other.get("rules") or () if rule not in rules)
        return rules


class RoleMissing(Exception):
    """A binding refers to a role that is not there."""


def compiled(rule: Obj, source: str) -> Rule:
    def strings(key: str) -> frozenset[str]:
        return frozenset(rule.get(key) or ())

    return Rule(
        strings("verbs"),
        strings("apiGroups"),
        strings("resources"),
        strings("resourceNames"),
        tuple(rule.get("nonResourceURLs") or ()),
        source,
        rule,
    )


def _matching(binding: Obj, user: User, namespace: str) -> str:
    """The first subject of a binding that is this user, as reasons describe it; empty if none is."""
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if (kind == "User" and name == user.name) or (kind == "Group" and name in user.groups):
            return f"{kind} {quoted(name)}"
        if kind == "ServiceAccount":
            home = subject.get("namespace") or namespace
            if user.name == f"system:serviceaccount:{home}:{name}":
                return f"ServiceAccount {quoted(f'{name}/{home}')}"
    return ""


def _reference(binding: Obj) -> str:
    reference = binding.get("roleRef") or {}
    return f"{reference.get('kind', '')} {quoted(reference.get('name', ''))}"


def _joined(errors: Iterable[str]) -> str:
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
