"""Grade one trial: from a diagnosis and a ground truth to all scores, with the reasons.

`prepare` computes all scores that need no judge and lists the explanations to judge; `Case.finish` adds the verdicts.
`grade_diagnosis` does both in one call with the lexical baseline, for live diagnoses and library users. The same
diagnosis, ground truth and options give the same grade to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from itbench_evaluations import lexical, metrics, reasoning
from itbench_evaluations.agent_output import AgentOutput
from itbench_evaluations.graph import ComponentGraph
from itbench_evaluations.inventory import Objects, snapshot_objects
from itbench_evaluations.matching import Matcher, Policy, Resolved
from itbench_evaluations.reasoning import ReasoningItem
from itbench_evaluations.submission import Submission, read_text, read_value
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.parsing import parse_ground_truth

# The infrastructure namespaces that ITBench's own leaderboard can ignore.
INFRASTRUCTURE = frozenset(
    {
        "kube-system",
        "data-recorders",
        "clickhouse",
        "clickhouse-operator",
        "prometheus",
        "opentelemetry-operator",
        "opentelemetry-collectors",
        "metrics-server",
        "opensearch",
    }
)


@dataclass(frozen=True, slots=True)
class Options:
    """Options that affect a grade; recorded in every result."""

    policy: Policy = Policy.WORKLOAD
    k: int = 3
    ignore_namespaces: frozenset[str] = frozenset()
    strict: bool = False
    """Leave names without a kind unresolved, also where the snapshot has only one component of that name."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One blamed component: all names the agent used for it, and its explanation."""

    resolved: Resolved
    names: tuple[str, ...]
    explanation: str

    @property
    def component(self) -> str:
        return self.resolved.component


@dataclass(slots=True)
class TruthView:
    """A ground truth prepared for many trials."""

    truth: GroundTruth
    matcher: Matcher
    graph: ComponentGraph
    impacted: str | None
    objects: Callable[[], Objects] = frozenset
    """The objects of the snapshot, read when a name needs them."""

    @classmethod
    def of(cls, truth: GroundTruth, policy: Policy = Policy.WORKLOAD) -> TruthView:
        matcher = Matcher(truth, policy)
        roots = [matcher.component_of[group.id] for group in truth.roots]
        # An edge to an undeclared group still belongs to the chain that the author meant.
        edges = [
            (matcher.component_of.get(e.source, f"?{e.source}"), matcher.component_of.get(e.target, f"?{e.target}"))
            for e in truth.propagations
        ]
        graph = ComponentGraph.build(roots, edges)

        @cache
        def objects() -> Objects:
            return snapshot_objects(Path(truth.path).parent) if truth.path else frozenset()

        return cls(truth, matcher, graph, metrics.first_impacted(truth, matcher, graph), objects)

    def resolve_by_inventory(self, name: Resolved) -> Resolved:
        """Resolve a name without a kind by the snapshot's objects of that name, if all are one component."""
        stated = name.entity
        candidates = {
            "/".join(part for part in found if part)
            for found in self.objects()
            if found[2].lower() == stated.name.lower()
            and (not stated.namespace or (found[0] or "").lower() == stated.namespace.lower())
        }
        resolved = [self.matcher.resolve(text) for text in sorted(candidates)]
        return resolved[0] if len({each.component for each in resolved}) == 1 else name


@dataclass(slots=True)
class Grade:
    """The grade of one trial. `scores` has every metric; the value is None only for those in `excluded`."""

    incident_id: str
    scores: dict[str, float | None]
    details: dict[str, Any]
    readable: bool
    reasoning_source: str
    excluded: dict[str, str] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(slots=True)
