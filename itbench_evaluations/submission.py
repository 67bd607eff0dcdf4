"""Read a diagnosis from an agent's output, and record every repair.

Reading is lenient about form and strict about meaning: fences, wrappers, older field names and the `incident_summary`
formats are accepted, but no cause is ever invented. Output without a diagnosis is `unreadable` with a reason; it is
graded zero and counted as a bad run, never dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from itbench_evaluations import loose_json
from itbench_evaluations.agent_output import AgentOutput, DiagnosedEntity, DiagnosedPropagation, ExplainedAlert
from itbench_evaluations.errors import UnreadableSubmission

MAX_ITEMS = 2000  # entities, edges or alerts; chosen: longer lists are cut, and the result notes it
MAX_PROSE = 4000  # characters of free text that are searched for names; chosen

_WRAPPERS = (
    "agent_output",
    "output",
    "response",
    "result",
    "answer",
    "diagnosis",
    "final_answer",
    "content",
    "text",
    "data",
    "incident_summary",
    "incident",
    "summary",
    "analysis",
    "report",
)
_ENTITY_LISTS = ("entities", "contributing_entities", "objects")
_ROOT_KEYS = (
    "root_causes",
    "root_cause",
    "rootCause",
    "rootCauses",
    "root_cause_entities",
    "root_cause_entity",
    "contributing_factors",
    "primary_root_cause",
    "faulty_component",
    "faulty_components",
)
_VICTIM_KEYS = ("affected_entities", "affected_services", "affected_components", "impacted_services", "symptoms")
_EDGE_LISTS = ("propagations", "propagation", "propagation_chain", "fault_propagation", "fault_propagation_chain")
_ALERT_LISTS = ("alerts_explained", "alerts", "explained_alerts")
_NAME_KEYS = ("name", "id", "entity", "entity_id", "resource", "object", "component", "service")
_FLAG_KEYS = ("contributing_factor", "contributingFactor", "is_root_cause", "root_cause", "isRootCause", "contributing")
_WHY_KEYS = ("reasoning", "reason", "explanation", "description", "details", "summary", "cause")
_PATH = re.compile(r"\b[a-z0-9][a-z0-9-]*/[A-Z][A-Za-z]+/[a-z0-9][a-z0-9.-]*[a-z0-9]\b")
_KIND_AND_NAME = re.compile(r"\b[A-Z][A-Za-z]{2,}/[a-z0-9][a-z0-9.-]*[a-z0-9]\b")


@dataclass(frozen=True, slots=True)
class Submission:
    """The diagnosis. `problem` is set if there is none; `output` is then the empty diagnosis."""

    output: AgentOutput
    repairs: tuple[str, ...] = ()
    problem: str | None = None
    detected: bool | None = None

    @property
    def readable(self) -> bool:
        return self.problem is None


def unreadable(reason: str) -> Submission:
    return Submission(AgentOutput.empty(), problem=reason)


def _words(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # lone surrogates cannot be encoded
    if isinstance(value, list | tuple):
        return "; ".join(filter(None, (_words(item) for item in value)))
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_words(item)}" for key, item in value.items())
    return str(value)


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value != 0
    if isinstance(value, str):
        lowered = value.strip().lower()
        if lowered in {"true", "yes", "y", "1", "primary", "root", "root_cause"}:
            return True
        if lowered in {"false", "no", "n", "0", "", "none", "secondary", "symptom"}:
            return False
    return None


def _first(item: Mapping[str, object], keys: Iterable[str]) -> tuple[str, object] | None:
    return next(((key, item[key]) for key in keys if item.get(key) not in (None, "", [], {})), None)


def _listed(value: object) -> list[object]:
    if isinstance(value, list):
        return list(value)
    return [] if value is None or value == "" else [value]


@dataclass(slots=True)
class _Reading:
    """Reads the parts of a diagnosis and records repairs."""

    repairs: list[str]

    def note(self, repair: str) -> None:
        if repair not in self.repairs:
            self.repairs.append(repair)

    def cut(self, items: list[object], what: str) -> list[object]:
        if len(items) > MAX_ITEMS:
            self.note(f"{what}: only the first {MAX_ITEMS} of {len(items)} were read")
        return items[:MAX_ITEMS]

    # --- entities -------------------------------------------------------------------------------------------------

    def name(self, item: object) -> str:
        """An entity's full name, joined from separate fields for kind and namespace if necessary."""
        if isinstance(item, str):
            return _words(item).strip()
        if not isinstance(item, Mapping):
            return ""
        found = _first(item, _NAME_KEYS)
        if found is None:
            return ""
        key, value = found
        if isinstance(value, Mapping):
            return self.name(value)
        name = _words(value).strip()
        if key != "name":
            self.note(f"entity named by `{key}` instead of `name`")
        if name and "/" not in name and item.get("kind"):
            self.note("namespace, kind and name joined")
            namespace = _words(item.get("namespace")).strip()
            return "/".join(part for part in (namespace, _words(item["kind"]).strip(), name) if part)
        return name

    def entity(self, item: object, flag: bool | None) -> tuple[DiagnosedEntity, bool] | None:
        """The entity, and whether its contributing flag was stated."""
        name = self.name(item)
        if not name:
            self.note("entities without a name ignored")
            return None
        if not isinstance(item, Mapping):
            self.note("entities given as bare strings")
            return DiagnosedEntity(name=name, contributing_factor=bool(flag)), False
        stated = _first({key: value for key, value in item.items() if value is not False}, _FLAG_KEYS)
        explicit = _flag(stated[1]) if stated else next((False for key in _FLAG_KEYS if item.get(key) is False), None)
        if stated and explicit is not None and (stated[0] != "contributing_factor" or not isinstance(stated[1], bool)):
            self.note(f"`{stated[0]}: {_words(stated[1])[:20]}` read as contributing_factor")
        why = _first(item, _WHY_KEYS)
        if why and why[0] != "reasoning":
            self.note(f"`{why[0]}` read as reasoning")
        entity = DiagnosedEntity(
            name=name,
            contributing_factor=bool(flag if explicit is None else explicit),
            reasoning=_words(why[1]) if why else "",
            evidence=_words(item.get("evidence")),
        )
        return entity, explicit is not None

    def entities(self, value: object) -> list[DiagnosedEntity]:
        if isinstance(value, Mapping):
            self.note("entities given as a mapping")
            value = [
                {"name": key, **item} if isinstance(item, Mapping) else {"name": key, "reasoning": item}
                for key, item in value.items()
            ]
        read = [self.entity(item, None) for item in self.cut(_listed(value), "entities")]
        found = [each for each in read if each is not None]
        if found and not any(stated for _, stated in found):
            self.note("no entity says contributing_factor: all are taken as contributing")
            return [entity.model_copy(update={"contributing_factor": True}) for entity, _ in found]
        if any(not stated for _, stated in found):
            self.note("entities without contributing_factor taken as not contributing")
        return [entity for entity, _ in found]

    def named_causes(self, tree: Mapping[str, object]) -> list[DiagnosedEntity]:
        """Causes in older formats: a field for the root cause with names, objects or prose that contains names."""
        causes: list[DiagnosedEntity] = []
        for key, flag in [*((k, True) for k in _ROOT_KEYS), *((k, False) for k in _VICTIM_KEYS)]:
            before = len(causes)
            for item in self.cut(_listed(tree.get(key)), key):
                if isinstance(item, Mapping) and _first(item, _NAME_KEYS):
                    read = self.entity(item, flag)
                    causes += [read[0].model_copy(update={"contributing_factor": flag})] if read else []
                elif flag and isinstance(item, str | Mapping):
                    prose = _words(item)[:MAX_PROSE]
                    paths = _PATH.findall(prose) or _KIND_AND_NAME.findall(prose)
                    if not paths and isinstance(item, str) and re.fullmatch(r"[a-z0-9][a-z0-9./-]*", item.strip()):
                        paths = [item.strip()]
                    causes += [
                        DiagnosedEntity(name=path, contributing_factor=True, reasoning=prose)
                        for path in dict.fromkeys(paths)
                    ]
            if len(causes) > before:
                self.note(f"{'causes' if flag else 'victims'} read from `{key}`")
        return causes

    # --- edges and alerts -----------------------------------------------------------------------------------------

    def propagations(self, value: object) -> list[DiagnosedPropagation]:
        items = self.cut(_listed(value), "propagations")
        if len(items) > 1 and all(isinstance(item, str) for item in items):
            self.note("a chain of names read as edges")
            items = [{"source": a, "target": b} for a, b in pairwise(items)]
        edges = []
        for item in items:
            if not isinstance(item, Mapping):
                self.note("propagations that are not objects ignored")
                continue
            source = self.name(_end(item, ("source", "from", "src", "cause")))
            target = self.name(_end(item, ("target", "to", "dst", "destination")))
            if not source or not target:
                self.note("propagations without source or target ignored")
                continue
            if "source" not in item or "target" not in item:
                self.note("`from`/`to` read as source and target")
            condition = _first(item, ("condition", "reasoning", "reason", "mechanism"))
            effect = _first(item, ("effect", "impact", "result", "description"))
            edges.append(
                DiagnosedPropagation(
                    source=source,
                    target=target,
                    condition=_words(condition[1]) if condition else "",
                    effect=_words(effect[1]) if effect else "",
                )
            )
        return edges

    def alerts(self, value: object) -> list[ExplainedAlert]:
        alerts = []
        for item in self.cut(_listed(value), "alerts_explained"):
            if isinstance(item, str):
                alerts.append(ExplainedAlert(alert=_words(item)))
            elif isinstance(item, Mapping):
                name = _first(item, ("alert", "name", "id", "alertname"))
                flag = _flag(item.get("explained"))
                alerts.append(
                    ExplainedAlert(
                        alert=_words(name[1]) if name else "",
                        explanation=_words(item.get("explanation", item.get("reasoning"))),
                        explained=True if flag is None else flag,
                    )
                )
        return alerts


