"""Parse names of objects: `namespace/Kind/name`, other spellings, and the workload behind a generated name.

An `Entity` is a parsed name; nothing here depends on a ground truth. Kinds are compared in their canonical spelling.
A name such as `cart-6d5f7c9b8-x2v4z` has the stem `cart`, because Kubernetes generated the suffix. Stems are found by
the patterns that Kubernetes generates, so `frontend-proxy` is never shortened to `frontend`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from srearena.ground_truth.kinds import CLUSTER_SCOPED, canonical_kind, is_known_kind

# Kinds of objects that belong to one workload; policies other than `strict` treat them as the same.
WORKLOAD_KINDS = frozenset(
    {
        "Pod",
        "Service",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "ReplicaSet",
        "ReplicationController",
        "Endpoints",
        "EndpointSlice",
    }
)

# Kinds whose names Kubernetes generates from an owner's name.
GENERATED_KINDS = frozenset({"Pod", "ReplicaSet", "EndpointSlice"})

_NAME_LIMIT = 253  # Kubernetes' limit on object names


@dataclass(frozen=True, slots=True)
class Entity:
    """A parsed name of an object; `None` for parts that were not stated."""

    namespace: str | None
    kind: str | None
    name: str
    raw: str

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)

    @property
    def is_workload(self) -> bool:
        return self.kind in WORKLOAD_KINDS


def _looks_like_kind(text: str) -> bool:
    """Whether a text is a kind: known, or CamelCase like kinds of custom resources (names are lower case)."""
    return is_known_kind(text) or (text[:1].isupper() and text.isalnum())


_UID = re.compile(r"\s*[\(\[,;]?\s*\buid\b\s*[:=]?\s*[0-9A-Za-z-]*\s*[\)\]]?\s*$", re.IGNORECASE)
_QUOTES = " \t\r\n`'\""


@lru_cache(maxsize=65536)
def parse_entity(text: str, kind: str | None = None, namespace: str | None = None) -> Entity:
    """Parse a name; `kind` and `namespace` come from separate fields of the submission."""
    if len(text) > 4 * _NAME_LIMIT:
        return Entity(None, None, text[:_NAME_LIMIT], text[:_NAME_LIMIT])  # longer than any object name
    body = _UID.sub("", text.strip(_QUOTES)).strip(_QUOTES)
    parts = [part.strip(_QUOTES) for part in body.split("/")]
    own_namespace: str | None = None
    own_kind: str | None = None
    if len(parts) >= 3:
        own_namespace, own_kind, name = parts[0], parts[1], "/".join(parts[2:])
        if not _looks_like_kind(own_kind) and _looks_like_kind(own_namespace):
            own_namespace, own_kind = own_kind, own_namespace  # Kind/namespace/name
    elif len(parts) == 2:
        name = parts[1]
        if _looks_like_kind(parts[0]):
            own_kind = parts[0]
        else:
            own_namespace = parts[0]
    else:
        name = body
    resolved_kind = canonical_kind(own_kind) or canonical_kind(kind)
    resolved_namespace = (own_namespace or namespace or "").strip(_QUOTES) or None
    if resolved_kind in CLUSTER_SCOPED or (resolved_namespace or "").lower() in {"_", "-", "none", "null", "cluster"}:
        resolved_namespace = None
    return Entity(resolved_namespace, resolved_kind, name[:_NAME_LIMIT], text)


# The alphabet of generated suffixes (k8s.io/apimachinery/pkg/util/rand): no vowels, y, 0, 1 or 3, so no English words.
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_SAFE_ONLY = re.compile(rf"[{_SAFE}]+")
_POD_OF_DEPLOYMENT = re.compile(r"(.+)-([a-z0-9]{6,10})-([a-z0-9]{5})")
_OF_REPLICASET = re.compile(r"(.+)-([a-z0-9]{6,10})")
_SHORT_SUFFIX = re.compile(rf"(.+)-([{_SAFE}]{{5}})")
_ORDINAL = re.compile(r"(.+)-(\d{1,4})")
_PLACEHOLDER = re.compile(r"(.+?)(?:-(?:\*|\.\*|x{3,}|<[^>]*>|\[[^\]]*\]|\{[^}]*\}|\.\.\.))+")


def _template_hash(segment: str) -> bool:
    """Whether a segment is the hash of a ReplicaSet: the safe alphabet, or hexadecimal as other tools write it."""
    if _SAFE_ONLY.fullmatch(segment):
        return True
    digits = sum(character.isdigit() for character in segment)
    return digits >= 2 and all(character in "0123456789abcdef" for character in segment)


@lru_cache(maxsize=65536)
def workload_stems(name: str, kind: str | None) -> tuple[str, ...]:
    """The name, then the workload names it may have been generated from, longest first."""
    lowered = name.lower()
    stems = [lowered]
    placeholder = _PLACEHOLDER.fullmatch(lowered)
    if placeholder:
        stems.append(placeholder[1])
    if kind is None or kind in GENERATED_KINDS:
        of_deployment = _POD_OF_DEPLOYMENT.fullmatch(lowered)
        of_replicaset = _OF_REPLICASET.fullmatch(lowered)
        short = _SHORT_SUFFIX.fullmatch(lowered)
        ordinal = _ORDINAL.fullmatch(lowered)
        if kind != "ReplicaSet" and of_deployment and _template_hash(of_deployment[2]):
            stems.append(of_deployment[1])
        elif of_replicaset and _template_hash(of_replicaset[2]):
            stems.append(of_replicaset[1])
        elif kind != "ReplicaSet" and short:
            stems.append(short[1])
        elif kind != "ReplicaSet" and ordinal:
            stems.append(ordinal[1])
    return tuple(dict.fromkeys(stems))


_ROLE_WORDS = re.compile(r"[-_]?(service|svc|deployment|pod|statefulset|app)$")


@lru_cache(maxsize=65536)
def loose_name(name: str) -> str:
    """A name without separators and role words: `Ad Service`, `ad-service` and `adservice` become `ad`."""
    lowered = name.strip().lower().replace(" ", "-")
    bare = _ROLE_WORDS.sub("", lowered) or lowered
    return re.sub(r"[-_.]", "", bare)
