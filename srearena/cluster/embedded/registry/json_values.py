"""JSON values in memory: copies that own everything, equality as JSON sees it, and a bound on depth.

Python holds that `True == 1 == 1.0`; on the wire these are three values. Anything deeper than the serializer
accepts is refused here, before it can be stored.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from srearena.cluster.embedded.registry.errors import BadRequest

#: What the serializer can write; the recursion of everything that walks objects is bounded by it.
MAX_DEPTH: Final = 250


def owned(value: Any) -> Any:
    """A copy that shares nothing with `value`. Raises BadRequest where it could not go over the wire."""
    if isinstance(value, dict | list):
        return orjson.loads(written(value))
    return value


def written(value: Any) -> bytes:
    """The value as JSON. Raises BadRequest where it is nested too deeply or holds what JSON cannot say."""
    try:
        return orjson.dumps(value)
    except TypeError as problem:
        # orjson has one exception type for everything; only depth and oversized integers can come from parsed JSON.
        why = "exceeded max depth" if "ecursion" in str(problem) else f"json: unsupported value: {problem}"
        raise BadRequest(why) from None


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON, whatever the order of keys."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict | list):
        option = orjson.OPT_SORT_KEYS
        return orjson.dumps(one, option=option) == orjson.dumps(other, option=option)
    return bool(one == other)


_GO_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def kind_of(value: Any) -> str:
    """What encoding/json calls the kind of a value in its complaints."""
    return _GO_KINDS.get(type(value), "null")
