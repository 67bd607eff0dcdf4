"""Queries, updates and pipelines over plain documents, in the forms operators type.

An operator (`$...`) that is not known here is an error that says so; nothing is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from srearena.cluster.embedded.programs.datastores.mongodb.values import Long, Moment, ObjectId, Pattern
from srearena.regular_expressions import PatternError
from srearena.regular_expressions import pattern as compiled

Document = dict[str, Any]
_MISSING = object()


class BadQuery(Exception):
    """The server refuses the query: an error code, its name and the text."""

    def __init__(self, message: str, code: int = 2, name: str = "BadValue") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.name = name


def at(document: Any, path: str) -> Any:
    """What a dotted path leads to, or `_MISSING`."""
    here = document
    for part in path.split("."):
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdigit() and int(part) < len(here):
            here = here[int(part)]
        elif isinstance(here, list):
            found = [at(item, part) for item in here if isinstance(item, dict)]
            here = [item for item in found if item is not _MISSING]
        else:
            return _MISSING
    return here


def rank(value: Any) -> tuple[int, Any]:
    """Where a value stands in MongoDB's order of types."""
    if value is _MISSING or value is None:
        return (1, 0)
    if isinstance(value, bool):
        return (8, value)
    if isinstance(value, int | float):
        return (2, value)
    if isinstance(value, Long):
        return (2, value.value)
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, ObjectId):
        return (7, value.text)
    if isinstance(value, Moment):
        return (9, value.seconds)
    return (4, str(value))


def _equal(have: Any, want: Any) -> bool:
    if isinstance(want, Pattern):
        return isinstance(have, str) and _search(want.body, want.flags, have)
    if want is None:
        return have is None or have is _MISSING
    if have is _MISSING:
        return False
    if isinstance(have, list) and not isinstance(want, list):
        return any(_equal(item, want) for item in have)
    return bool(rank(have) == rank(want) if not isinstance(want, dict | list) else have == want)


def _search(body: str, flags: str, text: str) -> bool:
    try:
        return compiled(f"(?i){body}" if "i" in flags else body).matches(text)
    except PatternError:
        raise BadQuery(f"Regular expression is invalid: {body}", 51091, "Location51091") from None


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(have: Any, want: Any) -> bool:
        if isinstance(have, list):
            return any(compare(item, want) for item in have)
        a, b = rank(have), rank(want)
        return have is not _MISSING and a[0] == b[0] and test(a[1], b[1])

    return compare


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": _equal,
    "$ne": lambda have, want: not _equal(have, want),
    "$gt": _ordered(lambda a, b: a > b),
    "$gte": _ordered(lambda a, b: a >= b),
    "$lt": _ordered(lambda a, b: a < b),
    "$lte": _ordered(lambda a, b: a <= b),
    "$in": lambda have, want: any(_equal(have, item) for item in want),
    "$nin": lambda have, want: not any(_equal(have, item) for item in want),
    "$exists": lambda have, want: (have is not _MISSING) == bool(want),
    "$size": lambda have, want: isinstance(have, list) and len(have) == want,
    "$regex": lambda have, want: (
        isinstance(have, str)
        and _search(
            want.body if isinstance(want, Pattern) else want, want.flags if isinstance(want, Pattern) else "", have
        )
    ),
    "$options": lambda have, want: True,
    "$not": lambda have, want: not _holds(have, want),
}


def _holds(have: Any, condition: Any) -> bool:
    if isinstance(condition, dict) and any(key.startswith("$") for key in condition):
        for operator, want in condition.items():
            test = _COMPARISONS.get(operator)
            if test is None:
                raise BadQuery(f"unknown operator: {operator}")
            if not test(have, want):
                return False
        return True
    return _equal(have, condition)


def matches(document: Document, query: Document) -> bool:
    for key, condition in query.items():
        if key in ("$and", "$or", "$nor"):
            results = [matches(document, part) for part in condition]
            verdict = all(results) if key == "$and" else any(results) if key == "$or" else not any(results)
            if not verdict:
                return False
        elif key == "$comment":
            continue
        elif key.startswith("$"):
            hint = "If you have a field name that starts with a '$' symbol, consider using $getField or $setField."
            raise BadQuery(f"unknown top level operator: {key}. {hint}")
        elif not _holds(at(document, key), condition):
            return False
    return True


def in_order(documents: Sequence[Document], order: Document) -> list[Document]:
    result = list(documents)
    for key, direction in reversed(list(order.items())):
        result.sort(key=lambda document: rank(at(document, key)), reverse=direction in (-1, -1.0))
    return result


def projected(document: Document, projection: Document) -> Document:
    if not projection:
        return document
    wanted = {key for key, value in projection.items() if value and key != "_id"}
    if wanted:
        return {key: document[key] for key in document if key in wanted or (key == "_id" and projection.get("_id", 1))}
    return {key: value for key, value in document.items() if projection.get(key, 1)}