def _end(item: Mapping[str, object], keys: tuple[str, ...]) -> object:
    found = _first(item, keys)
    return found[1] if found else None


_KNOWN = (*_ENTITY_LISTS, *_ROOT_KEYS, *_EDGE_LISTS, "alerts_explained", "detected", "incident_detected")


def _diagnosis(value: object, reading: _Reading) -> Mapping[str, object]:
    """The object with the diagnosis, inside strings, lists and wrappers."""
    for _ in range(6):
        if isinstance(value, str):
            value, repairs = loose_json.loads(value)
            reading.note("JSON within a string unwrapped")
            for repair in repairs:
                reading.note(repair)
        elif isinstance(value, list):
            if len(value) == 1 and isinstance(value[0], Mapping) and any(key in value[0] for key in _KNOWN):
                reading.note("a list around the diagnosis removed")
                value = value[0]
            elif value and all(isinstance(item, str | Mapping) for item in value):
                reading.note("a bare list read as entities")
                value = {"entities": value}
            else:
                raise UnreadableSubmission("a list that holds no entities")
        elif isinstance(value, Mapping):
            if any(value.get(key) is not None for key in _KNOWN):
                return value
            inner = next((key for key in _WRAPPERS if isinstance(value.get(key), Mapping | list | str)), None)
            if inner is None:
                keys = ", ".join(map(str, list(value)[:6])) or "none"
                raise UnreadableSubmission(f"none of the fields of a diagnosis is there (fields: {keys})")
            reading.note(f"read within `{inner}`")
            value = value[inner]
        else:
            raise UnreadableSubmission(f"the JSON is {type(value).__name__}, not an object")
    raise UnreadableSubmission("the diagnosis is wrapped too deeply")


