"""Strategies of the built-in resources, found by walking this package: each module has a `STRATEGIES` table."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from srearena.cluster.embedded.registry.strategy import Strategy


@cache
def built_in() -> dict[str, Strategy]:
    """Strategy by group resource (`deployments.apps`)."""
    found: dict[str, Strategy] = {}
    for module in pkgutil.iter_modules(__path__, __name__ + "."):
        found.update(getattr(importlib.import_module(module.name), "STRATEGIES", {}))
    return found
