"""Columns of custom resources come from their definition, and no definition or object breaks the table."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.api.tables import table_for

from .shown import NOW, ago, meta, shown

OBJ: dict[str, Any] = {
    "metadata": meta("backup"),
    "spec": {"schedule": "@daily", "size": 3, "ratio": 2, "enabled": True, "labels": {"b": 1, "a": "x"}},
    "status": {
        "lastRun": ago(3600 * 5),
        "conditions": [{"type": "Ready", "status": "True"}],
        "broken": "yesterday",
        "fraction": 2.75,
    },
}


def column(path: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": "Shown", "type": kind, "jsonPath": path, **more}


@pytest.mark.parametrize(
    ("path", "kind", "cell"),
    [
        (".spec.schedule", "string", "@daily"),
        (".spec.size", "string", "3"),
        (".spec.size", "integer", 3),
        (".spec.ratio", "number", 2.0),
        (".status.fraction", "integer", 2),
        (".spec.enabled", "boolean", True),
        (".spec.enabled", "string", "true"),
        (".spec.enabled", "integer", None),
        (".spec.schedule", "integer", None),
        (".spec.labels", "string", '{"a":"x","b":1}'),
        (".status.lastRun", "date", "5h"),
        (".status.broken", "date", "<invalid>"),
        (".spec.size", "date", None),
        ('.status.conditions[?(@.type=="Ready")].status', "string", "True"),
        ('.status.conditions[?(@.type=="Gone")].status', "string", None),
        (".status.conditions[4].status", "string", None),
        (".spec.nothing", "string", None),
    ],
)
def test_a_column_shows_what_its_path_finds(path: str, kind: str, cell: Any) -> None:
    row = shown("example.com", "backups", OBJ, crd_columns=[column(path, kind)])
    assert row == {"Name": "backup", "Shown": cell}
    assert type(row["Shown"]) is type(cell)


def test_headers_come_from_the_definition() -> None:
    columns = [
        column(".spec.size", "integer", priority=1, format="int32", description="How many."),
        column(".spec.schedule"),
    ]
    _, first, second = table_for("example.com", "backups", [OBJ], NOW, crd_columns=columns)["columnDefinitions"]
    assert first == {"name": "Shown", "type": "integer", "format": "int32", "description": "How many.", "priority": 1}
    assert second["description"] == "Custom resource definition column (in JSONPath format): .spec.schedule"


def test_without_columns_the_age_is_shown() -> None:
    table = table_for("example.com", "backups", [OBJ], NOW, crd_columns=[])
    assert [(c["name"], c["type"]) for c in table["columnDefinitions"]] == [("Name", "string"), ("Age", "date")]
    assert table["rows"][0]["cells"] == ["backup", "5m"]


def test_columns_from_a_broken_path_on_are_left_out() -> None:
    columns = [column(".spec.size"), column(".spec["), column(".spec.schedule")]
    table = table_for("example.com", "backups", [OBJ], NOW, crd_columns=columns)
    assert len(table["columnDefinitions"]) == 2
    assert table["rows"][0]["cells"] == ["backup", "3"]


def test_a_number_too_great_for_an_integer_column_is_the_lowest_one() -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    for size in (2.0**64, 2**63, -(2.0**70)):
        row = shown("example.com", "things", {"metadata": meta(), "spec": {"size": size}}, columns)
        assert row["Size"] == -(2**63)
