"""Check ground truths for mistakes before they are used for grading.

An *error* means that the ground truth cannot be satisfied or grades wrongly; a *warning*, that it probably does not say
what its author meant. Each check is one function of a `TruthView`; `CHECKS` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from itbench_evaluations.agent_output import AgentOutput
from itbench_evaluations.errors import InputError
from itbench_evaluations.grading import Options, TruthView, prepare
from itbench_evaluations.identity import WORKLOAD_KINDS
from itbench_evaluations.inventory import Objects, snapshot_objects
from itbench_evaluations.lexical import NAME as LEXICAL
from itbench_evaluations.matching import Matcher, Policy, example_name
from itbench_evaluations.name_filters import compile_pattern
from itbench_evaluations.reference import reference_answer
from itbench_evaluations.submission import Submission
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import SCENARIO_FILES, find_files, load_document, read_truths
from srearena.ground_truth.parsing import PLACEHOLDERS, canonical_id

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning."""

    level: Level
    code: str
    incident_id: str
    message: str
    file: str


Check = Callable[[TruthView, Objects], Iterator[tuple[Level, str, str]]]


def _parser_warnings(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    for warning in view.truth.warnings:
        yield ("error" if "root_cause" in warning else "warning"), "odd-document", warning


def _references(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    declared = {group.id for group in view.truth.groups}
    references = [
        *((member, "an alias") for alias in view.truth.aliases for member in alias),
        *((end, "a propagation") for edge in view.truth.propagations for end in (edge.source, edge.target)),
        *((alert.group_id, f"alert {alert.name}") for alert in view.truth.alerts if alert.group_id),
        *((fault.group_id, "a fault") for fault in view.truth.faults if fault.group_id),
    ]
    for group_id, place in dict.fromkeys(references):
        if group_id not in declared:
            level: Level = "error" if place == "a propagation" else "warning"
            yield level, "unknown-group", f"{place} names group {group_id!r}, which is not declared"


def _selectors(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    for group in view.truth.groups:
        if not group.filters and not group.name:
            yield "error", "no-selector", f"group {group.id} has neither filter nor name: nothing can match it"
        if not group.kind:
            yield "warning", "no-kind", f"group {group.id} has no kind: objects of any kind match"
        for text in group.filters:
            pattern = compile_pattern(text)
            if pattern.problem:
                yield "warning", "not-a-regex", f"group {group.id}: filter {text!r} is {pattern.problem}"
            elif pattern.explosive:
                yield (
                    "warning",
                    "explosive-regex",
                    f"group {group.id}: filter {text!r} repeats a repeat; run in bounded time",
                )
            if pattern.matches("") and pattern.matches("some-other-name-0"):
                yield "warning", "matches-all", f"group {group.id}: filter {text!r} matches every name"


def _bare_names(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    """Find filters such as `checkout-.*` on a Deployment: its name has no suffix, so they never match literally."""
    for group in view.truth.groups:
        if group.kind in WORKLOAD_KINDS - {"Pod", "ReplicaSet", "EndpointSlice"} and group.filters:
            for text in group.filters:
                pattern = compile_pattern(text)
                if pattern.stem and not pattern.matches(pattern.stem):
                    yield (
                        "warning",
                        "misses-bare-name",
                        (
                            f"group {group.id}: filter {text!r} does not match a {group.kind} named {pattern.stem!r} "
                            "(it does under the workload and lenient policies)"
                        ),
                    )


def _snapshot(view: TruthView, objects: Objects) -> Iterator[tuple[Level, str, str]]:
    """Find filters that match no object of the snapshot: no agent that reads the snapshot can satisfy them."""
    if not objects:
        return
    single = {group.id: Matcher(_alone(view, group.id), Policy.STRICT) for group in view.truth.groups}
    for group in view.truth.groups:
        names = ("/".join(part for part in entity if part) for entity in objects)
        if not any(single[group.id].resolve(name).known for name in names):
            level: Level = "error" if group.root else "warning"
            what = group.name or ", ".join(group.filters)
            yield level, "matches-nothing", f"group {group.id}: {group.kind} {what!r} matches no object of the snapshot"


def _alone(view: TruthView, group_id: str) -> GroundTruth:
    groups = tuple(group for group in view.truth.groups if group.id == group_id)
    return replace(view.truth, groups=groups, aliases=(), propagations=())


def _chain(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    if view.truth.format == "v2" or view.truth.is_noop:
        return
    if not view.truth.propagations:
        yield "warning", "no-propagations", "no propagations: path metrics use the roots only"
    for edge in view.truth.propagations:
        if edge.source == edge.target:
            yield "warning", "self-loop", f"propagation from {edge.source} to itself"
    reached = view.graph.depth_from_roots()
    unreached = [node for node in view.graph.nodes if node not in reached]
    if unreached:
        yield "warning", "not-reached", f"no chain of propagations leads from a root to {', '.join(unreached)}"


def _aliases(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    """Find aliases of a root with a workload that is only affected: they give a full score for blaming a symptom."""
    own = Matcher(_without_aliases(view), Policy.WORKLOAD)
    downstream = {own.component_of.get(edge.target) for edge in view.truth.propagations} - own.root_components
    for alias in view.truth.aliases:
        parts = {own.component_of[member] for member in alias if member in own.component_of}
        victims = sorted(part for part in parts & downstream if part and _is_workload(view, part))
        if parts & own.root_components and victims:
            yield (
                "warning",
                "victim-alias",
                f"an alias makes {', '.join(victims)} the same as a root it only suffers from",
            )


def _is_workload(view: TruthView, group_id: str) -> bool:
    group = view.truth.group(group_id)
    return group is not None and group.kind in WORKLOAD_KINDS


def _without_aliases(view: TruthView) -> GroundTruth:
    return replace(view.truth, aliases=())


def _words(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    for fault in view.truth.faults:
        if fault.condition.strip().lower() in PLACEHOLDERS:
            yield "warning", "no-condition", f"a fault's condition says nothing ({fault.condition!r})"


def _own_answer(view: TruthView, _: Objects) -> Iterator[tuple[Level, str, str]]:
    """Check that the reference answer scores 1 and an empty answer 0."""
    for group in view.truth.groups:
        if (group.filters or group.name) and example_name(view.matcher, group) is None:
            level: Level = "error" if group.root else "warning"
            yield level, "unsatisfiable", f"group {group.id}: no name could be made that its own filter accepts"
    options = Options(policy=view.matcher.policy, k=max(3, len(view.matcher.root_components)))
    case = prepare(view, Submission(reference_answer(view)), options)
    grade = case.finish(case.lexical_scores(), LEXICAL)
    short = [name for name, value in grade.scores.items() if value is not None and value < 1 and "k@" not in name]
    if short:
        yield "error", "own-answer", f"the key's own answer does not score 1 on {', '.join(short)}"
    empty = prepare(view, Submission(AgentOutput.empty()), options).finish({}, LEXICAL)
    if not view.truth.is_noop and any(empty.scores.values()):
        yield "error", "empty-answer", "an empty answer scores above 0"


CHECKS: tuple[Check, ...] = (
    _parser_warnings,
    _references,
    _selectors,
    _bare_names,
    _snapshot,
    _chain,
    _aliases,
    _words,
    _own_answer,
)


def lint_path(path: Path, snapshots: Path | None = None, policy: Policy = Policy.WORKLOAD) -> tuple[list[Finding], int]:
    """Findings for all ground truths under a path, and their number. Unreadable files are findings too."""
    findings: list[Finding] = []
    count = 0
    for file in find_files(path):
        try:
            truths = list(read_truths(load_document(file), file))
        except InputError as problem:
            truths = [problem]
        for truth in truths:
            count += 1
            if isinstance(truth, InputError):
                incident = canonical_id(file.parent.name if file.name in SCENARIO_FILES else file.stem)
                findings.append(Finding("error", "unreadable", incident, str(truth), str(file)))
                continue
            view = TruthView.of(truth, policy)
            objects = _objects_for(file, truth.incident_id, snapshots)
            for check in CHECKS:
                for level, code, message in check(view, objects):
                    findings.append(Finding(level, code, truth.incident_id, message, str(file)))
    return findings, count


def _objects_for(file: Path, incident_id: str, snapshots: Path | None) -> Objects:
    """Objects of the snapshot of a ground truth: beside it, or in the directory of snapshots."""
    if snapshots is None:
        return snapshot_objects(file.parent)
    if not snapshots.is_dir():
        raise InputError(f"snapshot directory not found: {snapshots}")
    directories = [directory for directory in [snapshots, *sorted(snapshots.rglob("*"))] if directory.is_dir()]
    matching = [directory for directory in directories if canonical_id(directory.name) == incident_id]
    for directory in matching or [snapshots]:
        objects = snapshot_objects(directory)
        if objects:
            return objects
    return frozenset()