class Case:
    """A trial graded by rule, without the verdicts on its explanations."""

    view: TruthView
    submission: Submission
    options: Options
    predictions: list[Prediction]
    predicted: ComponentGraph
    items: list[ReasoningItem]
    unmatched: list[str]
    notes: list[str]

    @property
    def to_judge(self) -> list[ReasoningItem]:
        return [item for item in self.items if item.statements and item.explanation.strip()]

    def lexical_scores(self) -> dict[str, float]:
        return {item.component: item.lexical_score() for item in self.items if item.statements}

    def finish(self, verdicts: Mapping[str, float] | None, source: str, missing: str = "") -> Grade:
        """The complete grade; `verdicts` is None if there was no judge, and `missing` says why."""
        silent = {item.component: 0.0 for item in self.items if item.statements and not item.explanation.strip()}
        all_verdicts = {**(verdicts or {}), **silent}
        whole, partial = reasoning.combine(
            self.items, all_verdicts, blamed=len(self.predictions), roots=len(self.view.matcher.root_components)
        )
        scores = self._rule_scores()
        scores["root_cause_reasoning"] = whole
        scores["root_cause_reasoning_partial"] = partial
        unstated = "the ground truth states nothing to judge the reasoning against"
        why = missing or unstated
        excluded = {name: why for name, value in scores.items() if value is None}
        if not self.submission.readable:
            scores = dict.fromkeys(scores, 0.0)
            excluded = {}
        return Grade(
            incident_id=self.view.truth.incident_id,
            scores=scores,
            details=self._details(all_verdicts),
            readable=self.submission.readable,
            reasoning_source=source,
            excluded=excluded,
            repairs=self.submission.repairs,
            notes=tuple(self.notes),
            problem=self.submission.problem,
        )

    def _rule_scores(self) -> dict[str, float | None]:
        blamed = [prediction.component for prediction in self.predictions]
        roots = self.view.matcher.root_components
        truth = self.view.graph
        scores: dict[str, float | None] = {}

        def put(name: str, triple: metrics.Triple) -> None:
            for part, value in zip(("precision", "recall", "f1"), triple, strict=True):
                scores[f"{name}_{part}"] = value

        put("root_cause_entity", metrics.entity_scores(blamed, roots))
        put("root_cause_entity_k", metrics.entity_scores_at(self.options.k, blamed, roots))
        for k in metrics.KS:
            put(f"root_cause_entity_k@{k}", metrics.entity_scores_at(k, blamed, roots))
        if self.view.truth.is_noop:
            chain = localized = 0.0 if self.predicted.nodes else 1.0
        else:
            chain = metrics.propagation_chain(self.predicted, truth)
            localized = metrics.fault_localization(self.predicted, self.view.impacted)
        scores["propagation_chain"] = chain
        scores["fault_localization_component_identification"] = localized
        put("root_cause_proximity_no_fp", metrics.proximity(blamed, roots, truth, by_length=False))
        put("root_cause_proximity_with_fp", metrics.proximity(blamed, roots, truth, by_length=True))
        scores["itbench_aa"] = metrics.itbench_aa(blamed, roots)
        scores["ntam_fault_localization"] = metrics.ntam(blamed, dict.fromkeys(sorted(roots), 1.0), truth)
        # Where there is a chain to find, blaming its root states no propagation.
        chain_nodes = self.predicted.stated if truth.edges else self.predicted.nodes
        scores["ntam_propagation"] = metrics.ntam(chain_nodes, metrics.chain_weights(truth), truth)
        detected = self.submission.detected
        reported = bool(blamed) if detected is None else detected
        scores["detection"] = 1.0 if reported == (not self.view.truth.is_noop) else 0.0
        return scores

    def _details(self, verdicts: Mapping[str, float]) -> dict[str, Any]:
        matcher = self.view.matcher
        found = {prediction.component for prediction in self.predictions}
        return {
            "gt_entities": sorted(matcher.root_components),
            "predicted_entities": [
                {
                    "entity": prediction.names[0],
                    "also_named": list(prediction.names[1:]),
                    "matches_gt": prediction.resolved.is_root,
                    "matched_to": prediction.resolved.group,
                    "component": prediction.component,
                    "matched_by": str(prediction.resolved.tier) if prediction.resolved.tier else None,
                    "ambiguous_with": list(prediction.resolved.ambiguous_with),
                }
                for prediction in self.predictions
            ],
            "missed": sorted(matcher.root_components - found),
            "wrongly_blamed": [p.names[0] for p in self.predictions if not p.resolved.is_root],
            "gt_graph": _drawn(self.view.graph),
            "predicted_graph": _drawn(self.predicted),
            "first_impacted_component": self.view.impacted,
            "reasoning": [
                {
                    "component": item.component,
                    "role": item.role,
                    "hops": item.hops,
                    "expected": list(item.statements[:4]),
                    "given": item.explanation[:1000],
                    "score": verdicts.get(item.component),
                    "lexical_score": item.lexical_score() if item.statements else None,
                }
                for item in self.items
            ],
        }


def _drawn(graph: ComponentGraph) -> dict[str, Any]:
    return {
        "nodes": list(graph.nodes[:200]),
        "edges": [list(edge) for edge in graph.edges[:400]],
        "roots": list(graph.roots),
    }


