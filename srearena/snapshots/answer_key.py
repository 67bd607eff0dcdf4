"""The answer key of a recording, as far as a recording is concerned: which form it has and what it names.

Three forms are read: flat keys, the same under `itbench.io/v1`, and the entities of `itbench.io/v2`. Grading has its
own, fuller reader (`itbench_evaluations.ground_truth`), which lies above this package and cannot be used from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from srearena.snapshots.errors import SnapshotError


@dataclass(frozen=True, slots=True)
class Group:
    id: str
    kind: str | None
    namespace: str | None
    name: str | None
    filters: tuple[str, ...]
    root: bool


@dataclass(frozen=True, slots=True)
class AnswerKey:
    form: str
    groups: tuple[Group, ...]
    aliases: tuple[tuple[str, ...], ...]
    propagations: tuple[tuple[str, str], ...]
    alerts: tuple[str, ...]
    faults: tuple[dict[str, Any], ...]

    @property
    def roots(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.root)


def _items(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in (value if isinstance(value, list) else [value]) if item)


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None


def _group(item: Mapping[str, Any]) -> Group:
    name = _text(item.get("name"))
    return Group(
        id=str(item.get("id") or name or "unnamed"),
        kind=_text(item.get("kind")),
        namespace=_text(item.get("namespace")),
        name=name,
        filters=_strings(item.get("filter")),
        root=item.get("root_cause") is True,
    )


def _entity(item: Mapping[str, Any]) -> Group:
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name, namespace, kind = _text(metadata.get("name")), _text(metadata.get("namespace")), _text(item.get("kind"))
    return Group("/".join(p for p in (namespace, kind, name) if p), kind, namespace, name, (), root=True)


def read_answer_key(path: Path) -> AnswerKey:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as problem:
        raise SnapshotError(f"{path.name} cannot be read: {' '.join(str(problem).split())}") from problem
    if not isinstance(document, Mapping):
        raise SnapshotError(f"{path.name} is no answer key: it holds no mapping")
    spec = document.get("spec")
    body: Mapping[str, Any] = spec if isinstance(spec, Mapping) else document
    v2 = "groups" not in body and "entities" in body
    if not v2 and "groups" not in body:
        raise SnapshotError(f"{path.name} is no answer key: it has neither `groups` nor `entities`")
    return AnswerKey(
        form="v2" if v2 else "v1" if isinstance(spec, Mapping) else "flat",
        groups=tuple(map(_entity, _items(body.get("entities")))) if v2 else tuple(map(_group, _items(body["groups"]))),
        aliases=tuple(_strings(item) for item in body.get("aliases") or [] if isinstance(item, list)),
        propagations=tuple((str(p.get("source")), str(p.get("target"))) for p in _items(body.get("propagations"))),
        alerts=tuple(str(item.get("id") or item.get("name")) for item in _items(body.get("alerts"))),
        faults=tuple(dict(item) for item in _items(body.get("fault"))),
    )
