"""Parse ground truth documents: flat, `itbench.io/v1` and `itbench.io/v2`.

Nothing is dropped silently: what looks wrong is listed in `GroundTruth.warnings`, and what cannot be graded at all
raises `InputError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from srearena.errors import InputError
from srearena.ground_truth.kinds import canonical_kind
from srearena.ground_truth.model import Alert, Fault, GroundTruth, Group, Propagation

_NUMBERED = re.compile(r"(?:scenario|incident)?[-_ ]?i?0*(\d+)", re.IGNORECASE)


def canonical_id(text: str) -> str:
    """`Scenario-3`, `scenario_3`, `scenario-i3`, `incident-3` and `3` are incident `3`; any other name is unchanged."""
    stripped = text.strip()
    match = _NUMBERED.fullmatch(stripped)
    return match[1] if match else stripped


PLACEHOLDERS = frozenset({"", "to be specified", "tbd", "unknown", "n/a", "none", "unspecified", "custom"})


def _text(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def _mappings(value: object, what: str, warnings: list[str]) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    items: Iterable[object] = value if isinstance(value, list) else [value]
    mappings = [item for item in items if isinstance(item, Mapping)]
    if len(mappings) != (len(value) if isinstance(value, list) else 1):
        warnings.append(f"{what}: some items are not objects and were ignored")
    return mappings


def _strings(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    return tuple(str(item) for item in items if item is not None and str(item))


def _true(value: object) -> bool:
    return value is True or str(value).strip().lower() in {"true", "yes", "1"}


@dataclass(slots=True)
class _Parser:
    """Parses the parts of a document and collects warnings."""

    warnings: list[str] = field(default_factory=list)

    def groups(self, raw: object) -> tuple[Group, ...]:
        groups: list[Group] = []
        ids: set[str] = set()
        for index, item in enumerate(_mappings(raw, "groups", self.warnings)):
            filters = _strings(item.get("filter", item.get("filters")))
            name = _text(item.get("name")) or None
            group_id = _text(item.get("id")) or name or f"group-{index + 1}"
            if group_id in ids:
                self.warnings.append(f"group id {group_id!r} is used more than once; the first one counts")
                continue
            ids.add(group_id)
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
            self.warnings.append("aliases: not a list of lists; ignored")
            return ()
        return tuple(names for item in raw if (names := _strings(item)))

    def propagations(self, raw: object) -> tuple[Propagation, ...]:
        edges = []
        for item in _mappings(raw, "propagations", self.warnings):
            source, target = _text(item.get("source")), _text(item.get("target"))
            if not source or not target:
                self.warnings.append("propagations: an edge without source or target was ignored")
                continue
            edges.append(Propagation(source, target, _text(item.get("condition")), _text(item.get("effect"))))
        return tuple(edges)

    def faults(self, raw: object) -> tuple[Fault, ...]:
        faults = []
        for item in _mappings(raw, "fault", self.warnings):
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
        alerts = []
        for item in _mappings(raw, "alerts", self.warnings):
            metadata = item.get("metadata")
            description = metadata.get("description") if isinstance(metadata, Mapping) else None
            alerts.append(
                Alert(
                    _text(item.get("id") or item.get("name")), _text(item.get("group_id")) or None, _text(description)
                )
            )
        return tuple(alerts)


def _change(changed: object) -> str:
    """Old and new value in one sentence; long values are omitted, because a model judges against this text."""
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
    """The texts of `solutions` in v2: lists of alternatives, each with steps."""
    texts: list[str] = []
    for alternatives in raw if isinstance(raw, list) else []:
        for option in alternatives if isinstance(alternatives, list) else [alternatives]:
            steps = option.get("steps") if isinstance(option, Mapping) else None
            for step in steps if isinstance(steps, list) else []:
                if isinstance(step, Mapping) and step.get("text"):
                    texts.append(_text(step["text"]))
    return tuple(texts)


def _from_v2(spec: Mapping[str, Any], incident_id: str, path: str, parser: _Parser) -> GroundTruth:
    groups: list[Group] = []
    for item in _mappings(spec.get("entities"), "entities", parser.warnings):
        metadata = item.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        name, namespace = _text(metadata.get("name")), _text(metadata.get("namespace")) or None
        kind = canonical_kind(_text(item.get("kind")) or None)
        if not name:
            parser.warnings.append("entities: an entity without metadata.name was ignored")
            continue
        group = Group("/".join(p for p in (namespace, kind, name) if p), kind, namespace, name, (), root=True)
        if group not in groups:
            groups.append(group)
    return GroundTruth(
        incident_id,
        "v2",
        tuple(groups),
        alerts=parser.alerts(spec.get("alerts")),
        remedies=_steps(spec.get("solutions")),
        warnings=tuple(parser.warnings),
        path=path,
    )


def _with_roots(
    groups: tuple[Group, ...], propagations: tuple[Propagation, ...], faults: tuple[Fault, ...], parser: _Parser
) -> tuple[Group, ...]:
    """Infer the root if the file marks none: the group of the fault, or where the propagation starts."""
    if not groups or any(group.root for group in groups):
        return groups
    ids = {group.id for group in groups}
    targets = {edge.target for edge in propagations if edge.source != edge.target}
    inferred = (
        {fault.group_id for fault in faults if fault.group_id in ids}
        or {edge.source for edge in propagations if edge.source in ids - targets}
        or {groups[0].id}
    )
    parser.warnings.append(
        f"no group is marked root_cause; inferred from fault and propagations: {sorted(map(str, inferred))}"
    )
    return tuple(replace(group, root=group.id in inferred) for group in groups)


def parse_ground_truth(document: object, *, default_id: str = "", fixed_id: str = "", path: str = "") -> GroundTruth:
    """Parse one document. `default_id` is used if the document names no incident, `fixed_id` whatever it names."""
    where = f" in {path}" if path else ""
    if not isinstance(document, Mapping):
        raise InputError(f"ground truth{where} is {type(document).__name__}, not an object with groups or entities")
    parser = _Parser()
    spec = document.get("spec")
    wrapped = isinstance(spec, Mapping)
    body: Mapping[str, Any] = spec if isinstance(spec, Mapping) else document
    metadata = document.get("metadata")
    name = _text(metadata.get("name")) if wrapped and isinstance(metadata, Mapping) else ""
    own_id = canonical_id(_text(document.get("id") or document.get("scenario_id")) or name)
    identity = canonical_id(fixed_id) or own_id or canonical_id(default_id)
    if own_id and own_id != identity:
        parser.warnings.append(
            f"the file calls itself incident {own_id}, its directory says {identity}; the directory counts"
        )
    if not identity:
        raise InputError(f"ground truth{where} names no incident: add an `id`")
    if "groups" not in body and "entities" in body:
        return _from_v2(body, identity, path, parser)
    if "groups" not in body:
        raise InputError(f"ground truth of incident {identity}{where} has neither `groups` (v1) nor `entities` (v2)")
    groups = parser.groups(body.get("groups"))
    propagations = parser.propagations(body.get("propagations"))
    faults = parser.faults(body.get("fault", body.get("faults")))
    return GroundTruth(
        incident_id=identity,
        format="v1" if wrapped else "flat",
        groups=_with_roots(groups, propagations, faults, parser),
        aliases=parser.aliases(body.get("aliases")),
        propagations=propagations,
        faults=faults,
        alerts=parser.alerts(body.get("alerts")),
        remedies=_actions(body.get("recommended_actions", body.get("recommendedActions"))),
        warnings=tuple(parser.warnings),
        path=path,
    )
