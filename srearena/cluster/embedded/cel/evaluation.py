"""Evaluation of CEL: a tree becomes a function of a frame of variables, which counts the cost of what it does.

Costs are in cel-go's units: a variable or a field is 1, a call 1 or what its function says, a list literal 10, a map
literal 30. Logical operators and the macros `all` and `exists` disregard errors that do not decide the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from srearena.cluster.embedded.cel.checker import TYPE_NAMES, namespaced, qualified
from srearena.cluster.embedded.cel.collections import sorted_by
from srearena.cluster.embedded.cel.errors import CostExceeded, EvaluationError, no_such_overload
from srearena.cluster.embedded.cel.functions import choose, overloads
from srearena.cluster.embedded.cel.syntax import Call, Fold, ListOf, Literal, MapOf, Message, Name, Node, Select
from srearena.cluster.embedded.cel.values import Optional, TypeValue, type_name

PER_CALL_LIMIT: Final = 1_000_000
"""The cost of one evaluation that the API server allows."""
_LIST, _MAP = 10, 30


class Frame:
    """The variables of one evaluation, and its cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> None:
        self.variables = dict(variables)
        self.cost = 0
        self.limit = limit

    def spend(self, cost: int = 1) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


Step = Callable[[Frame], Any]


def step(node: Node, declared: frozenset[str]) -> Step:
    """The function that evaluates a node; `declared` names hide types."""
    match node:
        case Literal():
            value = node.value
            return lambda frame: value
        case Name():
            return _name(node, declared)
        case Select():
            return _select(node, declared)
        case Call():
            return _call(node, declared)
        case ListOf():
            return _list(node, declared)
        case MapOf():
            return _map(node, declared)
        case Fold():
            return _fold(node, declared)
        case Message():
            raise AssertionError("messages do not pass the checker")


def _name(node: Name, declared: frozenset[str]) -> Step:
    name = node.name
    if name not in declared and name in TYPE_NAMES:
        return lambda frame: TypeValue(name)

    def read(frame: Frame) -> Any:
        frame.spend()
        if name not in frame.variables:
            raise EvaluationError(f"no such attribute(s): {name}")
        found = frame.variables[name]
        return found() if isinstance(found, Lazy) else found

    return read


class Lazy:
    """A variable whose value is computed when it is first read."""

    __slots__ = ("_compute", "_outcome")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute = compute
        self._outcome: tuple[Any, EvaluationError | None] | None = None

    def __call__(self) -> Any:
        if self._outcome is None:
            try:
                self._outcome = (self._compute(), None)
            except EvaluationError as problem:
                self._outcome = (None, problem)
        value, failure = self._outcome
        if failure is not None:
            raise failure
        return value


def _select(node: Select, declared: frozenset[str]) -> Step:
    name = "" if node.test else qualified(node)
    if name in declared:
        return _name(Name(name, node.at), declared)
    if name in TYPE_NAMES:
        return lambda frame: TypeValue(name)
    operand, field = step(node.operand, declared), node.field

    def test(frame: Frame) -> bool:
        owner = operand(frame)
        if isinstance(owner, Optional):
            owner = owner.value if owner.present else {}
        return _has_field(owner, field)

    def read(frame: Frame) -> Any:
        owner = operand(frame)
        frame.spend()
        if node.optional or isinstance(owner, Optional):
            return _optional_field(owner, field)
        if not _has_field(owner, field):
            raise EvaluationError(f"no such key: {field}")
        found = owner[field]
        return found() if isinstance(found, Lazy) else found

    return test if node.test else read


def _has_field(owner: Any, field: str) -> bool:
    """Whether a value has a field; null and scalars have none, as in cel-go, and a list has places only."""
    if isinstance(owner, list):
        raise no_such_overload()
    return isinstance(owner, dict) and field in owner


def _optional_field(owner: Any, field: str) -> Optional:
    if isinstance(owner, Optional):
        if not owner.present:
            return owner
        owner = owner.value
    return Optional(True, owner[field]) if _has_field(owner, field) else Optional()


def _call(node: Call, declared: frozenset[str]) -> Step:
    if node.function in _LOGICAL and node.target is None:
        return _LOGICAL[node.function](*(step(argument, declared) for argument in node.arguments))
    name = namespaced(node)
    nodes = node.arguments if name or node.target is None else (node.target, *node.arguments)
    candidates = tuple(overloads(name or node.function, method=not name and node.target is not None))
    steps = tuple(step(argument, declared) for argument in nodes)

    def run(frame: Frame) -> Any:
        values = tuple(argument(frame) for argument in steps)
        chosen = choose(candidates, values)
        frame.spend(chosen.cost(*values) if chosen.cost else 1)
        try:
            return chosen.function(*values)
        except (TypeError, AttributeError):
            # Items of a list whose static type was not known are of another type than the function takes.
            raise no_such_overload() from None

    return run


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_such_overload()
    return value


def _settled(decisive: bool, *parts: Callable[[], Any]) -> bool:
    """Whether any part has the decisive value; where none has, an error of any part is an error of the whole."""
    problem: EvaluationError | None = None
    for part in parts:
        try:
            if _truth(part()) is decisive:
                return decisive
        except CostExceeded:
            raise
        except EvaluationError as found:
            problem = problem or found
    if problem is not None:
        raise problem
    return not decisive


