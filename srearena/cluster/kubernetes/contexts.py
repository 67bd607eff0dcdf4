"""Contexts of a kubeconfig, and whether a cluster's name suggests production.

Everything that acts on a cluster gets a kubeconfig with the chosen context only, so no part of the program can reach
another cluster by accident.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from srearena.cluster.base import ClusterError
from srearena.errors import one_line

_PRODUCTION = re.compile(r"(?<![a-z])(prod|prd|production|live)(?![a-z])", re.IGNORECASE)
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def default_kubeconfig() -> Path:
    """The file that kubectl uses: the first of `KUBECONFIG` that exists, or `~/.kube/config`."""
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    for path in (*named, Path.home() / ".kube" / "config"):
        if path.is_file():
            return path
    raise ClusterError("there is no kubeconfig: set KUBECONFIG, or put one at ~/.kube/config")


@dataclass(frozen=True, slots=True)
class Context:
    """One context of a kubeconfig."""

    path: Path
    name: str
    cluster: str
    user: str
    server: str

    @property
    def production_name(self) -> str:
        """The name of the context, cluster or host that suggests production; empty where none does."""
        host = urlsplit(self.server).hostname or ""
        return next((name for name in (self.name, self.cluster, host) if _PRODUCTION.search(name)), "")

    def minimal_kubeconfig(self) -> str:
        """A kubeconfig with this context only; the files it refers to are not copied.

        The context's namespace is left out: it is a person's preference and may not exist.
        """
        document = _document(self.path)
        context = _named(document, "contexts", self.name)
        context["context"].pop("namespace", None)
        cluster = _named(document, "clusters", self.cluster)
        user = _named(document, "users", self.user)
        for entry in (cluster.get("cluster") or {}, user.get("user") or {}):
            for field in _FILES:
                if entry.get(field):
                    entry[field] = str((self.path.parent / Path(str(entry[field])).expanduser()).absolute())
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "users": [user] if user else [],
                "contexts": [context],
                "current-context": self.name,
            }
        )


def read_context(path: Path, name: str = "") -> Context:
    """Read the context of that name, or the current one; ClusterError says what is missing."""
    document = _document(path)
    selected = name or str(document.get("current-context") or "")
    names = [str(entry.get("name")) for entry in document.get("contexts") or () if isinstance(entry, dict)]
    if not selected:
        raise ClusterError(f"{path} has no current context: name one with --context ({', '.join(names) or 'none'})")
    entry = _named(document, "contexts", selected).get("context")
    if not entry:
        raise ClusterError(f"{path} has no context {selected!r}: there are {', '.join(names) or 'none'}")
    cluster = str(entry.get("cluster") or "")
    server = str((_named(document, "clusters", cluster).get("cluster") or {}).get("server") or "")
    if not server:
        raise ClusterError(f"{path}: the cluster {cluster!r} of context {selected!r} has no server address")
    return Context(path, selected, cluster, str(entry.get("user") or ""), server)


def _document(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ClusterError(f"there is no kubeconfig at {path}")
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as problem:
        raise ClusterError(f"the kubeconfig {path} cannot be read: {one_line(problem)}") from problem
    if not isinstance(document, dict):
        raise ClusterError(f"{path} is no kubeconfig: it holds no mapping")
    return document


def _named(document: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    entries = (entry for entry in document.get(section) or () if isinstance(entry, dict))
    return next((entry for entry in entries if entry.get("name") == name), {})
