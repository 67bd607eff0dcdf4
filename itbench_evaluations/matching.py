"""Match names in a diagnosis to groups of the ground truth, by deterministic rules.

Policies, each a superset of the previous one:

    strict     namespace, kind and name as the file states them, and its own aliases
    workload   also: the Service, Deployment, StatefulSet, DaemonSet, ReplicaSet, Pods and Endpoints of one workload
               are the same; generated suffixes are not part of a name
    lenient    also: a missing kind is no contradiction, `ad-service` is `ad`, a chaos Schedule is its experiment

Groups that denote the same thing (by alias, equal selectors, or workload) form one *component*. Scores count
components, so three names for one root are one root. A missing namespace matches any; a different one never matches.
A name that matches another component equally well is reported as ambiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from itbench_evaluations.identity import (
    GENERATED_KINDS,
    WORKLOAD_KINDS,
    Entity,
    loose_name,
    parse_entity,
    workload_stems,
)
from itbench_evaluations.name_filters import NamePattern, compile_pattern
from srearena.ground_truth import GroundTruth, Group
from srearena.ground_truth.kinds import CLUSTER_SCOPED


class Policy(StrEnum):
    """How strictly names are compared; see the module."""

    STRICT = "strict"
    WORKLOAD = "workload"
    LENIENT = "lenient"


class Tier(StrEnum):
    """The rule by which a name matched, from strict to lenient."""

    EXACT = "exact name"
    FILTER = "filter"
    WORKLOAD = "same workload"
    LOOSE = "loose name"
    JUDGE = "judge"


_ORDER = {Tier.EXACT: 4, Tier.FILTER: 3, Tier.WORKLOAD: 2, Tier.LOOSE: 1, Tier.JUDGE: 0}


@dataclass(frozen=True, slots=True)
class Resolved:
    """The meaning of a name: a component of the ground truth, or an object outside of it."""

    entity: Entity
    component: str
    group: str | None
    tier: Tier | None
    is_root: bool
    ambiguous_with: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the name denotes a group of the ground truth."""
        return self.group is not None


