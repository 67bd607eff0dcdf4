"""Runbooks: rules that turn the observed system into hypotheses, one module per kind of object or symptom.

A runbook is a generator with `@runbook`. It knows Kubernetes, Linux, databases and proxies as an engineer on call does,
and no application. Adding one is adding a function or a module: the folder is scanned.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator

from clients.rules.hypotheses import Hypothesis
from clients.rules.system import System

Runbook = Callable[[System], Iterator[Hypothesis]]
_RUNBOOKS: dict[str, Runbook] = {}


def runbook(function: Runbook) -> Runbook:
    """Register a runbook under the name of its module and its own."""
    _RUNBOOKS[f"{function.__module__.rpartition('.')[2]}.{function.__name__}"] = function
    return function


def runbooks() -> dict[str, Runbook]:
    """All runbooks by name, in the order of their names."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_RUNBOOKS.items()))


def examine(system: System) -> list[Hypothesis]:
    """What all runbooks find."""
    return [found for rule in runbooks().values() for found in rule(system)]
