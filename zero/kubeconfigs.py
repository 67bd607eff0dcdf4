"""Access to a running cluster from the sandbox: the kubeconfig, the files it refers to, its endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from srearena.errors import one_line
from zero.errors import RequestError
from zero.relay import Endpoint

_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    path: Path
    files: tuple[Path, ...]  # the kubeconfig and the files it refers to
    endpoints: tuple[Endpoint, ...]


def _sections(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for plural, singular in (("clusters", "cluster"), ("users", "user")):
        for entry in document.get(plural) or ():
            if isinstance(entry, dict) and isinstance(entry.get(singular), dict):
                yield entry[singular]


def read(file: Path) -> Kubeconfig:
    """Parse a kubeconfig; RequestError if it has no cluster."""
    path = file.expanduser().resolve()
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise RequestError(f"cannot read the kubeconfig {file}: {one_line(problem)}") from problem
    if not isinstance(document, dict):
        raise RequestError(f"{file} is not a kubeconfig")
    sections = [*_sections(document)]
    endpoints = [Endpoint.parse(str(each["server"])) for each in sections if each.get("server")]
    if not endpoints:
        raise RequestError(f"{file} is not a kubeconfig: it has no cluster with a server")
    files = [path.parent / str(each[key]) for each in sections for key in _FILES if each.get(key)]
    return Kubeconfig(path, (path, *files), tuple(endpoints))
