"""Validation rules of custom resources in CEL (x-kubernetes-validations), with transition rules and ratcheting.

Only imported where a schema has rules. A tree of `RuleNode`s follows the schema as far as there are rules below; types
and values are those that the API server derives from a structural schema.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from srearena.cluster.embedded.cel import types
from srearena.cluster.embedded.cel.compiled import Expression, compile, estimated_cost
from srearena.cluster.embedded.cel.errors import CompileError, CostExceeded, EvaluationError
from srearena.cluster.embedded.cel.estimates import capped
from srearena.cluster.embedded.cel.standard import duration, timestamp
from srearena.cluster.embedded.cel.types import BOOL, DYN, INT, STRING, ObjectType, Type
from srearena.cluster.embedded.cel.values import KeyedList, Optional, SetList
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.schema_fields import field_name, with_metadata
from srearena.cluster.embedded.registry.schema_sizes import Declared, declared, most_elements
from srearena.cluster.embedded.registry.structural import Structural

WORD: Final = "x-kubernetes-validations"
_BUDGET: Final = 10_000_000
"""The cost of all rules of an object, in CEL's units."""
_MOST_COST: Final = 10_000_000
"""What a rule may cost by its estimate, with all values that it is evaluated for."""
_MOST_TOTAL_COST: Final = 100_000_000
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_MOST_MESSAGE_BYTES: Final = 5 * 1024
_SCALARS: Final = {"boolean": BOOL, "integer": INT, "number": Type("double"), "string": STRING}
_FORMATS: Final = {
    "date-time": types.TIMESTAMP,
    "date": types.TIMESTAMP,
    "duration": types.DURATION,
    "byte": Type("bytes"),
}
_MISSING: Final = object()


