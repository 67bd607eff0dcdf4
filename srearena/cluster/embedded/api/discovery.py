"""What is served here: groups, versions and resources, in the plain and the aggregated form.

Everything comes from the resource table; documents are built when they are first asked for and kept until the table
changes (custom resources come and go).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any, Final

import orjson

from srearena.cluster.embedded.api.negotiation import entries
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.resources import Resource, ResourceTable, Subresource

AGGREGATED_GROUP: Final = "apidiscovery.k8s.io"
AGGREGATED_KIND: Final = "APIGroupDiscoveryList"
_AGGREGATED_VERSIONS: Final = ("v2", "v2beta1")


def aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that the client prefers; empty where it wants the plain form."""
    for kind, parameters in entries(accept):
        if kind not in ("application/json", "*/*", "application/*"):
            continue
        if not parameters.get("as"):
            return ""
        version = parameters.get("v", "")
        wanted = (parameters.get("g"), parameters["as"]) == (AGGREGATED_GROUP, AGGREGATED_KIND)
        if wanted and version in _AGGREGATED_VERSIONS:
            return version
    return ""


class Discovery:
    def __init__(self, table: ResourceTable, address: Callable[[], str]) -> None:
        self._table = table
        self._address = address
        self._serial = -1
        self._documents: dict[Any, tuple[bytes, str]] = {}

    def aggregated(self, *, core: bool, version: str) -> tuple[bytes, str]:
        """The document for `/api` or `/apis`, and its ETag."""
        return self._cached(("aggregated", core, version), lambda: self._aggregated(core, version))

    def versions(self) -> Obj:
        """`/api`."""
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address()}],
        }

    def groups(self) -> Obj:
        """`/apis`."""
        named = [self._group(name, versions) for name, versions in self._available_groups().items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": named}

    def group(self, name: str) -> Obj | None:
        versions = self._available_groups().get(name)
        if not name or versions is None:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name, versions)}

    def _available_groups(self) -> dict[str, list[str]]:
        """Groups with the versions that can be asked now; whose server is away is left out."""
        away = self._table.unavailable
        found = {
            group: [version for version in versions if (group, version) not in away]
            for group, versions in self._table.groups().items()
        }
        return {group: versions for group, versions in found.items() if versions}

    def resources(self, group: str, version: str) -> bytes | None:
        """`/api/v1` or `/apis/<group>/<version>`."""
        if not self._table.rows(group, version):
            return None
        return self._cached(("resources", group, version), lambda: self._resources(group, version))[0]

    def paths(self) -> list[str]:
        """What `/` lists of the API itself."""
        found = ["/api", "/api/v1", "/apis", "/apis/"]
        for group, versions in self._table.groups().items():
            if group:
                found += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return found

    def _cached(self, key: Any, build: Callable[[], Obj]) -> tuple[bytes, str]:
        if self._serial != self._table.serial:
            self._serial = self._table.serial
            self._documents.clear()
        found = self._documents.get(key)
        if found is None:
            data = orjson.dumps(build()) + b"\n"
            found = self._documents[key] = (data, f'"{hashlib.sha512(data).hexdigest().upper()}"')
        return found

    def _group(self, name: str, versions: list[str]) -> Obj:
        listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
        return {"name": name, "versions": listed, "preferredVersion": listed[0]}

    def _resources(self, group: str, version: str) -> Obj:
        listed: list[Obj] = []
        for row in self._table.rows(group, version):
            listed.append(_listed(row))
            listed += [_listed_subresource(row, sub) for sub in row.subresources]
        head: Obj = {"kind": "APIResourceList"}
        if group:
            head["apiVersion"] = "v1"
        return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": listed}

    def _aggregated(self, core: bool, version: str) -> Obj:
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
                "versions": [
                    {
                        "version": served,
                        "resources": [_discovered(row) for row in self._table.rows(group, served)],
                        "freshness": "Stale" if (group, served) in self._table.unavailable else "Current",
                    }
                    for served in versions
                ],
            }
            for group, versions in self._table.groups().items()
            if core == (group == "")
        ]
        api_version = f"{AGGREGATED_GROUP}/{version}"
        return {"kind": AGGREGATED_KIND, "apiVersion": api_version, "metadata": {}, "items": items}


def _listed(row: Resource) -> Obj:
    entry: Obj = {
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    if "list" in row.verbs and row.group != "metrics.k8s.io":
        entry["storageVersionHash"] = _storage_hash(row)
    return entry


def _storage_hash(row: Resource) -> str:
    version = row.storage_version or row.api_version
    return base64.b64encode(hashlib.sha256(f"{version}/{row.kind}".encode()).digest()[:8]).decode()


def _listed_subresource(row: Resource, sub: Subresource) -> Obj:
    entry: Obj = {"name": f"{row.plural}/{sub.name}", "singularName": "", "namespaced": row.namespaced}
    if sub.group is not None:
        entry |= {"group": sub.group, "version": sub.version}
    return {**entry, "kind": sub.kind or row.kind, "verbs": list(sub.verbs)}


def _discovered(row: Resource) -> Obj:
    entry: Obj = {
        "resource": row.plural,
        "responseKind": {"group": row.group, "version": row.version, "kind": row.kind},
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    if row.subresources:
        entry["subresources"] = [_discovered_subresource(row, sub) for sub in row.subresources]
    return entry


def _discovered_subresource(row: Resource, sub: Subresource) -> Obj:
    kind = {
        "group": row.group if sub.group is None else sub.group,
        "version": sub.version or row.version,
        "kind": sub.kind or row.kind,
    }
    return {"subresource": sub.name, "responseKind": kind, "verbs": list(sub.verbs)}
