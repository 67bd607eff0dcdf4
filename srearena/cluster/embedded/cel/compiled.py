"""Compiled expressions: parsed, checked against the types of variables, and ready to be evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

# Registers the functions; the modules of checks and evaluation import the others.
from srearena.cluster.embedded.cel import kubernetes, networks, text  # noqa: F401
from srearena.cluster.embedded.cel.checker import Checker
from srearena.cluster.embedded.cel.errors import CompileError
from srearena.cluster.embedded.cel.estimates import Estimator, Sizes
from srearena.cluster.embedded.cel.evaluation import PER_CALL_LIMIT, Frame, Step, step
from srearena.cluster.embedded.cel.syntax import Literal, Name, Node, parse
from srearena.cluster.embedded.cel.types import Type


@dataclass(frozen=True, slots=True)
class Outcome:
    """The value of an evaluation, and what it cost."""

    value: Any
    cost: int


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression whose types agree."""

    source: str
    tree: Node
    type: Type
    _step: Step

    def evaluate(self, variables: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> Outcome:
        """The value for these variables; raises EvaluationError."""
        frame = Frame(variables, limit)
        return Outcome(self._step(frame), frame.cost)

    def refers_to(self, name: str) -> bool:
        """Whether the expression uses a variable of this name."""
        return _refers_to(self.tree, name)


def _refers_to(part: object, name: str) -> bool:
    if isinstance(part, Name):
        return part.name == name
    if isinstance(part, tuple):
        return any(_refers_to(inner, name) for inner in part)
    if not is_dataclass(part) or isinstance(part, Literal):
        return False
    return any(_refers_to(getattr(part, each.name), name) for each in fields(part))


def estimated_cost(expression: Expression, variables: Mapping[str, Type], sizes: Sizes) -> int:
    """What the expression costs at most, for variables of these types and sizes."""
    checker = Checker(variables)
    checker.type_of(expression.tree)
    return Estimator(checker, sizes).cost(expression.tree)


def compile(source: str, variables: Mapping[str, Type]) -> Expression:
    """Compile an expression over variables of these types; raises CompileError with everything that is wrong."""
    tree = parse(source)
    checker = Checker(variables)
    found = checker.type_of(tree)
    if checker.issues:
        raise CompileError(source, checker.issues)
    return Expression(source, tree, found, step(tree, frozenset(variables)))