def prepare(
    view: TruthView,
    submission: Submission,
    options: Options,
    matched: Mapping[str, str] | None = None,
) -> Case:
    """Grade by rule. `matched` maps names that no rule could match to the groups that a judge chose."""
    chosen = matched or {}
    matcher = view.matcher

    def resolve(name: str) -> Resolved:
        if name in chosen:
            return matcher.judged(name, chosen[name])
        resolved = matcher.resolve(name)
        if options.strict or resolved.known or resolved.entity.kind is not None:
            return resolved
        return view.resolve_by_inventory(resolved)

    output = submission.output
    notes: list[str] = []
    predictions = _predictions(output, [resolve(entity.name) for entity in output.entities], options, notes)
    edges = [(resolve(edge.source), resolve(edge.target)) for edge in output.propagations]
    predicted = ComponentGraph.build(
        [prediction.component for prediction in predictions],
        [(source.component, target.component) for source, target in edges],
    )
    predicted.paths()
    if predicted.truncated:
        notes.append("the predicted graph has too many paths; a bounded number of them was compared")
    if not view.graph.edges and not view.truth.is_noop:
        notes.append("the ground truth has no propagations between components: path metrics rest on its roots alone")
    for prediction in predictions:
        if prediction.resolved.ambiguous_with:
            rivals = ", ".join(prediction.resolved.ambiguous_with)
            notes.append(f"{prediction.names[0]}: taken for {prediction.component}, could also be {rivals}")
    hops = _hops_to_roots(view)
    items = [_item(view, prediction, hops) for prediction in predictions if prediction.component in hops]
    unmatched = [p.names[0] for p in predictions if not p.resolved.known]
    return Case(view, submission, options, predictions, predicted, items, unmatched, notes)


def _predictions(
    output: AgentOutput, resolved: Sequence[Resolved], options: Options, notes: list[str]
) -> list[Prediction]:
    """The blamed components in order of first mention; several names of one component are one prediction."""
    by_component: dict[str, Prediction] = {}
    for entity, target in zip(output.entities, resolved, strict=True):
        if not entity.contributing_factor:
            continue
        if (target.entity.namespace or "").lower() in options.ignore_namespaces:
            notes.append(f"{entity.name}: in an ignored namespace, not counted")
            continue
        words = " ".join(part for part in (entity.reasoning, entity.evidence) if part)
        previous = by_component.get(target.component)
        if previous is None:
            texts = [words, *_edge_texts(output, entity.name)]
            by_component[target.component] = Prediction(target, (entity.name,), " ".join(filter(None, texts)))
        else:
            best = previous.resolved if previous.resolved.known else target
            text = " ".join(filter(None, (previous.explanation, words)))
            by_component[target.component] = Prediction(best, (*previous.names, entity.name), text)
    return list(by_component.values())


def _edge_texts(output: AgentOutput, name: str) -> list[str]:
    """Texts of the propagations about an entity: conditions of its outgoing edges, effects of its incoming ones."""
    conditions = [edge.condition for edge in output.propagations if edge.source == name]
    effects = [edge.effect for edge in output.propagations if edge.target == name]
    return list(dict.fromkeys([*conditions, *effects]))


def _hops_to_roots(view: TruthView) -> dict[str, int]:
    nearest: dict[str, int] = {}
    for root in sorted(view.matcher.root_components):
        for node, hops in view.graph.hops_from(root).items():
            nearest[node] = min(hops, nearest.get(node, hops))
    return nearest


def _item(view: TruthView, prediction: Prediction, hops: Mapping[str, int]) -> ReasoningItem:
    component = prediction.component
    is_root = prediction.resolved.is_root
    statements = reasoning.root_statements if is_root else reasoning.symptom_statements
    members = view.matcher.members(component)
    groups = [group for group in view.truth.groups if group.id in members]
    names = [text for group in groups for text in (group.kind or "", group.namespace or "", group.name or "")]
    names += [stem for group_id in members for stem in view.matcher.stems_of(group_id)]
    return ReasoningItem(
        component=component,
        label=prediction.names[0],
        role="root" if is_root else "symptom",
        hops=hops[component],
        statements=statements(view.truth, view.matcher, component),
        explanation=prediction.explanation,
        names=tuple(filter(None, names)),
    )


def grade_diagnosis(
    truth: GroundTruth | Mapping[str, Any],
    diagnosis: AgentOutput | Mapping[str, Any] | str,
    options: Options | None = None,
) -> Grade:
    """Grade one diagnosis by rule and lexical baseline; used for live submissions."""
    options = options or Options()
    key = truth if isinstance(truth, GroundTruth) else parse_ground_truth(truth, default_id="live")
    if isinstance(diagnosis, AgentOutput):
        submission = Submission(diagnosis)
    else:
        submission = read_text(diagnosis) if isinstance(diagnosis, str) else read_value(diagnosis)
    case = prepare(TruthView.of(key, options.policy), submission, options)
    return case.finish(case.lexical_scores(), lexical.NAME)
