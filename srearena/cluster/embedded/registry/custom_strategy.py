"""How custom resources behave on the write path: pruned, completed and validated as their definition says.

Objects are kept in the storage version, and it is that version's schema they are held to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.errors import FieldError, FieldErrorKind
from srearena.cluster.embedded.registry.json_values import owned
from srearena.cluster.embedded.registry.schema import Schema
from srearena.cluster.embedded.registry.strategy import Strategy
from srearena.cluster.embedded.registry.structural import Structural, apply_defaults, drop_nulls, prune
from srearena.cluster.embedded.registry.structural_validation import validation_errors

if TYPE_CHECKING:
    from srearena.cluster.embedded.registry.schema_rules import RuleNode


@dataclass(frozen=True, slots=True)
class DefaultsWhenRead:
    """Fills in the defaults of a version's schema (as JSON): objects may be older than the defaults."""

    schema: bytes

    @classmethod
    def of(cls, version: Obj) -> DefaultsWhenRead | None:
        """Those of one entry of `spec.versions`; None where there is nothing to fill in."""
        schema = orjson.dumps(dig(version, "schema", "openAPIV3Schema", default={}), option=orjson.OPT_SORT_KEYS)
        return cls(schema) if b'"default":' in schema else None

    def __call__(self, obj: Obj) -> Obj:
        completed = owned(obj)
        apply_defaults(completed, _parsed(self.schema))
        return obj if completed == obj else completed


@lru_cache(maxsize=256)
def _parsed(schema: bytes) -> Structural:
    found: Structural = orjson.loads(schema)
    return found


def custom_strategy(definition: Obj, schemas: Mapping[tuple[str, str, str], Schema]) -> Strategy:
    """The strategy of the resource that a CustomResourceDefinition defines."""
    spec = definition["spec"]
    storage = next((version for version in spec["versions"] if version.get("storage")), None)
    schema = schemas.get((spec["group"], storage["name"], spec["names"]["kind"])) if storage else None
    if schema is None:
        return Strategy()

    def default(obj: Obj) -> None:
        if not spec.get("preserveUnknownFields"):
            prune(obj, schema.raw)
        drop_nulls(obj, schema.raw)
        apply_defaults(obj, schema.raw)

    rules = _Rules(schema)

    def validate_create(obj: Obj) -> list[FieldError]:
        found = validation_errors(obj, schema)
        return found + rules.errors(obj, None, found)

    def validate_update(obj: Obj, old: Obj) -> list[FieldError]:
        found = [error for error in validation_errors(obj, schema) if not is_unchanged(error, obj, old)]
        return found + rules.errors(obj, old, found)

    has_status = "status" in dig(storage, "subresources", default={})
    return Strategy(
        default=default,
        validate_create=validate_create,
        validate_update=validate_update,
        validate_status=validate_update,
        keeps_status_on_create=not has_status,
    )


_BLOCKING: Final = frozenset(
    {
        FieldErrorKind.NOT_SUPPORTED,
        FieldErrorKind.REQUIRED,
        FieldErrorKind.TOO_LONG,
        FieldErrorKind.TOO_MANY,
        FieldErrorKind.TYPE_INVALID,
    }
)
"""Errors of an object on which no rules are evaluated."""
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class _Rules:
    """The rules of a schema in CEL, which is imported when there are any."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._has_rules = b'"x-kubernetes-validations"' in orjson.dumps(schema.raw)

    def errors(self, obj: Obj, old: Obj | None, found: list[FieldError]) -> list[FieldError]:
        """What the rules have against an object, given the errors it has otherwise."""
        if not self._has_rules:
            return []
        if any(error.kind in _BLOCKING for error in found):
            return [FieldError.invalid("<nil>", None, _NOT_CHECKED)]
        return self._tree.errors(obj, old)

    @cached_property
    def _tree(self) -> RuleNode:
        from srearena.cluster.embedded.registry.schema_rules import RuleNode

        return RuleNode(self._schema.raw, root=True)


def is_unchanged(error: FieldError, obj: Obj, old: Obj) -> bool:
    """Whether an error is about a value that an update leaves as it was (ratcheting).

    Items of lists count as unchanged where the list as a whole is: their place says nothing about which they were.
    """
    path = error.field
    if error.kind is FieldErrorKind.REQUIRED:
        path = path.rpartition(".")[0]
    now: Any = obj
    before: Any = old
    while path and isinstance(now, dict) and isinstance(before, dict):
        key = next((key for key in sorted(now, key=len, reverse=True) if _leads(path, key)), None)
        if key is None or key not in before:
            return False
        path, now, before = path[len(key) :].removeprefix("."), now[key], before[key]
        if now == before:
            return True
    return False


def _leads(path: str, key: str) -> bool:
    return path == key or (path.startswith(key) and path[len(key)] in ".[")
