"""One object's row, by column, as the tests of tables look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from srearena.cluster.embedded.api.tables import table_for
from srearena.cluster.embedded.durations import format_time

NOW = 1_750_000_000.0


def ago(seconds: float) -> str:
    return format_time(NOW - seconds)


def meta(name: str = "web", seconds: float = 300, **more: Any) -> dict[str, Any]:
    return {"name": name, "creationTimestamp": ago(seconds), **more}


def shown(
    group: str, resource: str, obj: dict[str, Any], crd_columns: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    table = table_for(group, resource, [obj], NOW, crd_columns=crd_columns)
    names = [column["name"] for column in table["columnDefinitions"]]
    cells = table["rows"][0]["cells"]
    assert len(names) == len(cells)
    return dict(zip(names, cells, strict=True))
