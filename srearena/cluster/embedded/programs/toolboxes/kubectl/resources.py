"""Which resource a word means: asked of the server's discovery, so custom resources are known too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiPath, ClusterApi
from srearena.cluster.embedded.programs.toolboxes.kubectl.errors import KubectlError

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Kind:
    """A served resource, in the version that the server prefers."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short: tuple[str, ...]

    @property
    def label(self) -> str:
        """As kubectl prints it before a name: `deployment.apps`."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    def path(self, namespace: str = "", name: str = "", subresource: str = "", **query: str) -> ApiPath:
        where = namespace if self.namespaced else ""
        return ApiPath(self.group, self.version, self.plural, where, name, subresource, dict(query))


class Kinds:
    def __init__(self, found: list[Kind]) -> None:
        self._found = found

    @classmethod
    async def discover(cls, api: ClusterApi) -> Kinds:
        found: list[Kind] = []
        for root in ("/api", "/apis"):
            found.extend(_kinds(await api.call("GET", root, accept=_AGGREGATED)))
        return cls(found)

    def named(self, word: str) -> Kind:
        """`deploy`, `deployments`, `Deployment`, `deployments.apps`, `deployments.v1.apps`."""
        name, _, group = word.lower().partition(".")
        for kind in self._found:
            if name not in (kind.plural, kind.singular, kind.kind.lower(), *kind.short):
                continue
            if not group or group in (kind.group, f"{kind.version}.{kind.group}"):
                return kind
        raise KubectlError(f'error: the server doesn\'t have a resource type "{word}"')

    def of(self, obj: Obj) -> Kind:
        """The resource that serves an object from a manifest."""
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        for kind in self._found:
            if (kind.group, kind.kind) == (group, obj.get("kind")):
                return kind
        raise KubectlError(
            f'error: resource mapping not found for name: "{dig(obj, "metadata", "name", default="")}" namespace: '
            f'"{dig(obj, "metadata", "namespace", default="")}" from "STDIN": no matches for kind '
            f'"{obj.get("kind")}" in version "{group + "/" if group else ""}{version}"\n'
            "ensure CRDs are installed first"
        )


def _kinds(document: Obj) -> Iterator[Kind]:
    for group in document.get("items", ()):
        seen: set[str] = set()
        for version in group.get("versions", ()):
            for row in version.get("resources", ()):
                if row["resource"] in seen:
                    continue
                seen.add(row["resource"])
                yield Kind(
                    group["metadata"].get("name", ""),
                    version["version"],
                    row["resource"],
                    row.get("singularResource") or row["responseKind"]["kind"].lower(),
                    row["responseKind"]["kind"],
                    row.get("scope") == "Namespaced",
                    tuple(row.get("shortNames") or ()),
                )
