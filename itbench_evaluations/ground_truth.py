"""The answer key of one incident, in one shape whatever the file's: flat, `itbench.io/v1`, `itbench.io/v2`.

A `GroundTruth` is plain data: groups of objects, which of them are roots, aliases, who passed the trouble to whom,
and the words in which the file states the fault. Reading never drops anything silently: what looks wrong is kept
in `oddities`, which `itbench-eval lint` shows, and what cannot be graded at all raises `InputError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from itbench_evaluations.errors import InputError
from itbench_evaluations.identity import canonical_kind


@dataclass(frozen=True, slots=True)
class Group:
    """Objects the file treats as one: by exact `name`, by `filters` on the name, or both."""

    id: str
    kind: str | None
    namespace: str | None
    name: str | None
    filters: tuple[str, ...]
    root: bool


@dataclass(frozen=True, slots=True)
class Propagation:
    source: str
    target: str
    condition: str
    effect: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What the file says was done, in its own words."""

    group_id: str | None
    kind: str | None
    name: str | None
    condition: str
    mechanism: str
    category: str
    change: str


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    group_id: str | None
    description: str


@dataclass(frozen=True, slots=True)
class GroundTruth:
    incident_id: str
    form: str
    groups: tuple[Group, ...]
    aliases: tuple[tuple[str, ...], ...] = ()
    propagations: tuple[Propagation, ...] = ()
    faults: tuple[Fault, ...] = ()
    alerts: tuple[Alert, ...] = ()
    remedies: tuple[str, ...] = ()
    oddities: tuple[str, ...] = ()
    origin: str = ""

    @property
    def roots(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.root)

    @property
    def is_noop(self) -> bool:
        """Nothing was wrong: the right answer is to blame nothing."""
        return not self.groups

    def group(self, group_id: str) -> Group | None:
        return next((group for group in self.groups if group.id == group_id), None)


_NUMBERED = re.compile(r"(?:scenario|incident)?[-_ ]?i?0*(\d+)", re.IGNORECASE)


def canonical_id(text: str) -> str:
    """`Scenario-3`, `scenario_3`, `scenario-i3`, `incident-3` and `3` are incident `3`; any other name is itself."""
    stripped = text.strip()
    numbered = _NUMBERED.fullmatch(stripped)
    return numbered[1] if numbered else stripped


PLACEHOLDERS = frozenset({"", "to be specified", "tbd", "unknown", "n/a", "none", "unspecified", "custom"})


