"""The reference answer derived from a ground truth, on which every metric must be 1.0.

`lint` and tests use it: a ground truth whose reference answer is not perfect cannot be satisfied. Names are generated
so that the ground truth's filters accept them.
"""

from __future__ import annotations

from itbench_evaluations.agent_output import AgentOutput, DiagnosedEntity, DiagnosedPropagation, ExplainedAlert
from itbench_evaluations.grading import TruthView
from itbench_evaluations.matching import example_name
from itbench_evaluations.reasoning import root_statements


def reference_answer(view: TruthView) -> AgentOutput:
    """The perfect diagnosis under the view's policy; groups that accept no generated name are omitted."""
    truth, matcher = view.truth, view.matcher
    names = {group.id: name for group in truth.groups if (name := example_name(matcher, group))}
    entities = [
        DiagnosedEntity(
            name=names[group.id],
            contributing_factor=group.root,
            reasoning=". ".join(root_statements(truth, matcher, matcher.component_of[group.id])) if group.root else "",
            evidence="",
        )
        for group in sorted(truth.groups, key=lambda group: not group.root)
        if group.id in names
    ]
    propagations = [
        DiagnosedPropagation(
            source=names.get(edge.source, edge.source),
            target=names.get(edge.target, edge.target),
            condition=edge.condition,
            effect=edge.effect,
        )
        for edge in truth.propagations
    ]
    alerts = [ExplainedAlert(alert=alert.name, explanation=alert.description) for alert in truth.alerts if alert.name]
    return AgentOutput(entities=entities, propagations=propagations, alerts_explained=alerts)