def type_of(schema: Structural, name: str = "self") -> Type | None:
    """The type of values of a schema; None for those that expressions cannot see."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    kind = schema.get("type")
    if kind == "array":
        items = type_of(schema.get("items") or {}, f"{name}.items")
        return types.list_of(items) if items is not None else None
    if kind == "object":
        return _object_type(schema, name)
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    return _SCALARS.get(kind or "")


def _object_type(schema: Structural, name: str) -> Type | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        value = type_of(extra, f"{name}.values")
        return types.map_of(STRING, value) if value is not None else None
    properties = dict(schema.get("properties") or {})
    if schema.get("x-kubernetes-embedded-resource"):
        properties = with_metadata(schema)["properties"]
    if not properties and schema.get("x-kubernetes-preserve-unknown-fields"):
        return None
    fields: dict[str, Type] = {}
    for key, below in properties.items():
        known, escaped = type_of(below, f"{name}.{key}"), field_name(key)
        if known is not None and escaped is not None:
            fields[escaped] = known
    return ObjectType.of(name, fields)


def value_of(value: Any, schema: Structural) -> Any:
    """A value as expressions see it."""
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return value
    kind = schema.get("type")
    if kind == "number" and isinstance(value, int):
        return float(value)
    if kind == "string":
        return _text_value(value, schema.get("format"))
    if kind == "array" and isinstance(value, list):
        return _list_value(value, schema)
    if kind != "object" or not isinstance(value, dict):
        return value
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return {key: value_of(item, extra) for key, item in value.items()}
    properties = schema.get("properties") or {}
    if schema.get("x-kubernetes-embedded-resource"):
        properties = with_metadata(schema)["properties"]
    return {field_name(key): value_of(item, properties[key]) for key, item in value.items() if key in properties}


def _text_value(value: Any, format: str | None) -> Any:
    try:
        if format == "date-time":
            return timestamp(value)
        if format == "date":
            return timestamp(f"{value}T00:00:00Z")
        if format == "duration":
            return duration(value)
        return base64.b64decode(value, validate=True) if format == "byte" else value
    except (EvaluationError, binascii.Error, TypeError):
        return value


def _list_value(value: list[Any], schema: Structural) -> list[Any]:
    items = [value_of(item, schema.get("items") or {}) for item in value]
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return SetList(items)
    if kind == "map":
        keyed = KeyedList(items)
        keyed.keys = tuple(field_name(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ())
        return keyed
    return items


@dataclass(slots=True)
class _Run:
    """The evaluation of all rules of one object."""

    budget: int = _BUDGET
    errors: list[FieldError] = field(default_factory=list)

    def exhausted(self) -> bool:
        return self.budget < 0

    def value(self, expression: Expression, variables: dict[str, Any]) -> Any:
        outcome = expression.evaluate(variables)
        self.budget -= outcome.cost
        return outcome.value


class Rule:
    """One rule of a schema, compiled when first needed."""

    def __init__(self, wire: Obj, self_type: Type) -> None:
        self.wire = wire
        self.optional_old = bool(wire.get("optionalOldSelf"))
        old = types.optional_of(self_type) if self.optional_old else self_type
        self._variables = {"self": self_type, "oldSelf": old}

    @cached_property
    def condition(self) -> Expression:
        return compile(self.wire["rule"], self._variables)

    @cached_property
    def message(self) -> Expression | None:
        source = self.wire.get("messageExpression")
        return compile(source, self._variables) if source else None

    @cached_property
    def uses_old(self) -> bool:
        return self.condition.refers_to("oldSelf")

    @property
    def text(self) -> str:
        return str(self.wire.get("message") or self.wire["rule"]).strip()

    @property
    def default_message(self) -> str:
        return self.text if self.wire.get("message") else f"failed rule: {self.text}"

    def costs(self, sizes: Declared) -> tuple[int, int | None]:
        """What the rule and its message cost at most; None without a message that is computed."""
        condition = estimated_cost(self.condition, self._variables, sizes.size)
        if self.message is None:
            return condition, None
        return condition, estimated_cost(self.message, self._variables, sizes.size)

    def problems(self, path: str) -> Iterator[FieldError]:
        """What is wrong with the rule itself."""
        wire = {name: self.wire.get(key, empty) for name, key, empty in _INTERNAL_FIELDS}
        try:
            if self.condition.type != BOOL:
                yield FieldError.invalid(f"{path}.rule", wire, "cel expression must evaluate to a bool")
                return
        except CompileError as problem:
            yield FieldError.invalid(f"{path}.rule", wire, f"compilation failed: {problem}")
            return
        try:
            if self.message is not None and self.message.type != STRING:
                yield FieldError.invalid(
                    f"{path}.messageExpression", wire, "messageExpression must evaluate to a string"
                )
        except CompileError as problem:
            yield FieldError.invalid(
                f"{path}.messageExpression", wire, f"messageExpression compilation failed: {problem}"
            )
        if self.wire.get("optionalOldSelf") is not None and not self.uses_old:
            why = "may not be set if oldSelf is not used in rule"
            yield FieldError.invalid(f"{path}.optionalOldSelf", self.wire["optionalOldSelf"], why)


_INTERNAL_FIELDS: Final = (
    ("Rule", "rule", ""),
    ("Message", "message", ""),
    ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None),
    ("FieldPath", "fieldPath", ""),
    ("OptionalOldSelf", "optionalOldSelf", None),
)
"""The fields of a rule under the names of the server's internal type, which its messages show."""


