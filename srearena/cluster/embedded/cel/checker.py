"""The type checker of CEL: the type of an expression, or every place where types do not agree, in cel-go's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from srearena.cluster.embedded.cel.errors import EvaluationError, Issue
from srearena.cluster.embedded.cel.functions import OVERLOADS, overloads
from srearena.cluster.embedded.cel.standard import duration, timestamp
from srearena.cluster.embedded.cel.syntax import Call, Fold, ListOf, Literal, MapOf, Message, Name, Node, Select
from srearena.cluster.embedded.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    NULL,
    ObjectType,
    Parameter,
    Signature,
    Type,
    assignable,
    list_of,
    map_of,
    optional_of,
    substitute,
)
from srearena.cluster.embedded.cel.values import type_name
from srearena.regular_expressions import PatternError, pattern

_OPERATORS: Final = {
    "_&&_": [Signature("_&&_", None, (BOOL, BOOL), BOOL)],
    "_||_": [Signature("_||_", None, (BOOL, BOOL), BOOL)],
    "_?_:_": [Signature("_?_:_", None, (BOOL, Parameter("A"), Parameter("A")), Parameter("A"))],
}
TYPE_NAMES: Final = {
    **{name: name for name in ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null_type")},
    "google.protobuf.Timestamp": "google.protobuf.Timestamp",
    "google.protobuf.Duration": "google.protobuf.Duration",
}
_LITERALS: Final[dict[str, Callable[[str], object]]] = {
    "timestamp": timestamp,
    "duration": duration,
    "matches": pattern,
}
_PREDICATES: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter"})


def qualified(node: Node) -> str:
    """`a.b.c` of a chain of selections from a name; empty for anything else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        owner = qualified(node.operand)
        return f"{owner}.{node.field}" if owner else ""
    return ""


def namespaced(call: Call) -> str:
    """The name of a function in a namespace (`optional.of`); empty for a method."""
    if call.target is None:
        return ""
    owner = qualified(call.target)
    name = f"{owner}.{call.function}"
    return name if owner and (name, False) in OVERLOADS else ""


