"""Every row and every header recorded from the real printers comes out the same here, to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from srearena.cluster.embedded.api.tables import printer_for, table_for

from .shown import NOW, ago

_RECORDED = Path(__file__).parent / "recorded"
_ROWS = [orjson.loads(line) for line in (_RECORDED / "rows.json").read_text().splitlines()]
_COLUMNS = orjson.loads((_RECORDED / "columns.json").read_text())


def _at(value: Any) -> Any:
    """The object with its moments counted back from now."""
    if isinstance(value, dict):
        return {key: _at(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_at(entry) for entry in value]
    return ago(int(value[1:])) if isinstance(value, str) and value.startswith("@") else value


@pytest.mark.parametrize("case", [pytest.param(row, id=f"{row['resource']}-{n}") for n, row in enumerate(_ROWS)])
def test_rows_are_those_of_the_real_printers(case: dict[str, Any]) -> None:
    row = table_for(case["group"], case["resource"], [_at(case["obj"])], NOW)["rows"][0]
    assert (row["cells"], row.get("conditions")) == (case["cells"], case.get("conditions"))


@pytest.mark.parametrize("resource", _COLUMNS)
def test_columns_are_those_of_the_real_printers(resource: str) -> None:
    plural, _, group = resource.partition(".")
    shown = [[c["name"], c["type"], c["format"], c["priority"]] for c in printer_for(group, plural).definitions()]
    assert shown == _COLUMNS[resource]
