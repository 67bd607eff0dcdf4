"""PodSecurity: the Pod Security Standards, as set by labels on a namespace.

`enforce` refuses pods; `warn`, which is as strict as `enforce` unless it says otherwise, adds a warning to writes of
pods and workloads. A namespace's own labels are validated, and stricter labels cause warnings about its pods that
would be rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, controller_of, dig, labels_of, name_of
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.admission.pod_security_checks import NEWEST_MINOR, Violation, violations
from srearena.cluster.embedded.registry.errors import FieldError, Invalid
from srearena.cluster.embedded.store import Store

_PREFIX = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")
_TEMPLATES: dict[str, tuple[str, ...]] = {
    "pods": (),
    "replicationcontrollers": ("spec", "template"),
    "podtemplates": ("template",),
    "replicasets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}
_POD_SUBRESOURCES = frozenset({"", "ephemeralcontainers", "resize"})
_PODS_LOOKED_AT = 3000


@dataclass(slots=True, frozen=True)
class Standard:
    """A level of the standards in a version: `restricted:v1.30`."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def reasons(self, pod: Obj) -> list[str]:
        return [found.reason for found in self._violations(pod)]

    def broken_by(self, pod: Obj) -> str:
        """`"restricted:latest": reason (detail), reason (detail)`; nothing for a pod that is fine."""
        found = self._violations(pod)
        return f"{quoted(str(self))}: {', '.join(map(str, found))}" if found else ""

    def _violations(self, pod: Obj) -> list[Violation]:
        minor = NEWEST_MINOR if self.version == "latest" else int(self.version.partition(".")[2])
        return violations(self.level, minor, pod.get("metadata") or {}, pod.get("spec") or {})


@dataclass(slots=True, frozen=True)
class Policy:
    enforce: Standard
    warn: Standard
    errors: tuple[FieldError, ...]


def policy_of(labels: dict[str, str]) -> Policy:
    """What a namespace asks for. A level that makes no sense is the strictest when enforced, none when warned of."""
    errors: list[FieldError] = []

    def level(mode: str, otherwise: str) -> str:
        key = _PREFIX + mode
        value = labels.get(key, "privileged")
        if value in _LEVELS:
            return value
        errors.append(FieldError.invalid(f"metadata.labels[{key}]", value, f"must be one of {', '.join(_LEVELS)}"))
        return otherwise

    def version(mode: str) -> str:
        key = f"{_PREFIX}{mode}-version"
        value = labels.get(key, "latest")
        if value == "latest" or _VERSION.fullmatch(value):
            return value
        errors.append(FieldError.invalid(f"metadata.labels[{key}]", value, 'must be "latest" or "v1.x"'))
        return "latest"

    enforce = Standard(level("enforce", "restricted"), version("enforce"))
    level("audit", "privileged")
    version("audit")
    warn = Standard(level("warn", "privileged"), version("warn"))
    if _PREFIX + "warn" not in labels and labels.get(_PREFIX + "enforce") in _LEVELS[1:]:
        warn = Standard(enforce.level, warn.version if _PREFIX + "warn-version" in labels else enforce.version)
    return Policy(enforce, warn, tuple(errors))


class PodSecurity(Plugin):
    name = "PodSecurity"

    def __init__(self, store: Store) -> None:
        self._store = store

    def validate(self, attributes: Attributes) -> None:
        resource = attributes.row.group_resource
        if attributes.obj is None or attributes.operation not in ("CREATE", "UPDATE"):
            return
        if resource == "namespaces" and not attributes.subresource:
            self._validate_namespace(attributes, attributes.obj)
        elif resource == "pods" and attributes.subresource in _POD_SUBRESOURCES:
            self._validate_pod(attributes, attributes.obj)
        elif resource in _TEMPLATES and resource != "pods" and not attributes.subresource:
            template = dig(attributes.obj, *_TEMPLATES[resource])
            if template:
                self._warn(attributes, self._policy(attributes), template)

    def _policy(self, attributes: Attributes) -> Policy:
        return policy_of(labels_of(self._store.get("namespaces", "", attributes.namespace) or {}))

    def _validate_pod(self, attributes: Attributes, pod: Obj) -> None:
        if attributes.old is not None and _images(attributes.old) == _images(pod):
            return
        policy = self._policy(attributes)
        broken = policy.enforce.broken_by(pod)
        if broken:
            raise attributes.refusal(f"violates PodSecurity {broken}")
        self._warn(attributes, policy, pod)

    @staticmethod
    def _warn(attributes: Attributes, policy: Policy, pod: Obj) -> None:
        broken = policy.warn.broken_by(pod)
        if broken:
            attributes.warnings.append(f"would violate PodSecurity {broken}")

    def _validate_namespace(self, attributes: Attributes, namespace: Obj) -> None:
        new = policy_of(labels_of(namespace))
        old = policy_of(labels_of(attributes.old)) if attributes.old is not None else None
        if new.errors and (old is None or new.errors != old.errors):
            raise Invalid("Namespace", name_of(namespace), new.errors)
        if old is None or new.enforce == old.enforce or new.enforce.level == "privileged":
            return
        relaxed = _LEVELS.index(new.enforce.level) <= _LEVELS.index(old.enforce.level)
        if new.enforce.version == old.enforce.version and relaxed:
            return
        attributes.warnings.extend(self._unwelcome(name_of(namespace), new.enforce))

    def _unwelcome(self, namespace: str, enforce: Standard) -> list[str]:
        """Which pods are there that would not be let in any more: one per controller is looked at first."""
        alone: list[Obj] = []
        alike: list[Obj] = []
        seen: set[str] = set()
        for pod in self._store.objects("pods", namespace):
            owner = (controller_of(pod) or {}).get("uid", "")
            (alike if owner and owner in seen else alone).append(pod)
            seen.add(owner)
        pods = [*alone, *alike]
        warned: dict[str, list[str]] = {}
        for pod in pods[:_PODS_LOOKED_AT]:
            reasons = enforce.reasons(pod)
            if reasons:
                warned.setdefault(", ".join(reasons), []).append(name_of(pod))
        warnings: list[str] = []
        if len(pods) > _PODS_LOOKED_AT:
            warnings.append(
                f"new PodSecurity enforce level only checked against the first {_PODS_LOOKED_AT} "
                f"of {len(pods)} existing pods"
            )
        if warned:
            which = f"violate the new PodSecurity enforce level {quoted(str(enforce))}"
            warnings.append(f"existing pods in namespace {quoted(namespace)} {which}")
        return warnings + sorted(f"{_pods_named(names)}: {reasons}" for reasons, names in warned.items())


def _pods_named(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other pod{'' if others == 1 else 's'})"


def _images(pod: Obj) -> list[list[tuple[str, str]]]:
    """What an update of a pod is looked at again for: its containers and their images."""
    return [
        [(container.get("name", ""), container.get("image", "")) for container in dig(pod, "spec", field, default=())]
        for field in ("containers", "initContainers", "ephemeralContainers")
    ]
