"""API discovery: the resources of a cluster by kind, plural, singular or short name, with or without group.

Uses aggregated discovery (two requests), and the plain form for servers that lack it. Where a name matches several
resources, the core group takes precedence, then the order in which the server lists its groups, as in kubectl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from srearena.service.errors import ApiRefused, UnknownResource

Obj = dict[str, Any]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type that the server offers."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """`pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        suffix = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{scope}/{self.plural}{suffix}"


class ResourceTable:
    """Resources by kind and by every name they have."""

    def __init__(self, resources: Iterable[tuple[Resource, tuple[str, ...]]]) -> None:
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._by_name: dict[str, Resource] = {}
        self.resources: list[Resource] = []
        for resource, names in resources:
            self.resources.append(resource)
            self._by_kind.setdefault((resource.api_version, resource.kind), resource)
            for name in (resource.plural, resource.kind.lower(), *names):
                self._by_name.setdefault(name.lower(), resource)
                self._by_name.setdefault(f"{name.lower()}.{resource.group}", resource)
                self._by_name.setdefault(f"{name.lower()}.{resource.version}.{resource.group}", resource)

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return self._by_kind.get((api_version, kind))

    def named(self, name: str) -> Resource | None:
        return self._by_name.get(name.lower())

    def unknown(self, name: str) -> UnknownResource:
        """The error for a name that no resource has, with the nearest names."""
        near = get_close_matches(name.lower(), [candidate for candidate in self._by_name if "." not in candidate], 3)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        return UnknownResource(f"the cluster serves no resource {name!r}{hint}")


def discover(get: Callable[[str, str], Obj]) -> ResourceTable:
    """Read the resources that a server offers; `get(path, accept)` returns a decoded response."""
    core, named = get("/api", AGGREGATED), get("/apis", AGGREGATED)
    if named.get("kind") == "APIGroupDiscoveryList":
        return ResourceTable(row for document in (core, named) for row in _aggregated(document))
    return ResourceTable(_plain(get, named))


def _aggregated(document: Obj) -> Iterable[tuple[Resource, tuple[str, ...]]]:
    for group in document.get("items") or ():
        for version in group.get("versions") or ():
            for row in version.get("resources") or ():
                kind = (row.get("responseKind") or {}).get("kind", "")
                resource = Resource(
                    group=(group.get("metadata") or {}).get("name", ""),
                    version=version["version"],
                    kind=kind,
                    plural=row["resource"],
                    namespaced=row.get("scope") == "Namespaced",
                    verbs=frozenset(row.get("verbs") or ()),
                )
                yield resource, (row.get("singularResource") or kind.lower(), *(row.get("shortNames") or ()))


def _plain(get: Callable[[str, str], Obj], groups: Obj) -> Iterable[tuple[Resource, tuple[str, ...]]]:
    versions = [("", "v1")]
    for group in groups.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        listed = sorted((v["version"] for v in group["versions"]), key=lambda version: version != preferred)
        versions += [(group["name"], version) for version in listed]
    for name, version in versions:
        try:
            listing = get(f"/apis/{name}/{version}" if name else f"/api/{version}", "application/json")
        except ApiRefused:
            continue  # an aggregated API whose server is unavailable
        for row in listing.get("resources") or ():
            if "/" in row["name"]:
                continue
            resource = Resource(
                group=row.get("group") or name,
                version=row.get("version") or version,
                kind=row["kind"],
                plural=row["name"],
                namespaced=bool(row.get("namespaced")),
                verbs=frozenset(row.get("verbs") or ()),
            )
            yield resource, (row.get("singularName") or row["kind"].lower(), *(row.get("shortNames") or ()))