def _read(value: object, reading: _Reading) -> Submission:
    tree = _diagnosis(value, reading)
    listed = next((key for key in _ENTITY_LISTS if tree.get(key) is not None), None)
    if listed is not None:
        entities = reading.entities(tree[listed])
    else:
        nested = [tree, *(inner for key in _WRAPPERS if isinstance(inner := tree.get(key), Mapping))]
        entities = [entity for each in nested for entity in reading.named_causes(each)]
    edges = next((key for key in _EDGE_LISTS if tree.get(key) is not None), None)
    alerts = next((key for key in _ALERT_LISTS if tree.get(key) is not None), None)
    for expected, found in (("entities", listed), ("propagations", edges), ("alerts_explained", alerts)):
        if found is None:
            reading.note(f"`{expected}` is missing")
        elif found != expected:
            reading.note(f"`{found}` read as `{expected}`")
    output = AgentOutput(
        entities=entities,
        propagations=reading.propagations(tree[edges]) if edges else [],
        alerts_explained=reading.alerts(tree[alerts]) if alerts else [],
    )
    detected = next((_flag(tree[key]) for key in ("detected", "incident_detected") if key in tree), None)
    if listed is None and not entities and not output.propagations and detected is None:
        raise UnreadableSubmission("no entity is named in the diagnosis")
    return Submission(output, tuple(reading.repairs), detected=detected)


def read_value(value: object) -> Submission:
    """Read a diagnosis that is already an object (a live submission); never raises."""
    try:
        return _read(value, _Reading([]))
    except UnreadableSubmission as problem:
        return unreadable(str(problem))
    except RecursionError:
        return unreadable("nested too deeply")


def read_text(text: str) -> Submission:
    """Read a diagnosis from text; never raises."""
    try:
        value, repairs = loose_json.loads(text)
    except UnreadableSubmission as problem:
        return unreadable(str(problem))
    try:
        return _read(value, _Reading(repairs))
    except UnreadableSubmission as problem:
        return unreadable(str(problem))
    except RecursionError:
        return unreadable("nested too deeply")


def read_bytes(data: bytes) -> Submission:
    """Read a diagnosis from a file's bytes, in UTF-8 or UTF-16; never raises."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text, repair = data.decode(encoding), "decoded as UTF-16" if encoding == "utf-16" else ""
    except UnicodeDecodeError:
        text, repair = data.decode("utf-8", errors="replace"), "invalid UTF-8 replaced"
    submission = read_text(text)
    if repair and submission.readable:
        return Submission(submission.output, (repair, *submission.repairs), detected=submission.detected)
    return submission