class _Selector:
    """A group with compiled patterns."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.patterns: tuple[NamePattern, ...] = tuple(compile_pattern(text) for text in group.filters)
        stems = {pattern.stem for pattern in self.patterns if pattern.stem}
        if group.name:
            stems.update(workload_stems(group.name, group.kind))
        self.stems = frozenset(stem.lower() for stem in stems)
        self.is_workload = group.kind in WORKLOAD_KINDS
        self.specificity = max((p.literals for p in self.patterns), default=len(group.name or ""))

    @property
    def selector(self) -> tuple[str | None, str | None, str | None, tuple[str, ...]]:
        return self.group.kind, self.group.namespace, self.group.name, tuple(sorted(self.group.filters))


def _is_chaos(kind: str | None) -> bool:
    return kind == "Schedule" or bool(kind and kind.endswith("Chaos"))


class Matcher:
    """Resolves names against one ground truth under one policy; results are cached."""

    def __init__(self, truth: GroundTruth, policy: Policy = Policy.WORKLOAD) -> None:
        self.truth = truth
        self.policy = policy
        self._selectors = [_Selector(group) for group in truth.groups]
        self._all_stems = frozenset(stem for selector in self._selectors for stem in selector.stems)
        self.component_of: dict[str, str] = self._components()
        self.root_components: frozenset[str] = frozenset(self.component_of[group.id] for group in truth.roots)
        self._resolved: dict[str, Resolved] = {}

    # --- components -----------------------------------------------------------------------------------------------

    def _components(self) -> dict[str, str]:
        parent = {group.id: group.id for group in self.truth.groups}

        def find(item: str) -> str:
            while parent[item] != item:
                parent[item] = parent[parent[item]]
                item = parent[item]
            return item

        for alias in self.truth.aliases:
            declared = [group_id for group_id in alias if group_id in parent]
            for other in declared[1:]:
                parent[find(other)] = find(declared[0])
        for index, first in enumerate(self._selectors):
            for second in self._selectors[index + 1 :]:
                if self._equivalent(first, second):
                    parent[find(second.group.id)] = find(first.group.id)
        members: dict[str, list[str]] = {}
        for group in self.truth.groups:
            members.setdefault(find(group.id), []).append(group.id)
        # A component has the name of its first root, or of its first group, independent of the order of the unions.
        roots = {group.id for group in self.truth.roots}
        names = {key: next((m for m in ids if m in roots), ids[0]) for key, ids in members.items()}
        return {group.id: names[find(group.id)] for group in self.truth.groups}

    def _equivalent(self, first: _Selector, second: _Selector) -> bool:
        if first.selector == second.selector:
            return True
        if self.policy is Policy.STRICT or not (first.is_workload and second.is_workload):
            return False
        namespaces = {first.group.namespace, second.group.namespace} - {None}
        return len(namespaces) <= 1 and bool(first.stems & second.stems)

    def members(self, component: str) -> tuple[str, ...]:
        return tuple(group_id for group_id, name in self.component_of.items() if name == component)

    def stems_of(self, group_id: str) -> frozenset[str]:
        """The literal names in a group's selectors, for finding it in prose."""
        return next((s.stems for s in self._selectors if s.group.id == group_id), frozenset())

    # --- one name -------------------------------------------------------------------------------------------------

    def resolve(self, text: str) -> Resolved:
        resolved = self._resolved.get(text)
        if resolved is None:
            resolved = self._resolved[text] = self._resolve(parse_entity(text))
        return resolved

    def judged(self, text: str, group_id: str) -> Resolved:
        """A match chosen by the judge, because no rule found one. Not cached: it is valid for one trial only."""
        component = self.component_of[group_id]
        return Resolved(parse_entity(text), component, group_id, Tier.JUDGE, component in self.root_components)

    def _resolve(self, entity: Entity) -> Resolved:
        matches: list[tuple[Tier, _Selector]] = []
        for selector in self._selectors:
            tier = self._match(entity, selector)
            if tier is not None:
                matches.append((tier, selector))
        if not matches:
            return Resolved(entity, self._outside_id(entity), None, None, False)

        def preference(candidate: tuple[Tier, _Selector]) -> tuple[int, bool, int, bool]:
            tier, selector = candidate
            own_kind = selector.group.kind == entity.kind
            return _ORDER[tier], own_kind, selector.specificity, selector.group.root

        best_tier, best = max(matches, key=preference)
        component = self.component_of[best.group.id]
        rivals = {self.component_of[s.group.id] for tier, s in matches if tier is best_tier} - {component}
        return Resolved(
            entity,
            component,
            best.group.id,
            best_tier,
            component in self.root_components,
            tuple(sorted(rivals)),
        )

    def _outside_id(self, entity: Entity) -> str:
        """A component id for an object outside the ground truth, so that one wrong object named twice counts once."""
        name = entity.name.lower()
        if self.policy is not Policy.STRICT and entity.is_workload:
            return f"?{entity.namespace or ''}/workload/{workload_stems(name, entity.kind)[-1]}"
        return f"?{entity.namespace or ''}/{(entity.kind or '').lower()}/{name}"

    def _match(self, entity: Entity, selector: _Selector) -> Tier | None:
        group = selector.group
        if (
            entity.namespace
            and group.namespace
            and entity.namespace.lower() != group.namespace.lower()
            and group.kind not in CLUSTER_SCOPED
        ):
            return None
        same_kind = self._same_kind(entity.kind, group.kind)
        both_workloads = self.policy is not Policy.STRICT and entity.is_workload and selector.is_workload
        if not same_kind and not both_workloads:
            return None
        name = entity.name if self.policy is Policy.STRICT else entity.name.lower()
        if same_kind:
            tier = self._by_name(name, entity, selector)
            if tier is not None:
                return tier
        if both_workloads and self._by_workload(name, entity.kind, selector):
            return Tier.WORKLOAD
        if self.policy is Policy.LENIENT and self._by_loose_name(name, entity.kind, selector):
            return Tier.LOOSE
        return None

    def _same_kind(self, stated: str | None, expected: str | None) -> bool:
        if expected is None:
            return True
        if stated is None:
            return self.policy is Policy.LENIENT
        if stated.lower() == expected.lower():
            return True
        return self.policy is Policy.LENIENT and _is_chaos(stated) and _is_chaos(expected)

    def _by_name(self, name: str, entity: Entity, selector: _Selector) -> Tier | None:
        group = selector.group
        if group.name is not None and name == (group.name if self.policy is Policy.STRICT else group.name.lower()):
            return Tier.EXACT
        for pattern in selector.patterns:
            fits = pattern.matches(name) or pattern.matches(entity.name)
            if fits and not self._of_another_workload(name, entity.kind, group.kind, pattern):
                return Tier.EXACT if pattern.stem == name else Tier.FILTER
        return None

    def _of_another_workload(self, name: str, kind: str | None, group_kind: str | None, pattern: NamePattern) -> bool:
        """Whether a name belongs to another workload: `frontend-.*` also matches pods of `frontend-proxy`."""
        if pattern.stem is None or group_kind not in GENERATED_KINDS:
            return False
        stem = pattern.stem.lower()
        full, *shorter = workload_stems(name, kind or group_kind)
        if shorter:
            return stem not in shorter and full != stem
        return full != stem and full in self._all_stems

    @staticmethod
    def _by_workload(name: str, kind: str | None, selector: _Selector) -> bool:
        stems = workload_stems(name, kind)
        if selector.stems & set(stems):
            return True
        # Filters without a literal name can only be evaluated.
        return any(pattern.stem is None and pattern.matches(stem) for pattern in selector.patterns for stem in stems)

    @staticmethod
    def _by_loose_name(name: str, kind: str | None, selector: _Selector) -> bool:
        names = {loose_name(stem) for stem in selector.stems}
        return any(loose_name(stem) in names for stem in workload_stems(name, kind))


def example_name(matcher: Matcher, group: Group) -> str | None:
    """A full name that the group's filter accepts, or None if no generated name does."""
    suffix = {"Pod": "-6d5f7c9b8-x2v4z", "ReplicaSet": "-6d5f7c9b8", "EndpointSlice": "-x2v4z"}.get(
        group.kind or "", ""
    )
    names: list[str] = [group.name] if group.name else []
    for text in group.filters:
        pattern = compile_pattern(text)
        if pattern.stem:
            names += [pattern.stem + suffix, pattern.stem, pattern.stem + "-x2v4z"]
        names += [pattern.example, pattern.example + suffix, pattern.example + "x"]
    for name in names:
        full = "/".join(part for part in (group.namespace, group.kind, name) if part)
        if name and matcher.resolve(full).component == matcher.component_of[group.id]:
            return full
    return None