class TotalCost:
    """What the rules of a definition may cost, each and together."""

    def __init__(self) -> None:
        self._total = 0
        self._dear: list[tuple[int, str]] = []

    def add(self, path: str, rule: Rule, sizes: Declared, repetitions: int | None) -> Iterator[FieldError]:
        """Count a rule, and refuse it where it may cost too much; `repetitions` as far as schemas limit them."""
        condition, message = rule.costs(sizes)
        cost = capped(condition * (sizes.repetitions if repetitions is None else repetitions))
        yield from self._observe(f"{path}.rule", "estimated rule cost", cost)
        if message is not None:
            yield from self._observe(f"{path}.messageExpression", "estimated messageExpression cost", message)

    def _observe(self, path: str, name: str, cost: int) -> Iterator[FieldError]:
        if cost > _MOST_COST:
            yield FieldError.forbidden(path, _excess(name, cost, _MOST_COST))
        self._total = capped(self._total + cost)
        if cost >= _MOST_TOTAL_COST // 100:
            self._dear = sorted([*self._dear, (-cost, path)], key=lambda one: one[0])[:4]

    def problems(self, path: str) -> Iterator[FieldError]:
        """What is wrong with all rules together."""
        if self._total <= _MOST_TOTAL_COST:
            return
        for _, place in self._dear:
            why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield FieldError.forbidden(place, why)
        name = f"{WORD} estimated rule cost total for entire OpenAPIv3 schema"
        yield FieldError.forbidden(path, _excess(name, self._total, _MOST_TOTAL_COST))


