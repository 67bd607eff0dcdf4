"""Type checks of admission policies against the kinds that they match: warnings for their authors, never a refusal."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from srearena.cluster.embedded.cel.errors import CompileError
from srearena.cluster.embedded.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, ObjectType, Type, list_of, map_of
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.admission.expressions import Scope, compiled, with_variable
from srearena.cluster.embedded.registry.resources import Resource, ResourceTable
from srearena.cluster.embedded.registry.schema import Schema, Shape
from srearena.cluster.embedded.registry.schema_fields import field_name

_MOST_KINDS: Final = 10
_SCALARS: Final = {
    Shape.INTEGER: INT,
    Shape.NUMBER: Type("double"),
    Shape.BOOLEAN: BOOL,
    Shape.QUANTITY: STRING,
}
_FORMATS: Final = {"date-time": TIMESTAMP, "byte": Type("bytes")}


def warnings_of(policy: Obj, table: ResourceTable) -> list[Obj]:
    """The warnings about a policy's expressions, each with the kinds for which it does not compile."""
    rows = _matched(policy, table)
    warnings: list[Obj] = []
    for index, validation in enumerate(dig(policy, "spec", "validations", default=())):
        for field in ("expression", "messageExpression"):
            source = validation.get(field)
            problems = [text for row in rows if source and (text := _problem(policy, source, row))]
            if problems:
                path = f"spec.validations[{index}].{field}"
                warnings.append({"fieldRef": path, "warning": "\n".join(problems)})
    return warnings


def _matched(policy: Obj, table: ResourceTable) -> list[Resource]:
    """The built-in kinds that the policy names without a wildcard, in the order of their names."""
    found: dict[tuple[str, str, str], Resource] = {}
    for rule in dig(policy, "spec", "matchConstraints", "resourceRules", default=()):
        for group in sorted(rule.get("apiGroups") or ()):
            for version in sorted(rule.get("apiVersions") or ()):
                for plural in sorted(rule.get("resources") or ()):
                    row = table.find(group, version, plural)
                    if row is not None and not row.custom and len(found) < _MOST_KINDS:
                        found[row.group, row.version, row.kind] = row
    return [found[key] for key in sorted(found)]


def _problem(policy: Obj, source: str, row: Resource) -> str:
    object_type = _type_of_kind(row.group, row.version, row.kind)
    if object_type is None:
        return ""
    scope = Scope(params=bool(dig(policy, "spec", "paramKind")), object_type=object_type)
    for variable in dig(policy, "spec", "variables", default=()):
        scope = with_variable(scope, variable["name"], variable["expression"])
    try:
        compiled(source, scope)
    except CompileError as problem:
        group = f"{row.group}/{row.version}" if row.group else f"/{row.version}"
        return f"{group}, Kind={row.kind}: {problem}\n"
    return ""


@lru_cache(maxsize=256)
def _type_of_kind(group: str, version: str, kind: str) -> Type | None:
    schema = schemas.for_kind(group, version, kind)
    return _type_of(schema, kind, frozenset()) if schema is not None else None


def _type_of(schema: Schema, name: str, above: frozenset[str]) -> Type:
    """The type of values of a schema; a definition inside itself may be anything."""
    if schema.name in above:
        return DYN
    above = above | {schema.name} if schema.name else above
    if schema.shape is Shape.STRING:
        return _FORMATS.get(schema.format, STRING)
    if schema.shape is Shape.LIST:
        return list_of(_type_of(schema.element, f"{name}.items", above))
    if schema.shape is Shape.MAP:
        return map_of(STRING, _type_of(schema.element, f"{name}.values", above))
    if schema.shape is Shape.STRUCT and schema.fields:
        fields = {
            escaped: _type_of(field, f"{name}.{key}", above)
            for key, field in schema.fields.items()
            if (escaped := field_name(key)) is not None
        }
        return ObjectType.of(f"kubernetes.{name}", fields)
    return _SCALARS.get(schema.shape, DYN)
