"""Data sets: the records with which an application's programs fill their stores when they first start.

A startup step names one (`rows: users`). They are written beside the application, as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from srearena.cluster.embedded.programs.datastores.datastore import Record

DataSet = Callable[[], Sequence[Record]]
_DATA_SETS: dict[tuple[str, str], DataSet] = {}


def data_set(application: str, name: str) -> Callable[[DataSet], DataSet]:
    """Register a data set of an application."""

    def register(records: DataSet) -> DataSet:
        _DATA_SETS[application, name] = records
        return records

    return register


def records_of(application: str, rows: int | str | list[dict[str, object]]) -> Sequence[Record]:
    """Return the records of a startup step: listed, numbered, or those of a data set."""
    if isinstance(rows, list):
        return rows
    if isinstance(rows, str):
        return _DATA_SETS[application, rows]()
    return [{"_id": str(number)} for number in range(1, rows + 1)]
