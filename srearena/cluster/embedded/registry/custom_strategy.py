"""How custom resources behave on the write path: pruned, completed and validated as their definition says.

Objects are kept in the storage version, and it is that version's schema they are held to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.json_values import owned
from srearena.cluster.embedded.registry.schema import Schema
from srearena.cluster.embedded.registry.strategy import Strategy
from srearena.cluster.embedded.registry.structural import Structural, apply_defaults, drop_nulls, prune
from srearena.cluster.embedded.registry.structural_validation import validation_errors


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

    def validate(obj: Obj) -> list[FieldError]:
        return validation_errors(obj, schema)

    def validate_status(obj: Obj, old: Obj) -> list[FieldError]:
        return validate(obj)

    has_status = "status" in dig(storage, "subresources", default={})
    return Strategy(
        default=default,
        validate=validate,
        validate_status=validate_status,
        keeps_status_on_create=not has_status,
    )
