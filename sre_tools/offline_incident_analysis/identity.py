"""Object identifiers in arguments: `namespace/Kind/name`, `Kind/name` or `name`, with kubectl's short kinds.

An identifier matches exactly except for case, never by prefix. Tools suggest the nearest names for an unknown one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from sre_tools.errors import ToolError

_SHORT_KINDS = {
    "po": "Pod",
    "svc": "Service",
    "deploy": "Deployment",
    "rs": "ReplicaSet",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "cm": "ConfigMap",
    "ns": "Namespace",
    "no": "Node",
    "pvc": "PersistentVolumeClaim",
    "pv": "PersistentVolume",
    "hpa": "HorizontalPodAutoscaler",
    "sa": "ServiceAccount",
    "ing": "Ingress",
    "netpol": "NetworkPolicy",
    "ep": "Endpoints",
    "quota": "ResourceQuota",
    "cj": "CronJob",
    "app": "App",
}
SUFFIXES = ("-service", "_service", "-svc", "_svc", "service")


@dataclass(frozen=True, slots=True)
class Identifier:
    namespace: str | None
    kind: str | None
    name: str

    @property
    def exact(self) -> bool:
        return self.namespace is not None

    def matches(self, namespace: str | None, kind: str | None, name: str) -> bool:
        return (
            name.lower() == self.name.lower()
            and (self.kind is None or (kind or "").lower() == self.kind.lower())
            and (self.namespace is None or (namespace or "").lower() == self.namespace.lower())
        )


def parse_identifier(text: str) -> Identifier:
    parts = [part for part in text.strip().split("/") if part]
    if not parts:
        raise ToolError("name an object as namespace/Kind/name, Kind/name or name")
    if len(parts) == 1:
        return Identifier(None, None, parts[0])
    namespace, kind, name = (None, parts[0], parts[1]) if len(parts) == 2 else (parts[0], parts[1], "/".join(parts[2:]))
    lowered = kind.lower()
    return Identifier(namespace, _SHORT_KINDS.get(lowered, kind), name)


def entity_id(namespace: str | None, kind: str | None, name: str) -> str:
    return "/".join(part for part in (namespace, kind, name) if part)


def plain_name(name: str) -> str:
    """The name of an application: `cart-service`, `cart-svc`, `cartservice` and `cart` are the same one."""
    lowered = name.lower()
    for suffix in SUFFIXES:
        if lowered.endswith(suffix) and len(lowered) > len(suffix):
            return lowered[: -len(suffix)]
    return lowered


def nearest(text: str, candidates: Iterable[str], count: int = 5) -> list[str]:
    """The candidates that contain the text or are similar to it, else the first ones."""
    names = sorted(set(candidates))
    close = difflib.get_close_matches(text, names, count, 0.4)  # 0.4: chosen, tolerates several typos
    containing = [name for name in names if text.lower() in name.lower()]
    return list(dict.fromkeys([*containing[:count], *close]))[:count] or names[:count]
