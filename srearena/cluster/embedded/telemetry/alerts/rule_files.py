"""Rule files in Prometheus' format, validated as a whole before any rule is used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from srearena.cluster.alert_rules import rule_files
from srearena.cluster.embedded.telemetry.alerts.templates import Template, TemplateError
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.promql.durations import duration_ms
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Node, value_type
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse
from srearena.errors import SreArenaError

DEFAULT_INTERVAL = 15_000
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_GROUP_FIELDS = frozenset(("name", "interval", "limit", "rules", "query_offset", "labels"))
_RULE_FIELDS = frozenset(("alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"))


class RuleFileError(SreArenaError):
    """A rule file is invalid; none of its rules is used."""


@dataclass(frozen=True)
class Rule:
    name: str
    """Name of the alert, or of the recorded metric."""
    expression: Node
    text: str
    labels: Mapping[str, Template]
    alerting: bool
    hold: int = 0
    """How long an alert is pending, in milliseconds."""
    keep_firing: int = 0
    annotations: Mapping[str, Template] = ()  # type: ignore[assignment]


@dataclass(frozen=True)
class RuleGroup:
    name: str
    file: str
    interval: int
    rules: tuple[Rule, ...]


@lru_cache(maxsize=1)
def packaged_groups() -> tuple[RuleGroup, ...]:
    """Return the rules that come with the cluster."""
    return tuple(group for file, text in rule_files().items() for group in read_rules(text, file))


def read_rules(text: str, file: str) -> list[RuleGroup]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RuleFileError(f"{file}: not YAML: {str(error).splitlines()[0]}") from None
    if document is None:
        return []
    if not isinstance(document, dict) or not isinstance(document.get("groups", []), list):
        raise RuleFileError(f"{file}: a rule file is a mapping with a list of `groups`")
    groups: list[RuleGroup] = []
    for number, entry in enumerate(document.get("groups") or []):
        group = _group(entry, file, f"{file}: groups[{number}]")
        if any(other.name == group.name for other in groups):
            raise RuleFileError(f'{file}: groupname: "{group.name}" is repeated in the same file')
        groups.append(group)
    return groups


def _group(entry: Any, file: str, where: str) -> RuleGroup:
    if not isinstance(entry, dict) or not entry.get("name"):
        raise RuleFileError(f"{where}: a group is a mapping with a `name`")
    _check_fields(entry, _GROUP_FIELDS, where)
    interval = _duration(entry, "interval", where) or DEFAULT_INTERVAL
    rules = entry.get("rules") or []
    if not isinstance(rules, list):
        raise RuleFileError(f"{where}: `rules` is a list")
    where = f'{file}: group "{entry["name"]}"'
    read = tuple(_rule(rule, f"{where}, rule {number}") for number, rule in enumerate(rules, 1))
    return RuleGroup(str(entry["name"]), file, interval, read)


def _rule(entry: Any, where: str) -> Rule:
    if not isinstance(entry, dict):
        raise RuleFileError(f"{where}: a rule is a mapping")
    _check_fields(entry, _RULE_FIELDS, where)
    if ("alert" in entry) == ("record" in entry):
        raise RuleFileError(f"{where}: exactly one of `record` and `alert` must be set")
    alerting = "alert" in entry
    name = str(entry["alert"] if alerting else entry["record"])
    where = f'{where} ("{name}")'
    if not alerting and not _METRIC.fullmatch(name):
        raise RuleFileError(f"{where}: invalid recording rule name: {name}")
    if not alerting and ({"for", "keep_firing_for", "annotations"} & entry.keys()):
        raise RuleFileError(f"{where}: `for`, `keep_firing_for` and `annotations` belong to alerts, not to records")
    text = str(entry.get("expr") or "")
    try:
        expression = parse(text.strip())
    except QueryError as error:
        raise RuleFileError(f"{where}: could not parse expression: {error}") from None
    if value_type(expression) not in ("scalar", "instant vector"):
        raise RuleFileError(f"{where}: expr gives a {value_type(expression)}, not an instant vector")
    return Rule(
        name,
        expression,
        " ".join(text.split()),
        _templates(entry, "labels", where),
        alerting,
        _duration(entry, "for", where),
        _duration(entry, "keep_firing_for", where),
        _templates(entry, "annotations", where),
    )


def _check_fields(entry: Mapping[str, Any], allowed: frozenset[str], where: str) -> None:
    for field in entry:
        if field not in allowed:
            raise RuleFileError(f"{where}: unknown field {field!r}; known are {', '.join(sorted(allowed))}")


def _duration(entry: Mapping[str, Any], field: str, where: str) -> int:
    if field not in entry:
        return 0
    found = duration_ms(str(entry[field]))
    if found is None:
        raise RuleFileError(f"{where}: `{field}` is not a valid duration string: {entry[field]!r}")
    return found


def _templates(entry: Mapping[str, Any], field: str, where: str) -> dict[str, Template]:
    texts = entry.get(field) or {}
    if not isinstance(texts, dict):
        raise RuleFileError(f"{where}: `{field}` is a mapping")
    templates = {}
    for name, text in texts.items():
        if not _LABEL.fullmatch(str(name)) or (field == "labels" and name == NAME):
            raise RuleFileError(
                f"{where}: invalid label name: {name}"
                if field == "labels"
                else f"{where}: invalid annotation name: {name}"
            )
        try:
            templates[str(name)] = Template(str(text))
        except TemplateError as error:
            raise RuleFileError(f"{where}: {field} {name!r}: {error}") from None
    return templates
