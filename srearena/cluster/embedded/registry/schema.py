"""One compiled form for the shape of any object, whether a built-in kind or a custom resource.

A `Schema` is a node of a lazily grown graph: a struct's fields are compiled when first asked for, and a
definition that refers to itself refers to the same node. Nodes are shared by every cluster in the process and
never change after they are built. They answer what decoding, patching, applying and validating need: which
fields there are, what a scalar must be, how lists and maps merge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from srearena.cluster.embedded.objects import Obj


class Shape(StrEnum):
    """What a value must look like on the wire."""

    STRUCT = "struct"
    MAP = "map"
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    ANY = "any"


_SCALARS: Final = {
    "string": Shape.STRING,
    "integer": Shape.INTEGER,
    "number": Shape.NUMBER,
    "boolean": Shape.BOOLEAN,
}
_NOTHING: Final[Mapping[str, Any]] = {}
_NO_FIELDS: Final[Mapping[str, Schema]] = {}

Resolve = Callable[[str], "Schema"]


class Schema:
    """The shape of one value. Build with `compile_definition` or `compile_structural`."""

    __slots__ = (
        "_compile",
        "_element",
        "_fields",
        "_raw_element",
        "_raw_fields",
        "default",
        "embedded",
        "format",
        "item_keys",
        "list_keys",
        "list_type",
        "map_type",
        "name",
        "patch_key",
        "patch_strategy",
        "preserve_unknown",
        "raw",
        "required",
        "shape",
    )

    def __init__(self, shape: Shape, name: str = "") -> None:
        self.shape = shape
        #: The definition this node stands for, `io.k8s.api.core.v1.Pod`; empty for anonymous nodes.
        self.name = name
        self.format = ""
        self.required: tuple[str, ...] = ()
        #: `atomic`, `set`, `map` or empty; and the keys that identify an item of a `map` list.
        self.list_type = ""
        self.list_keys: tuple[str, ...] = ()
        #: The keys sorted, each with its default; filled in by `schemas.item_keys` when first needed.
        self.item_keys: tuple[tuple[str, Any], ...] | None = None
        #: `atomic`, `granular` or empty; of structs as well as of maps.
        self.map_type = ""
        self.patch_strategy: frozenset[str] = frozenset()
        self.patch_key = ""
        self.default: Any = None
        #: A custom resource's x-kubernetes-preserve-unknown-fields and x-kubernetes-embedded-resource.
        self.preserve_unknown = False
        self.embedded = False
        #: A custom resource's schema as written: it holds the rules that `structural` enforces.
        self.raw: Mapping[str, Any] = _NOTHING
        self._raw_fields: Mapping[str, Any] | None = None
        self._raw_element: Any = None
        self._fields: Mapping[str, Schema] | None = _NO_FIELDS
        self._element: Schema | None = None
        self._compile: Callable[[Any], Schema] | None = None

    @classmethod
    def of_fields(cls, fields: Mapping[str, Schema]) -> Schema:
        """A struct of these fields, which are compiled already."""
        node = cls(Shape.STRUCT)
        node._fields = fields
        return node

    @property
    def fields(self) -> Mapping[str, Schema]:
        """The fields of a struct, by name; none for anything else."""
        fields = self._fields
        if fields is None:
            compile_one, raw = self._compile, self._raw_fields or _NOTHING
            assert compile_one is not None
            fields = self._fields = {name: compile_one(value) for name, value in raw.items()}
        return fields

    @property
    def element(self) -> Schema:
        """What a list holds, or what a map holds under each key."""
        element = self._element
        if element is None:
            compile_one = self._compile
            element = ANYTHING if compile_one is None or self._raw_element is None else compile_one(self._raw_element)
            self._element = element
        return element

    @property
    def type_name(self) -> str:
        """The last part of the definition's name: `Pod`."""
        return self.name.rpartition(".")[2]

    def field(self, name: str) -> Schema | None:
        """The schema of a struct's field or of a map's value under that key."""
        found = self.fields.get(name)
        if found is None and self.shape is Shape.MAP:
            return self.element
        return found

    def at(self, *path: str) -> Schema | None:
        """The schema some fields down, passing through lists."""
        here: Schema | None = self
        for name in path:
            while here is not None and here.shape is Shape.LIST:
                here = here.element
            here = here.field(name) if here is not None else None
        return here

    def _grow(
        self, raw_fields: Mapping[str, Any] | None, raw_element: Any, compile_one: Callable[[Any], Schema]
    ) -> None:
        self._raw_fields, self._raw_element, self._compile = raw_fields, raw_element, compile_one
        if raw_fields is not None:
            self._fields = None

    def _like(self) -> Schema:
        """A copy that shares what has been compiled below it, to carry a field's own patch directives."""
        duplicate = Schema.__new__(Schema)
        for slot in Schema.__slots__:
            setattr(duplicate, slot, getattr(self, slot))
        return duplicate

    def __repr__(self) -> str:
        return f"Schema({self.name or self.shape.value})"


