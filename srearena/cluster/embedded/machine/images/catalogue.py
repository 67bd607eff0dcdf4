"""The image registries: repositories, tags, and their errors for unknown images.

The tables beside this module list public images; applications add theirs with `register_images` (a module that does
so can be named by an entry point of the group `srearena.images`). The tables are read-only once a cluster runs; what
holds for one cluster (the images of its models, a registry that is out of reach) is kept in its `Catalogue`.
"""

from __future__ import annotations

import re
import warnings
from collections import ChainMap
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Any
from zlib import crc32

import orjson

from srearena.cluster.embedded.image_references import Reference, parse_reference

ENTRY_POINTS = "srearena.images"
RESOLVER = "172.18.0.1:53"
"""The name server of the nodes; part of the error for an unknown registry host."""
DEFAULT_SIZE = 60_000_000
_ROUNDED_TO = 1_000


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of a registry."""

    name: str
    size: int
    """Bytes to download. A multiple of 1,000 is a rounded figure, for all its images."""
    tags: frozenset[str] = frozenset()
    pattern: str = ""
    private: bool = False
    """Whether a pull secret for the registry is needed."""

    def size_of(self, reference: Reference) -> int:
        """Return the size of one image: those with a rounded size differ by up to a twentieth, by their names."""
        if self.size % _ROUNDED_TO:
            return self.size
        return self.size + crc32(str(reference).encode()) % (self.size // 20 + 1)

    def has(self, reference: Reference) -> bool:
        if reference.digest or reference.tag in self.tags:
            return True
        return bool(self.pattern) and _compiled(self.pattern).fullmatch(reference.tag) is not None


@dataclass(frozen=True, slots=True)
class Registry:
    host: str
    missing: str = "not found"
    """The error for a missing or private repository: a key of `_REFUSALS`."""


class PullError(Exception):
    """A pull failed; the text is what containerd returns to the kubelet."""


_repositories: dict[str, Repository] = {}
_registries: dict[str, Registry] = {}


def register_images(
    repository: str,
    *,
    tags: Iterable[str] = (),
    pattern: str = "",
    size: int = DEFAULT_SIZE,
    private: bool = False,
) -> None:
    """Register a repository: its tags as a list, as a regular expression, or both.

    Tags registered before are kept. The name is the one used in a pod (`acme/web`, `registry.acme.io/team/web`),
    without a tag; its registry becomes reachable if it was not.
    """
    _load_tables()
    _add(_repositories, _registries, Repository(repository, size, frozenset(tags), pattern, private))


def _add(
    repositories: MutableMapping[str, Repository], registries: MutableMapping[str, Registry], new: Repository
) -> None:
    reference = parse_reference(new.name)
    registries.setdefault(reference.registry, Registry(reference.registry))
    before = repositories.get(reference.repository, Repository(reference.repository, new.size))
    repositories[reference.repository] = replace(
        new,
        name=reference.repository,
        tags=new.tags | before.tags,
        pattern=new.pattern or before.pattern or ("" if new.tags else "latest"),
    )


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _load_tables() -> None:
    for table in files(__package__).joinpath("catalogue_data").iterdir():
        if table.name.endswith(".json"):
            register_image_table(orjson.loads(table.read_bytes()))


@cache
def _discover() -> None:
    _load_tables()
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(f"images of {entry.name} ({entry.value}) cannot be loaded: {error!r}", stacklevel=2)


def register_image_table(table: dict[str, Any]) -> None:
    """Register the registries and repositories of a table, in the format of the tables in `catalogue_data`."""
    for host, row in table["registries"].items():
        _registries.setdefault(host, Registry(row.get("host", host), row["missing"]))
    for row in table["images"]:
        tags, pattern = frozenset(row.get("tags", ())), row.get("pattern", "")
        _repositories.setdefault(row["repository"], Repository(row["repository"], row["size"], tags, pattern))


def _denied(reference: Reference, registry: Registry) -> str:
    return (
        "pull access denied, repository does not exist or may require authorization: "
        "server message: insufficient_scope: authorization failed"
    )


def _forbidden(reference: Reference, registry: Registry) -> str:
    scope = f"repository%3A{reference.path.replace('/', '%2F')}%3Apull"
    return (
        "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to "
        f"https://{registry.host}/token?scope={scope}&service={registry.host}: 403 Forbidden"
    )


def _unauthorized(reference: Reference, registry: Registry) -> str:
    return f"unexpected status from HEAD request to {_manifest_url(reference, registry)}: 401 UNAUTHORIZED"


_REFUSALS = {"denied": _denied, "forbidden": _forbidden, "unauthorized": _unauthorized}


def _manifest_url(reference: Reference, registry: Registry) -> str:
    return f"https://{registry.host}/v2/{reference.path}/manifests/{reference.manifest}"


class Catalogue:
    """The registries of one cluster."""

    def __init__(self) -> None:
        _discover()
        self._repositories = ChainMap[str, Repository]({}, _repositories)
        self._registries = ChainMap[str, Registry]({}, _registries)
        self.unreachable: dict[str, str] = {}
        """Registries that cannot be reached, with the end of the error (`i/o timeout`, `connection refused`)."""

    def register_images(self, repository: str, *, tags: Iterable[str], size: int = DEFAULT_SIZE) -> None:
        """Register tags of a repository in this cluster; earlier ones are kept."""
        _add(self._repositories, self._registries, Repository(repository, size, frozenset(tags)))

    def find(self, reference: Reference, credentials: frozenset[str] = frozenset()) -> Repository:
        """The repository that holds an image; PullError with containerd's message on failure.

        `credentials` are the registries for which the pod's pull secrets contain a password.
        """
        registry = self._registries.get(reference.registry)
        if registry is None:
            host = reference.registry.partition(":")[0]
            cause = f"dial tcp: lookup {host} on {RESOLVER}: no such host"
            raise _failure(reference, "Unknown", _request(reference, Registry(reference.registry), cause))
        trouble = self.unreachable.get(reference.registry)
        if trouble is not None:
            cause = f"dial tcp: lookup {registry.host}: {trouble}"
            raise _failure(reference, "Unknown", _request(reference, registry, cause))
        found = self._repositories.get(reference.repository)
        locked = found is not None and found.private and reference.registry not in credentials
        refusal = _REFUSALS.get(registry.missing, _forbidden if locked else None)
        if (found is None or locked) and refusal is not None:
            raise _failure(reference, "Unknown", refusal(reference, registry))
        if found is None or not found.has(reference):
            raise _failure(reference, "NotFound", f"{reference}: not found")
        return found


def _request(reference: Reference, registry: Registry, cause: str) -> str:
    return f'failed to do request: Head "{_manifest_url(reference, registry)}": {cause}'


def _failure(reference: Reference, code: str, cause: str) -> PullError:
    return PullError(
        f'rpc error: code = {code} desc = failed to pull and unpack image "{reference}": '
        f'failed to resolve reference "{reference}": {cause}'
    )