# --- updates -------------------------------------------------------------------------------------------------------


def _put(document: Document, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    here: Any = document
    for part in parents:
        if not isinstance(here.get(part), dict):
            here[part] = {}
        here = here[part]
    here[last] = value


def _unset(document: Document, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    here: Any = at(document, ".".join(parents)) if parents else document
    if isinstance(here, dict):
        here.pop(last, None)


def _increase(document: Document, path: str, value: Any) -> None:
    before = at(document, path)
    _put(document, path, (0 if before is _MISSING else before) + value)


def _push(document: Document, path: str, value: Any) -> None:
    before = at(document, path)
    items = value["$each"] if isinstance(value, dict) and "$each" in value else [value]
    _put(document, path, [*(before if isinstance(before, list) else []), *items])


def _pull(document: Document, path: str, value: Any) -> None:
    before = at(document, path)
    if isinstance(before, list):
        gone = matches if isinstance(value, dict) else _equal
        _put(document, path, [item for item in before if not gone(item, value)])


def _rename(document: Document, path: str, value: Any) -> None:
    before = at(document, path)
    if before is not _MISSING:
        _unset(document, path, None)
        _put(document, value, before)


_UPDATES: dict[str, Callable[[Document, str, Any], None]] = {
    "$set": _put,
    "$unset": _unset,
    "$inc": _increase,
    "$push": _push,
    "$pull": _pull,
    "$rename": _rename,
    "$setOnInsert": lambda document, path, value: None,
}


def changed(document: Document, update: Document) -> Document:
    """The document after an update, the old one untouched."""
    if not any(key.startswith("$") for key in update):
        return {"_id": document.get("_id"), **{key: value for key, value in update.items() if key != "_id"}}
    result: Document = _copied(document)
    for operator, fields in update.items():
        apply = _UPDATES.get(operator)
        if apply is None:
            raise BadQuery(f"Unknown modifier: {operator}. Expected a valid update modifier", 9, "FailedToParse")
        for path, value in fields.items():
            apply(result, path, value)
    return result


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


# --- pipelines -----------------------------------------------------------------------------------------------------


def _term(document: Document, expression: Any) -> Any:
    if isinstance(expression, str) and expression.startswith("$"):
        found = at(document, expression[1:])
        return None if found is _MISSING else found
    if isinstance(expression, dict):
        return {key: _term(document, value) for key, value in expression.items()}
    return expression


def _numbers(values: list[Any]) -> list[float]:
    return [value for value in values if isinstance(value, int | float)]


def _average(values: list[Any]) -> float | None:
    numbers = _numbers(values)
    return sum(numbers) / len(numbers) if numbers else None


_ACCUMULATORS: dict[str, Callable[[list[Any]], Any]] = {
    "$sum": lambda values: sum(_numbers(values)),
    "$avg": _average,
    "$min": lambda values: min(values, key=rank),
    "$max": lambda values: max(values, key=rank),
    "$first": lambda values: values[0],
    "$last": lambda values: values[-1],
    "$push": lambda values: values,
    "$count": len,
}


def _grouped(documents: list[Document], spec: Document) -> list[Document]:
    groups: dict[str, tuple[Any, list[Document]]] = {}
    for document in documents:
        key = _term(document, spec.get("_id"))
        groups.setdefault(repr(key), (key, []))[1].append(document)
    rows: list[Document] = []
    for key, members in groups.values():
        row: Document = {"_id": key}
        for name, accumulator in spec.items():
            if name == "_id":
                continue
            [(operator, expression)] = accumulator.items()
            values = [_term(member, expression) for member in members]
            if operator not in _ACCUMULATORS:
                raise BadQuery(f"unknown group operator '{operator}'", 15952, "Location15952")
            row[name] = _ACCUMULATORS[operator](values)
        rows.append(row)
    return rows


def piped(documents: list[Document], pipeline: Sequence[Document]) -> list[Document]:
    for stage in pipeline:
        [(operator, spec)] = stage.items()
        if operator == "$match":
            documents = [document for document in documents if matches(document, spec)]
        elif operator == "$sort":
            documents = in_order(documents, spec)
        elif operator == "$limit":
            documents = documents[: int(spec)]
        elif operator == "$skip":
            documents = documents[int(spec) :]
        elif operator == "$count":
            documents = [{spec: len(documents)}] if documents else []
        elif operator == "$project":
            documents = [projected(document, spec) for document in documents]
        elif operator == "$group":
            documents = _grouped(documents, spec)
        elif operator == "$sample":
            documents = documents[: int(spec["size"])]
        else:
            raise BadQuery(f"Unrecognized pipeline stage name: '{operator}'", 40324, "Location40324")
    return documents