def _text(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def _mappings(value: object, what: str, oddities: list[str]) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    items: Iterable[object] = value if isinstance(value, list) else [value]
    kept = [item for item in items if isinstance(item, Mapping)]
    if len(kept) != (len(value) if isinstance(value, list) else 1):
        oddities.append(f"{what}: some items are not objects and were passed over")
    return kept


def _strings(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    return tuple(str(item) for item in items if item is not None and str(item))


def _true(value: object) -> bool:
    return value is True or str(value).strip().lower() in {"true", "yes", "1"}


@dataclass(slots=True)
class _Draft:
    oddities: list[str] = field(default_factory=list)

    def groups(self, raw: object) -> tuple[Group, ...]:
        groups: list[Group] = []
        seen: set[str] = set()
        for index, item in enumerate(_mappings(raw, "groups", self.oddities)):
            filters = _strings(item.get("filter", item.get("filters")))
            name = _text(item.get("name")) or None
            group_id = _text(item.get("id")) or name or f"group-{index + 1}"
            if group_id in seen:
                self.oddities.append(f"group id {group_id!r} is used more than once; the first one counts")
                continue
            seen.add(group_id)
            groups.append(
                Group(
                    id=group_id,
                    kind=canonical_kind(_text(item.get("kind")) or None),
                    namespace=_text(item.get("namespace")) or None,
                    name=name,
                    filters=filters,
                    root=_true(item.get("root_cause", item.get("rootCause"))),
                )
            )
        return tuple(groups)

    def aliases(self, raw: object) -> tuple[tuple[str, ...], ...]:
        if raw is None:
            return ()
        if not isinstance(raw, list):
            self.oddities.append("aliases: not a list of lists; passed over")
            return ()
        return tuple(names for item in raw if (names := _strings(item)))

    def propagations(self, raw: object) -> tuple[Propagation, ...]:
        edges = []
        for item in _mappings(raw, "propagations", self.oddities):
            source, target = _text(item.get("source")), _text(item.get("target"))
            if not source or not target:
                self.oddities.append("propagations: an edge without source or target was passed over")
                continue
            edges.append(Propagation(source, target, _text(item.get("condition")), _text(item.get("effect"))))
        return tuple(edges)

    def faults(self, raw: object) -> tuple[Fault, ...]:
        faults = []
        for item in _mappings(raw, "fault", self.oddities):
            entity = item.get("entity")
            entity = entity if isinstance(entity, Mapping) else {}
            changed = entity.get("changed", item.get("changed"))
            faults.append(
                Fault(
                    group_id=_text(entity.get("group_id")) or None,
                    kind=canonical_kind(_text(entity.get("kind")) or None),
                    name=_text(entity.get("name")) or None,
                    condition=_text(item.get("condition")),
                    mechanism=_text(item.get("fault_mechanism")),
                    category=_text(item.get("category")),
                    change=_change(changed),
                )
            )
        return tuple(faults)

    def alerts(self, raw: object) -> tuple[Alert, ...]:
        found = []
        for item in _mappings(raw, "alerts", self.oddities):
            metadata = item.get("metadata")
            description = metadata.get("description") if isinstance(metadata, Mapping) else None
            found.append(
                Alert(
                    _text(item.get("id") or item.get("name")), _text(item.get("group_id")) or None, _text(description)
                )
            )
        return tuple(found)


def _change(changed: object) -> str:
    """From and to, short enough to be read: whole documents before and after say nothing to a reader."""
    if not isinstance(changed, Mapping):
        return ""
    before, after = _text(changed.get("from")), _text(changed.get("to"))
    element = _text(changed.get("element"))
    if len(before) + len(after) > 400:
        return f"{element} was changed"
    return f"{element} changed from {before or 'nothing'} to {after or 'nothing'}"


def _actions(raw: object) -> tuple[str, ...]:
    texts: list[str] = []
    for item in raw if isinstance(raw, list) else []:
        solution = item.get("solution") if isinstance(item, Mapping) else None
        if isinstance(solution, Mapping):
            texts.extend(_strings(solution.get("actions")))
    return tuple(texts)


def _steps(raw: object) -> tuple[str, ...]:
    """The texts of v2's `solutions`: lists of alternatives, each with steps."""
    texts: list[str] = []
    for alternatives in raw if isinstance(raw, list) else []:
        for option in alternatives if isinstance(alternatives, list) else [alternatives]:
            steps = option.get("steps") if isinstance(option, Mapping) else None
            for step in steps if isinstance(steps, list) else []:
                if isinstance(step, Mapping) and step.get("text"):
                    texts.append(_text(step["text"]))
    return tuple(texts)


def _from_v2(spec: Mapping[str, Any], incident_id: str, origin: str, draft: _Draft) -> GroundTruth:
    groups: list[Group] = []
    for item in _mappings(spec.get("entities"), "entities", draft.oddities):
        metadata = item.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        name, namespace = _text(metadata.get("name")), _text(metadata.get("namespace")) or None
        kind = canonical_kind(_text(item.get("kind")) or None)
        if not name:
            draft.oddities.append("entities: an entity without metadata.name was passed over")
            continue
        group = Group("/".join(p for p in (namespace, kind, name) if p), kind, namespace, name, (), root=True)
        if group not in groups:
            groups.append(group)
    return GroundTruth(
        incident_id,
        "v2",
        tuple(groups),
        alerts=draft.alerts(spec.get("alerts")),
        remedies=_steps(spec.get("solutions")),
        oddities=tuple(draft.oddities),
        origin=origin,
    )


def _with_roots(
    groups: tuple[Group, ...], propagations: tuple[Propagation, ...], faults: tuple[Fault, ...], draft: _Draft
) -> tuple[Group, ...]:
    """A file that marks no root still has one: where its fault sits, or where its propagation begins."""
    if not groups or any(group.root for group in groups):
        return groups
    ids = {group.id for group in groups}
    targets = {edge.target for edge in propagations if edge.source != edge.target}
    chosen = (
        {fault.group_id for fault in faults if fault.group_id in ids}
        or {edge.source for edge in propagations if edge.source in ids - targets}
        or {groups[0].id}
    )
    draft.oddities.append(
        f"no group is marked root_cause; taken from fault and propagations: {sorted(map(str, chosen))}"
    )
    return tuple(replace(group, root=group.id in chosen) for group in groups)


def parse_ground_truth(document: object, *, default_id: str = "", fixed_id: str = "", origin: str = "") -> GroundTruth:
    """Read one document. `default_id` is used where it names no incident itself, `fixed_id` whatever it says."""
    where = f" in {origin}" if origin else ""
    if not isinstance(document, Mapping):
        raise InputError(f"ground truth{where} is {type(document).__name__}, not an object with groups or entities")
    draft = _Draft()
    spec = document.get("spec")
    wrapped = isinstance(spec, Mapping)
    body: Mapping[str, Any] = spec if isinstance(spec, Mapping) else document
    metadata = document.get("metadata")
    named = _text(metadata.get("name")) if wrapped and isinstance(metadata, Mapping) else ""
    stated = canonical_id(_text(document.get("id") or document.get("scenario_id")) or named)
    identity = canonical_id(fixed_id) or stated or canonical_id(default_id)
    if stated and stated != identity:
        draft.oddities.append(f"the file calls itself incident {stated}, its place says {identity}; the place counts")
    if not identity:
        raise InputError(f"ground truth{where} names no incident: add an `id`")
    if "groups" not in body and "entities" in body:
        return _from_v2(body, identity, origin, draft)
    if "groups" not in body:
        raise InputError(f"ground truth of incident {identity}{where} has neither `groups` (v1) nor `entities` (v2)")
    groups = draft.groups(body.get("groups"))
    propagations = draft.propagations(body.get("propagations"))
    faults = draft.faults(body.get("fault", body.get("faults")))
    return GroundTruth(
        incident_id=identity,
        form="v1" if wrapped else "flat",
        groups=_with_roots(groups, propagations, faults, draft),
        aliases=draft.aliases(body.get("aliases")),
        propagations=propagations,
        faults=faults,
        alerts=draft.alerts(body.get("alerts")),
        remedies=_actions(body.get("recommended_actions", body.get("recommendedActions"))),
        oddities=tuple(draft.oddities),
        origin=origin,
    )
