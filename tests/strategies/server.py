"""The part of the write path that strategies are, without admission and storage."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import Invalid
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.registry import Registry, WriteOptions
from srearena.cluster.embedded.registry.resources import BUILT_IN, Resource
from srearena.cluster.embedded.registry.strategies import built_in
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext
from srearena.cluster.embedded.store import Store

START = 1_700_000_000.0
UID = "11111111-1111-4111-8111-111111111111"
ROWS = {(row.api_version, row.kind): row for row in BUILT_IN}


@dataclass
class Answer:
    obj: Obj
    problems: list[str] = field(default_factory=list)
    """Causes of the refusal, as `reason|field|message`."""
    warnings: list[str] = field(default_factory=list)


def strategy_of(row: Resource) -> Strategy:
    return built_in().get(row.group_resource, Strategy())


def context(store: Store | None = None, user: User | None = None) -> WriteContext:
    return WriteContext(Clock(START), store or Store(), Randomness(1), user or User("somebody"))


def answer(obj: Obj, old: Obj | None = None, sub: str = "") -> Answer:
    """What the server makes of an object that is created, or that replaces `old`."""
    obj, row = deepcopy(obj), ROWS[obj["apiVersion"], obj["kind"]]
    strategy = strategy_of(row)
    strategy = strategy.subresources.get(sub, strategy)
    try:
        problems = _created(row, strategy, obj) if old is None else _updated(row, strategy, obj, deepcopy(old), sub)
    except Invalid as refusal:
        problems = list(refusal.errors)
    found = Answer(obj, list(dict.fromkeys(f"{problem.kind}|{problem.field}|{problem.body}" for problem in problems)))
    if strategy.warnings and not sub:
        found.warnings = strategy.warnings(obj)
    return found


def _created(row: Resource, strategy: Strategy, obj: Obj) -> list[Any]:
    if row.has_status and not strategy.keeps_status_on_create:
        obj.pop("status", None)
    if strategy.default:
        strategy.default(obj)
    metadata = obj.setdefault("metadata", {})
    metadata.update(uid=UID, creationTimestamp="2023-11-14T22:13:20Z")
    if row.has_generation:
        metadata["generation"] = 1
    if strategy.prepare_create:
        strategy.prepare_create(obj, context())
    problems = names.metadata_errors(row, obj, None, strategy)
    for check in (strategy.validate, strategy.validate_create):
        problems += check(obj) if check else []
    return problems


def _updated(row: Resource, strategy: Strategy, obj: Obj, old: Obj, sub: str) -> list[Any]:
    if strategy.default:
        strategy.default(old)
    if row.has_status and not sub:
        obj["status"] = deepcopy(old.get("status") or {})
    if strategy.default:
        strategy.default(obj)
    if strategy.prepare_update:
        strategy.prepare_update(obj, old, context())
    problems = names.metadata_errors(row, obj, old, strategy)
    problems += strategy.validate(obj) if strategy.validate else []
    return problems + (strategy.validate_update(obj, old) if strategy.validate_update else [])


def registry() -> Registry:
    """A whole registry, for what needs stored neighbours."""
    return Registry(Clock(START), Store(), Randomness(7))


def options() -> WriteOptions:
    return WriteOptions(User("somebody"), "kubectl")
