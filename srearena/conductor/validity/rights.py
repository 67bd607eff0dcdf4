"""What an identity can reach in a cluster beyond its own rights, by the accounts that it can act as.

An identity that may create pods (or anything that creates pods) in a namespace, run commands in pods there, read or
write Secrets there, or request tokens can act as every service account of that namespace; from there the same applies
to what that account may do. The walk reads RBAC objects only, so it works on any cluster.

A webhook that sees pods or Secrets of other namespaces, and a node's file system, give access to accounts too. So the
right to create or change admission configuration counts as reaching every namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from srearena.service.kubernetes import Kubernetes, Obj

_MAKE_PODS = {
    "": ("pods", "replicationcontrollers"),
    "apps": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "batch": ("jobs", "cronjobs"),
}
_CHANGES = ("create", "update", "patch")
_SESSIONS = ("pods/exec", "pods/attach", "pods/ephemeralcontainers")
_ADMISSION = "admissionregistration.k8s.io"
_INTERCEPTORS = (
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicies",
)
_EVERYWHERE = ""


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource (or path); `namespace` is empty for the whole cluster, `name` for all objects."""

    verb: str
    group: str
    resource: str
    namespace: str = _EVERYWHERE
    name: str = ""

    def covers(self, other: Right) -> bool:
        return (
            self.verb in ("*", other.verb)
            and self.group in ("*", other.group)
            and (self.resource in ("*", other.resource) or _prefix(self.resource, other.resource))
            and self.namespace in (_EVERYWHERE, other.namespace)
            and self.name in ("", other.name)
        )

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        group = f".{self.group}" if self.group not in ("", "url") else ""
        return f"{self.verb} {self.resource}{group}{f'/{self.name}' if self.name else ''}{where}"


@dataclass(frozen=True, slots=True, order=True)
class Account:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        return ("system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated")


class Rights:
    """The rights of all service accounts of a cluster, as its roles and bindings are now."""

    def __init__(self, api: Kubernetes) -> None:
        self.accounts = [
            Account(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in api.list("serviceaccounts")
        ]
        self._roles = {
            (str(obj["metadata"].get("namespace", "")), str(obj["metadata"]["name"])): obj.get("rules") or []
            for resource in ("roles", "clusterroles")
            for obj in api.list(resource)
        }
        self._bindings = [obj for resource in ("rolebindings", "clusterrolebindings") for obj in api.list(resource)]

    def of(self, account: Account) -> list[Right]:
        found: list[Right] = []
        for binding in self._bindings:
            namespace = str(binding["metadata"].get("namespace", ""))
            if any(_is(subject, account, namespace) for subject in binding.get("subjects") or ()):
                role = binding["roleRef"]
                location = namespace if role["kind"] == "Role" else ""
                found += _expanded(self._roles.get((location, role["name"]), ()), namespace)
        return list(dict.fromkeys(found))

    def reachable(self, account: Account) -> list[Account]:
        """The accounts that this one can act as, itself included, in the order of the walk."""
        reached = [account]
        for current in reached:
            rights = self.of(current)
            everywhere = any(_intercepts(right) for right in rights)
            for other in self.accounts:
                if other not in reached and (everywhere or any(_acts_as(right, other) for right in rights)):
                    reached.append(other)
        return reached

    def excess(self, account: Account) -> list[str]:
        """What the account can reach and may not do itself, as lines; empty where it cannot widen its rights."""
        own = self.of(account)
        return [
            f"{other}: {right}"
            for other in self.reachable(account)
            for right in self.of(other)
            if not any(mine.covers(right) for mine in own)
        ]


def _is(subject: Obj, account: Account, namespace: str) -> bool:
    if subject["kind"] == "Group":
        return subject["name"] in account.groups
    if subject["kind"] == "User":
        return str(subject["name"]) == f"system:serviceaccount:{account.namespace}:{account.name}"
    return Account(str(subject.get("namespace") or namespace), str(subject["name"])) == account


def _expanded(rules: Iterable[Obj], namespace: str) -> Iterator[Right]:
    for rule in rules:
        for verb, url in product(rule["verbs"], rule.get("nonResourceURLs") or ()):
            yield Right(verb, "url", url)
        for verb, group, resource in product(rule["verbs"], rule.get("apiGroups") or (), rule.get("resources") or ()):
            for name in rule.get("resourceNames") or ("",):
                yield Right(verb, group, resource, namespace, name)


def _prefix(own: str, other: str) -> bool:
    """Whether a pattern of paths or of subresources covers another one."""
    return (own.endswith("*") and other.startswith(own[:-1])) or (
        own.startswith("*/") and other.endswith(own[1:]) and "/" in other
    )


def _intercepts(right: Right) -> bool:
    return any(
        right.covers(Right(verb, _ADMISSION, resource, name=right.name))
        for verb, resource in product(_CHANGES, _INTERCEPTORS)
    )


def _acts_as(right: Right, account: Account) -> bool:
    """Whether one right is enough to act as an account."""
    namespace = account.namespace
    wanted = [
        Right(verb, group, resource, namespace, right.name)
        for group, resources in _MAKE_PODS.items()
        for verb, resource in product(_CHANGES, resources)
        if not (verb != "create" and resource == "pods")  # the account of a pod is fixed
    ]
    wanted += [
        Right(verb, "", resource, namespace, right.name) for verb, resource in product(("create", "get"), _SESSIONS)
    ]
    wanted += [Right(verb, "", "secrets", namespace, right.name) for verb in ("get", "list", "watch", "create")]
    wanted += [
        Right("create", "", "serviceaccounts/token", namespace, account.name),
        Right("impersonate", "", "serviceaccounts", namespace, account.name),
    ]
    return any(right.covers(one) for one in wanted)
