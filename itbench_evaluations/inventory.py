"""List the objects of a snapshot, to check whether a filter can be satisfied.

Reads `*objects*.tsv` in both layouts (the raw one with whole objects as JSON, the processed one with columns), and the
objects that events refer to. Unreadable rows are ignored.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from itbench_evaluations.errors import InputError
from itbench_evaluations.identity import Entity
from srearena.ground_truth.kinds import canonical_kind

_TABLES = ("*objects*.tsv", "*events*.tsv")
Objects = frozenset[tuple[str | None, str | None, str]]
"""Namespace, kind and name of objects."""


def _entity(kind: object, namespace: object, name: object) -> Entity | None:
    if not kind or not name:
        return None
    return Entity(str(namespace) if namespace else None, canonical_kind(str(kind)), str(name), f"{kind}/{name}")


def _from_body(body: str) -> Iterator[Entity]:
    try:
        document: Any = json.loads(body)
    except ValueError:
        return
    if not isinstance(document, Mapping):
        return
    inner = document.get("object")
    subject: Mapping[str, Any] = inner if isinstance(inner, Mapping) else document
    metadata = subject.get("metadata")
    if isinstance(metadata, Mapping) and subject.get("kind") not in (None, "Event"):
        found = _entity(subject["kind"], metadata.get("namespace"), metadata.get("name"))
        if found:
            yield found
    about = subject.get("involvedObject", subject.get("regarding"))
    if isinstance(about, Mapping):
        found = _entity(about.get("kind"), about.get("namespace"), about.get("name"))
        if found:
            yield found


def _rows(file: Path) -> Iterator[Mapping[str, str]]:
    csv.field_size_limit(sys.maxsize)
    try:
        with file.open(encoding="utf-8", errors="replace", newline="") as handle:
            yield from csv.DictReader((line.replace("\0", "") for line in handle), delimiter="\t")
    except (OSError, csv.Error) as problem:
        raise InputError(f"cannot read {file}: {problem}") from problem


def snapshot_objects(directory: Path) -> Objects:
    """(namespace, kind, name) of all objects of a snapshot; empty if it has no tables."""
    objects: set[tuple[str | None, str | None, str]] = set()
    for pattern in _TABLES:
        for file in sorted(directory.glob(pattern)):
            for row in _rows(file):
                body = row.get("Body") or row.get("body") or ""
                entities = list(_from_body(body))
                column = _entity(
                    row.get("object_kind"), row.get("object_namespace") or row.get("namespace"), row.get("object_name")
                )
                for entity in [*entities, *([column] if column else [])]:
                    objects.add((entity.namespace, entity.kind, entity.name))
    return frozenset(objects)
