"""JSON merge patch (RFC 7386), as the library behind the API server does it.

The library goes one step further than the RFC: where a list comes in anew or replaces something that is no
object, nulls are also dropped from the objects inside it.
"""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, copy_of
from srearena.cluster.embedded.registry.errors import BadRequest
from srearena.cluster.embedded.registry.json_values import kind_of, owned
from srearena.cluster.embedded.registry.schema import Schema


def apply_merge_patch(current: Obj, patch: Any, schema: Schema | None = None) -> Obj:
    """`current` with `patch` merged into it. The schema plays no part; it is there so that all patches look alike."""
    if patch is None:
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {kind_of(patch)} into Go value of type "
            "map[string]interface {}"
        )
    result = copy_of(current)
    _merge(result, owned(patch))
    return result


def _merge(target: Obj, patch: Obj) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
            continue
        here = target.get(key)
        if isinstance(here, dict):
            if isinstance(value, dict):
                _merge(here, value)
            else:
                target[key] = value
        else:
            _drop_nulls(value)
            target[key] = value


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            _drop_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item)
