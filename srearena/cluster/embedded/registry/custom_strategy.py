"""How custom resources behave on the write path, as their definition says."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.schema import Schema
from srearena.cluster.embedded.registry.strategy import Strategy


def custom_strategy(definition: Obj, schemas: dict[tuple[str, str, str], Schema]) -> Strategy:
    return Strategy()
