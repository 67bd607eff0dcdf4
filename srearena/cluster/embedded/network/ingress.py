"""Ingress routing: the Service for a host and a path.

The routing table of an ingress controller, which runs as a workload: without one, an Ingress has no effect. An exact
host precedes a wildcard, and a wildcard a rule without host; an exact path precedes the longest prefix. Of two equal
rules the one of the older Ingress wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj, annotations_of, dig, meta, name_of, namespace_of
from srearena.cluster.embedded.store import Store
from srearena.regular_expressions import PatternError, pattern

INGRESSES = "ingresses.networking.k8s.io"
CLASSES = "ingressclasses.networking.k8s.io"
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
NGINX = "nginx.ingress.kubernetes.io"


@dataclass(frozen=True, slots=True)
class Destination:
    """The backend of a rule."""

    ingress: str
    """`namespace/name`."""
    namespace: str
    service: str
    port: int | str
    """Number or name of the Service's port."""


@dataclass(frozen=True, slots=True)
class PathRule:
    path: str
    kind: str
    """`Exact`, `Prefix`, `ImplementationSpecific`, or `Regex` where the annotations say so."""
    destination: Destination
    rewrite: str = ""
    """The path requested from the backend; $1 is a group of the pattern."""

    def matches(self, path: str) -> bool:
        if self.kind == "Exact":
            return path == self.path
        if self.kind == "Regex":
            return pattern(f"(?i)^{self.path}").matches(path)
        if self.kind == "ImplementationSpecific":
            return path.startswith(self.path)
        prefix = self.path.rstrip("/")
        return not prefix or path == prefix or path.startswith(prefix + "/")

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller goes first: exact ones, then longer ones."""
        return (0 if self.kind == "Exact" else 1, -len(self.path))

    def backend_path(self, path: str) -> str:
        """The path to request from the backend."""
        if not self.rewrite:
            return path
        found = pattern(f"(?i)^{self.path}").search(path) if self.kind == "Regex" else None
        result = self.rewrite
        for number, text in enumerate(found.groups if found is not None else ()):
            result = result.replace(f"${number}", text)
        return result or "/"


@dataclass(frozen=True, slots=True)
class Routed:
    """The routing decision for a request."""

    rule: PathRule | None
    """None where nothing matches and there is no default backend."""
    tls_secret: str = ""
    """`namespace/name` of the certificate for the host; empty where the host has none."""
    redirect_to_tls: bool = False


class IngressTable:
    """The rules of all Ingresses of one class."""

    def __init__(self, ingresses: Iterable[Obj]) -> None:
        self.hosts: dict[str, list[PathRule]] = {}
        self.default: Destination | None = None
        self.certificates: dict[str, tuple[str, bool]] = {}
        for ingress in sorted(ingresses, key=_age):
            self._add(ingress)
        for rules in self.hosts.values():
            rules.sort(key=lambda rule: rule.rank)

    def route(self, host: str, path: str, *, tls: bool = False) -> Routed:
        """Route a request for a host (with or without port) and a path."""
        name = host.partition(":")[0].lower().rstrip(".")
        secret, redirect = self._certificate(name)
        rules = self._rules(name)
        found = next((rule for rule in rules if rule.matches(path or "/")), None)
        if found is None and self.default is not None:
            found = PathRule("/", "Prefix", self.default)
        return Routed(found, secret, bool(secret) and redirect and not tls and found is not None)

    def _rules(self, host: str) -> list[PathRule]:
        wildcard = "*." + host.partition(".")[2]
        for name in (host, wildcard, ""):
            if name in self.hosts:
                return self.hosts[name]
        return []

    def _certificate(self, host: str) -> tuple[str, bool]:
        wildcard = "*." + host.partition(".")[2]
        return self.certificates.get(host) or self.certificates.get(wildcard) or ("", False)

    def _add(self, ingress: Obj) -> None:
        spec = ingress.get("spec") or {}
        namespace, key = namespace_of(ingress), f"{namespace_of(ingress)}/{name_of(ingress)}"
        annotations = annotations_of(ingress)
        use_regex = annotations.get(f"{NGINX}/use-regex") == "true"
        rewrite = annotations.get(f"{NGINX}/rewrite-target", "")
        redirect = annotations.get(f"{NGINX}/ssl-redirect", "true") != "false"
        fallback = _destination(key, namespace, spec.get("defaultBackend"))
        if fallback is not None and not spec.get("rules"):
            self.default = self.default or fallback
        for entry in spec.get("tls") or ():
            for host in entry.get("hosts") or ():
                self.certificates.setdefault(host.lower(), (f"{namespace}/{entry.get('secretName', '')}", redirect))
        for rule in spec.get("rules") or ():
            rules = self.hosts.setdefault((rule.get("host") or "").lower(), [])
            for path in dig(rule, "http", "paths", default=()):
                destination = _destination(key, namespace, path.get("backend"))
                kind, text = path.get("pathType") or "ImplementationSpecific", path.get("path") or "/"
                if (use_regex or (rewrite and "$" in rewrite)) and kind == "ImplementationSpecific":
                    kind = "Regex"
                if destination is None or (kind == "Regex" and not _is_pattern(text)):
                    continue
                if not any(other.path == text and other.kind == kind for other in rules):
                    rules.append(PathRule(text, kind, destination, rewrite))
            if fallback is not None:
                rules.append(PathRule("/", "Prefix", fallback))


def ingresses_of_class(store: Store, controller: str, *, classless: bool = False) -> list[Obj]:
    """The Ingresses that a controller such as `k8s.io/ingress-nginx` serves."""
    classes = {name_of(c): c for c in store.objects(CLASSES) if dig(c, "spec", "controller") == controller}
    is_default = any(annotations_of(c).get(DEFAULT_CLASS) == "true" for c in classes.values())
    found: list[Obj] = []
    for ingress in store.objects(INGRESSES):
        class_name = dig(ingress, "spec", "ingressClassName") or annotations_of(ingress).get(CLASS_ANNOTATION)
        if class_name in classes or (not class_name and (is_default or classless)):
            found.append(ingress)
    return found


def _destination(ingress: str, namespace: str, backend: Obj | None) -> Destination | None:
    service = dig(backend, "service", default={})
    name, port = service.get("name"), service.get("port") or {}
    if not name:
        return None
    return Destination(ingress, namespace, name, port.get("number") or port.get("name") or 80)


def _is_pattern(text: str) -> bool:
    try:
        pattern(f"(?i)^{text}")
    except PatternError:
        return False
    return True


def _age(ingress: Obj) -> tuple[str, str, str]:
    return (str(meta(ingress).get("creationTimestamp") or ""), namespace_of(ingress), name_of(ingress))