def _excess(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    by = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{name} exceeds budget by factor of {by} (try simplifying the rule, or adding maxItems, maxProperties, and "
        "maxLength where arrays, maps, and strings are declared)"
    )


class RuleNode:
    """The rules of one schema and of those below it."""

    def __init__(self, schema: Structural, *, root: bool = False) -> None:
        self.schema = with_metadata(schema) if root else schema
        self.rules: list[Rule] = []
        if schema.get(WORD):
            known = type_of(self.schema) or DYN
            self.rules = [Rule(wire, known) for wire in schema[WORD]]
        self._properties = {key: RuleNode(below) for key, below in (schema.get("properties") or {}).items()}
        extra, items = schema.get("additionalProperties"), schema.get("items")
        self._values = RuleNode(extra) if isinstance(extra, dict) else None
        self._items = RuleNode(items) if isinstance(items, dict) else None
        below = [*self._properties.values(), self._values, self._items]
        self.empty: bool = not self.rules and all(node is None or node.empty for node in below)

    def all_problems(self, path: str) -> Iterator[FieldError]:
        """What is wrong with all rules of a schema, one by one and in what they may cost together."""
        total = TotalCost()
        yield from self._problems(path, "", total, 1)
        yield from total.problems(path)

    def _problems(
        self, path: str, uncorrelated: str, total: TotalCost, repetitions: int | None
    ) -> Iterator[FieldError]:
        """What is wrong with the rules of the schema at a path; in an uncorrelated list none may refer to oldSelf.

        `repetitions` is how often a value can be there, None where no schema above sets a limit.
        """
        each = most_elements(self.schema)
        below = None if repetitions is None or each is None else capped(repetitions * each)
        for key, node in sorted(self._properties.items()):
            yield from node._problems(f"{path}.properties[{key}]", uncorrelated, total, below)
        if self._values is not None:
            yield from self._values._problems(f"{path}.additionalProperties", uncorrelated, total, below)
        if self._items is not None:
            keyed = self.schema.get("x-kubernetes-list-type") == "map"
            yield from self._items._problems(f"{path}.items", uncorrelated or ("" if keyed else path), total, below)
        sizes = declared(self.schema) if self.rules else None
        for index, rule in enumerate(self.rules):
            here = f"{path}.{WORD}[{index}]"
            found = list(rule.problems(here))
            if sizes is not None and not found:
                yield from total.add(here, rule, sizes, repetitions)
            yield from found
            if uncorrelated and not found and rule.uses_old:
                why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                yield FieldError.invalid(f"{here}.rule", rule.wire["rule"], why)

    def errors(self, obj: Obj, old: Obj | None) -> list[FieldError]:
        """What the rules have against an object, except for values that an update leaves as they were."""
        run = _Run()
        self._evaluate(run, obj, _MISSING if old is None else old, "", unchanged=False)
        return run.errors

    def _evaluate(self, run: _Run, value: Any, old: Any, path: str, *, unchanged: bool) -> None:
        if self.empty or value is None or run.exhausted():
            return
        unchanged = value == old if old is not _MISSING else unchanged
        for rule in self.rules:
            self._apply(run, rule, value, old, path, unchanged=unchanged)
            if run.exhausted():
                return
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, item in value.items():
                node, here = self._below(key, path)
                if node is not None:
                    node._evaluate(run, item, before.get(key, _MISSING), here, unchanged=unchanged)
        elif isinstance(value, list) and self._items is not None:
            known = self._correlated(old)
            for index, item in enumerate(value):
                earlier = known.get(self._key(item), _MISSING)
                self._items._evaluate(run, item, earlier, f"{path}[{index}]", unchanged=unchanged)

    def _below(self, key: str, path: str) -> tuple[RuleNode | None, str]:
        if key in self._properties:
            return self._properties[key], f"{path}.{key}" if path else key
        return self._values, f"{path}[{key}]"

    def _key(self, item: Any) -> tuple[str, ...]:
        keys = self.schema.get("x-kubernetes-list-map-keys") or ()
        return tuple(repr(item.get(key)) for key in keys) if isinstance(item, dict) else ()

    def _correlated(self, old: Any) -> dict[tuple[str, ...], Any]:
        """The items of the old list by their keys; items of other lists have no earlier value."""
        if self.schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
            return {}
        return {self._key(item): item for item in old}

    def _apply(self, run: _Run, rule: Rule, value: Any, old: Any, path: str, *, unchanged: bool) -> None:
        """Evaluate one rule; transition rules need an earlier value, unless they take it as optional."""
        kind, where = self.schema.get("type", ""), path or "<nil>"
        try:
            if rule.uses_old and old is _MISSING and not rule.optional_old:
                return
            variables: dict[str, Any] = {"self": value_of(value, self.schema)}
            before = None if old is _MISSING else value_of(old, self.schema)
            variables["oldSelf"] = Optional(old is not _MISSING, before) if rule.optional_old else before
            if run.value(rule.condition, variables) is True:
                return
        except CompileError as problem:
            run.errors.append(FieldError.invalid(where, kind, f"rule compile error: compilation failed: {problem}"))
            return
        except CostExceeded as problem:
            why = f"'{problem}': no further validation rules will be run due to call cost exceeds limit for rule"
            run.errors.append(FieldError.invalid(where, kind, f"{why}: {rule.text}"))
            run.budget = -1
            return
        except EvaluationError as problem:
            run.errors.append(FieldError.invalid(where, kind, _failure(problem, rule)))
            return
        if run.exhausted():
            run.errors.append(FieldError.invalid(where, kind, _OUT_OF_BUDGET))
            return
        if unchanged and not rule.uses_old:
            return
        at = f"{path}{rule.wire.get('fieldPath') or ''}".lstrip(".") or "<nil>"
        run.errors.append(_error_for(rule.wire.get("reason"), at, kind, _message(run, rule, variables)))


def _failure(problem: EvaluationError, rule: Rule) -> str:
    if str(problem).startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{problem}': {why}: {rule.text}"
    return f"{problem} evaluating rule: {rule.text}"


def _message(run: _Run, rule: Rule, variables: dict[str, Any]) -> str:
    try:
        found = run.value(rule.message, variables) if rule.message is not None else ""
    except (EvaluationError, CompileError):
        found = ""
    text = found.strip() if isinstance(found, str) else ""
    usable = text and "\n" not in text and len(text.encode()) <= _MOST_MESSAGE_BYTES
    return text if usable else rule.default_message


def _error_for(reason: str | None, path: str, value: str, message: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return FieldError.forbidden(path, message)
    if reason == "FieldValueRequired":
        return FieldError.required(path, message)
    return (
        FieldError.duplicate(path, value)
        if reason == "FieldValueDuplicate"
        else FieldError.invalid(path, value, message)
    )