ANYTHING: Final = Schema(Shape.ANY)


def compile_definition(raw: Obj, resolve: Resolve, name: str = "") -> Schema:
    """A node from a packaged (OpenAPI v2) definition; `resolve` gives the node of a `$ref`."""
    if reference := raw.get("$ref"):
        target = resolve(reference)
        directives = [key for key in raw if key.startswith("x-kubernetes-")]
        if not directives:
            return target
        node = target._like()
        _read_directives(node, raw)
        return node
    kinds = raw.get("type")
    kind = next((k for k in kinds if k != "null"), "") if isinstance(kinds, list) else kinds or ""
    node = Schema(_definition_shape(raw, kind), name)
    node.format = raw.get("format", "")
    node.required = tuple(raw.get("required", ()))
    _read_directives(node, raw)
    if node.shape in (Shape.STRUCT, Shape.MAP, Shape.LIST):
        element = raw.get("items") if node.shape is Shape.LIST else raw.get("additionalProperties")
        node._grow(raw.get("properties"), element, lambda part: compile_definition(part, resolve))
    return node


def _definition_shape(raw: Obj, kind: str) -> Shape:
    if kind == "object":
        return Shape.STRUCT if "properties" in raw else Shape.MAP
    if kind == "array":
        return Shape.LIST
    return _SCALARS.get(kind, Shape.ANY)


def _read_directives(node: Schema, raw: Obj) -> None:
    if strategy := raw.get("x-kubernetes-patch-strategy"):
        node.patch_strategy = frozenset(strategy.split(","))
    node.patch_key = raw.get("x-kubernetes-patch-merge-key", node.patch_key)
    node.list_type = raw.get("x-kubernetes-list-type", node.list_type)
    node.list_keys = tuple(raw.get("x-kubernetes-list-map-keys", node.list_keys))
    node.map_type = raw.get("x-kubernetes-map-type", node.map_type)


def compile_structural(raw: Obj, metadata: Schema | None = None) -> Schema:
    """A node from a custom resource's openAPIV3Schema.

    With `metadata`, the node is the root of an object: apiVersion, kind and metadata are always there, whatever
    the schema says of them. The same holds at every x-kubernetes-embedded-resource.
    """
    return _structural(raw, metadata, metadata is not None)


def _structural(raw: Any, metadata: Schema | None, is_object: bool) -> Schema:
    if not isinstance(raw, dict):
        return ANYTHING
    embedded = raw.get("x-kubernetes-embedded-resource") is True
    node = Schema(_structural_shape(raw))
    node.format = raw.get("format", "")
    node.default = raw.get("default")
    node.embedded = embedded
    node.preserve_unknown = raw.get("x-kubernetes-preserve-unknown-fields") is True
    node.raw = raw
    node.required = tuple(raw.get("required") or ())
    _read_directives(node, raw)
    fields = raw.get("properties")
    element = raw.get("items") if node.shape is Shape.LIST else raw.get("additionalProperties")
    if (is_object or embedded) and metadata is not None:
        node.shape = Shape.STRUCT
        fields = {"apiVersion": _STRING_FIELD, "kind": _STRING_FIELD, **(fields or {}), "metadata": metadata}
    node._grow(fields, element, lambda part: part if isinstance(part, Schema) else _structural(part, metadata, False))
    return node


_STRING_FIELD: Final = Schema(Shape.STRING)


def _structural_shape(raw: Obj) -> Shape:
    if raw.get("x-kubernetes-int-or-string") is True:
        return Shape.INT_OR_STRING
    kind = raw.get("type")
    if kind == "object":
        return Shape.MAP if raw.get("additionalProperties") and not raw.get("properties") else Shape.STRUCT
    if kind == "array":
        return Shape.LIST
    return _SCALARS.get(kind or "", Shape.ANY)