def _and(left: Step, right: Step) -> Step:
    return lambda frame: _settled(False, lambda: left(frame), lambda: right(frame))


def _or(left: Step, right: Step) -> Step:
    return lambda frame: _settled(True, lambda: left(frame), lambda: right(frame))


def _choice(condition: Step, chosen: Step, other: Step) -> Step:
    return lambda frame: chosen(frame) if _truth(condition(frame)) else other(frame)


_LOGICAL: Final[dict[str, Callable[..., Step]]] = {"_&&_": _and, "_||_": _or, "_?_:_": _choice}


def _list(node: ListOf, declared: frozenset[str]) -> Step:
    steps = tuple(step(item, declared) for item in node.items)

    def build(frame: Frame) -> list[Any]:
        frame.spend(_LIST)
        found = []
        for place, item in enumerate(steps):
            value = item(frame)
            if place not in node.optional:
                found.append(value)
            elif value.present:
                found.append(value.value)
        return found

    return build


def _map(node: MapOf, declared: frozenset[str]) -> Step:
    steps = tuple((step(key, declared), step(value, declared), optional) for key, value, optional in node.entries)

    def build(frame: Frame) -> dict[Any, Any]:
        frame.spend(_MAP)
        found: dict[Any, Any] = {}
        for key, value, optional in steps:
            name, item = key(frame), value(frame)
            if not isinstance(name, str | int | bool):
                raise EvaluationError(f"unsupported key type: {type_name(name)}")
            if optional and not item.present:
                continue
            if name in found:
                raise EvaluationError(f"Failed with repeated key: {name}")
            found[name] = item.value if optional else item
        return found

    return build


def _with(frame: Frame, variables: Mapping[str, Any], body: Step) -> Any:
    before = frame.variables
    frame.variables = {**before, **variables}
    try:
        return body(frame)
    finally:
        frame.variables = before


def _fold(node: Fold, declared: frozenset[str]) -> Step:
    target = step(node.target, declared)
    inner = declared | set(node.variables)
    bodies = tuple(step(argument, inner) for argument in node.arguments)
    macro = _MACROS[node.macro]

    def run(frame: Frame) -> Any:
        found = target(frame)
        if node.macro in ("optMap", "optFlatMap"):
            return _optional_fold(node, frame, found, bodies[0])
        return macro(frame, list(_rounds(node, found)), bodies)

    return run


def _optional_fold(node: Fold, frame: Frame, found: Any, body: Step) -> Optional:
    if not isinstance(found, Optional):
        raise no_such_overload()
    if not found.present:
        return found
    value = _with(frame, {node.variables[0]: found.value}, body)
    return Optional(True, value) if node.macro == "optMap" else value


_Round = tuple[dict[str, Any], Any, Any]
"""The variables of one iteration, its key and its item."""


def _rounds(node: Fold, found: Any) -> Iterator[_Round]:
    if isinstance(found, dict):
        pairs: Iterator[tuple[Any, Any]] = iter(found.items())
    elif isinstance(found, list):
        pairs = iter(enumerate(found))
    else:
        raise no_such_overload()
    for key, item in pairs:
        if len(node.variables) == 2:
            yield dict(zip(node.variables, (key, item), strict=True)), key, item
        else:
            shown = key if isinstance(found, dict) else item
            yield {node.variables[0]: shown}, key, shown


def _test(frame: Frame, variables: dict[str, Any], body: Step) -> Any:
    frame.spend(2)
    return _with(frame, variables, body)


def _all(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> bool:
    return _settled(False, *(lambda one=one: _test(frame, one[0], bodies[0]) for one in rounds))


def _exists(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> bool:
    return _settled(True, *(lambda one=one: _test(frame, one[0], bodies[0]) for one in rounds))


def _exists_one(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> bool:
    return sum(_truth(_test(frame, variables, bodies[0])) for variables, _, _ in rounds) == 1


def _chosen(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> list[_Round]:
    """The iterations that the condition of a macro with one selects."""
    if len(bodies) == 1:
        return rounds
    return [one for one in rounds if _truth(_test(frame, one[0], bodies[0]))]


def _filter(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> list[Any]:
    return [item for variables, _, item in rounds if _truth(_test(frame, variables, bodies[0]))]


def _map_items(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> list[Any]:
    return [_test(frame, variables, bodies[-1]) for variables, _, _ in _chosen(frame, rounds, bodies)]


def _sort_by(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> list[Any]:
    items = [item for _, _, item in rounds]
    return sorted_by(items, [_test(frame, variables, bodies[0]) for variables, _, _ in rounds])


def _transform_map(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> dict[Any, Any]:
    return {key: _test(frame, variables, bodies[-1]) for variables, key, _ in _chosen(frame, rounds, bodies)}


def _transform_entry(frame: Frame, rounds: list[_Round], bodies: tuple[Step, ...]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for variables, _, _ in _chosen(frame, rounds, bodies):
        for key, value in _test(frame, variables, bodies[-1]).items():
            if key in found:
                raise EvaluationError(f"insert failed: key {key} already exists")
            found[key] = value
    return found


_MACROS: Final[dict[str, Callable[[Frame, list[_Round], tuple[Step, ...]], Any]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map_items,
    "sortBy": _sort_by,
    "transformList": _map_items,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
    "optMap": _all,
    "optFlatMap": _all,
}