class Checker:
    def __init__(self, variables: Mapping[str, Type]) -> None:
        self._variables = dict(variables)
        self.issues: list[Issue] = []
        self.types: dict[int, Type] = {}
        """The type of every part, by its identity."""

    def type_of(self, node: Node) -> Type:
        found = self.types[id(node)] = self._type_of(node)
        return found

    def _type_of(self, node: Node) -> Type:
        match node:
            case Literal():
                return NULL if node.value is None else Type(type_name(node.value))
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return list_of(self._items(node))
            case MapOf():
                return self._map(node)
            case Message():
                return self._message(node)
            case Fold():
                return self._fold(node)

    def _issue(self, at: int, message: str) -> Type:
        self.issues.append(Issue(at, message))
        return ERROR

    def _undeclared(self, at: int, name: str) -> Type:
        return self._issue(at, f"undeclared reference to '{name}' (in container '')")

    def _inside(self, variables: Mapping[str, Type], body: Node) -> Type:
        before = self._variables
        self._variables = {**before, **variables}
        found = self.type_of(body)
        self._variables = before
        return found

    def _name(self, node: Name) -> Type:
        found = self._variables.get(node.name)
        if found is not None:
            return found
        if node.name in TYPE_NAMES:
            return Type("type", (Type(node.name),))
        return self._undeclared(node.at, node.name)

    def _select(self, node: Select) -> Type:
        name = "" if node.test else qualified(node)
        if "." in name and name in self._variables:
            return self._variables[name]
        if name in TYPE_NAMES:
            return Type("type", (Type(name),))
        found = self._field(node, self.type_of(node.operand))
        if node.test:
            return BOOL
        if node.optional and found.name != "optional_type":
            return optional_of(found)
        return found

    def _field(self, node: Select, operand: Type) -> Type:
        if operand in (DYN, ERROR) or isinstance(operand, Parameter):
            return DYN if operand != ERROR else ERROR
        if operand.name == "optional_type":
            return optional_of(self._field(node, operand.parameters[0] if operand.parameters else DYN))
        if operand.name == "map":
            return operand.parameters[1] if operand.parameters else DYN
        if isinstance(operand, ObjectType):
            found = operand.fields.get(node.field)
            return found if found is not None else self._issue(node.at, f"undefined field '{node.field}'")
        return self._issue(node.at, f"type '{operand}' does not support field selection")

    def _call(self, node: Call) -> Type:
        name = namespaced(node)
        target = None if node.target is None or name else self.type_of(node.target)
        if node.function == "format" and target is not None and len(node.arguments) == 1:
            arguments = [self._format_values(node.arguments[0])]
        else:
            arguments = [self.type_of(argument) for argument in node.arguments]
        name = name or node.function
        signatures = _OPERATORS.get(name) or [
            candidate.signature for candidate in overloads(name, method=target is not None)
        ]
        if not signatures:
            return self._undeclared(node.at, name)
        self._check_literals(node, name)
        found = _results(signatures, [*([] if target is None else [target]), *arguments])
        if not found:
            listed = f"({', '.join(map(str, arguments))})"
            applied = listed if target is None else f"{target}.{listed}"
            return self._issue(node.at, f"found no matching overload for '{name}' applied to '{applied}'")
        return found[0] if all(result == found[0] for result in found) else DYN

    def _format_values(self, node: Node) -> Type:
        """The values of `format` may be of several types."""
        if not isinstance(node, ListOf):
            return self.type_of(node)
        for item in node.items:
            self.type_of(item)
        found = self.types[id(node)] = list_of(DYN)
        return found

    def _check_literals(self, node: Call, name: str) -> None:
        """Times, durations and regular expressions that are literals must be valid."""
        if name not in _LITERALS or not node.arguments:
            return
        last = node.arguments[-1]
        if not isinstance(last, Literal) or not isinstance(last.value, str):
            return
        try:
            _LITERALS[name](last.value)
        except (EvaluationError, PatternError):
            self._issue(last.at, f"invalid {name} argument")

    def _items(self, node: ListOf) -> Type:
        found: Type | None = None
        for place, item in enumerate(node.items):
            kind = self.type_of(item)
            if place in node.optional:
                kind = self._unwrapped(item, kind)
            found = self._joined(item, found, kind)
        return found or DYN

    def _unwrapped(self, node: Node, kind: Type) -> Type:
        if kind.name == "optional_type":
            return kind.parameters[0]
        return (
            DYN if kind in (DYN, ERROR) else self._issue(node.at, f"expected type 'optional_type' but found '{kind}'")
        )

    def _joined(self, node: Node, known: Type | None, found: Type) -> Type:
        if known is None or known in (DYN, ERROR):
            return found if known is None else known
        if not assignable(known, found, {}):
            self._issue(node.at, f"expected type '{known}' but found '{found}'")
        return known

    def _map(self, node: MapOf) -> Type:
        key: Type | None = None
        value: Type | None = None
        for key_node, value_node, optional in node.entries:
            key = self._joined(key_node, key, self.type_of(key_node))
            kind = self.type_of(value_node)
            value = self._joined(value_node, value, self._unwrapped(value_node, kind) if optional else kind)
        return map_of(key or DYN, value or DYN)

    def _message(self, node: Message) -> Type:
        return self._undeclared(node.at, node.name)

    def _fold(self, node: Fold) -> Type:
        target = self.type_of(node.target)
        if node.macro in ("optMap", "optFlatMap"):
            inner = target.parameters[0] if target.name == "optional_type" and target.parameters else DYN
            found = self._inside({node.variables[0]: inner}, node.arguments[0])
            return optional_of(found) if node.macro == "optMap" else found
        ranged = self._range(node, target)
        if ranged is None:
            return ERROR
        key, item = ranged
        variables = dict(zip(node.variables, (key, item) if len(node.variables) == 2 else (item,), strict=True))
        kinds = [self._inside(variables, argument) for argument in node.arguments]
        if node.macro in _PREDICATES or len(kinds) == 2:
            condition = kinds[0]
            if not assignable(BOOL, condition, {}):
                self._issue(node.arguments[0].at, f"expected type 'bool' but found '{condition}'")
        if node.macro in ("filter", "sortBy"):
            return list_of(item)
        if node.macro in ("map", "transformList"):
            return list_of(kinds[-1])
        if node.macro == "transformMap":
            return map_of(key, kinds[-1])
        return kinds[-1] if node.macro == "transformMapEntry" else BOOL

    def _range(self, node: Fold, target: Type) -> tuple[Type, Type] | None:
        """The types of keys and items that a macro goes over."""
        if target.name == "list":
            return INT, target.parameters[0] if target.parameters else DYN
        if target.name == "map":
            key, value = target.parameters or (DYN, DYN)
            return (key, value) if len(node.variables) == 2 else (key, key)
        if target in (DYN, ERROR) or isinstance(target, Parameter):
            return DYN, DYN
        what = f"expression of type '{target}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._issue(node.target.at, what)
        return None


def _results(signatures: list[Signature], arguments: list[Type]) -> list[Type]:
    """The result types of the overloads that take these arguments."""
    found = []
    for signature in signatures:
        expected = signature.all_arguments
        bound: dict[str, Type] = {}
        if len(expected) == len(arguments) and all(
            assignable(one, other, bound) for one, other in zip(expected, arguments, strict=True)
        ):
            found.append(substitute(signature.result, bound))
    return found
