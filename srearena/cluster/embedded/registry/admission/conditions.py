"""Match conditions of webhooks and policies; CEL is imported when there is a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.chain import Attributes
from srearena.cluster.embedded.registry.identity import User

if TYPE_CHECKING:
    from srearena.cluster.embedded.cel.kubernetes import Check


@dataclass(slots=True)
class Conditions:
    authorize: Callable[[User, Check], tuple[bool, str]] | None = None
    """Whether a user may do what an expression asks the authorizer, and why; set when a cluster is assembled."""

    def match(self, conditions: list[Obj], attributes: Attributes) -> bool:
        """Whether a write meets all conditions of a webhook; raises EvaluationError where that cannot be said."""
        if not conditions:
            return True
        from srearena.cluster.embedded.registry.admission import expressions

        variables = expressions.bindings(self.authorize, attributes)
        evaluation = expressions.Evaluation(variables, expressions.MATCH_BUDGET)
        return expressions.all_match(evaluation, conditions, expressions.Scope())
