"""Lazy evaluation of alerting and recording rules.

The passage of virtual time costs nothing for rules: when alerts, rules or recorded series are queried, each group is
evaluated at all instants since the last evaluation, with one range query per rule. The transitions of the real server
are applied at each instant, in the same order: an alert becomes pending, fires, keeps firing, resolves. Instants are
seven and a half seconds after a multiple of the interval, so that none coincides with a scrape.

A rule reads series recorded by earlier rules at every instant. Series recorded by later rules are available to it only
up to the previous evaluation; no rule file should rely on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.telemetry.alerts.alert import Alert
from srearena.cluster.embedded.telemetry.alerts.recording import Recording
from srearena.cluster.embedded.telemetry.alerts.rule_files import Rule, RuleGroup, packaged_groups
from srearena.cluster.embedded.telemetry.metrics.blocks import Integers, milliseconds
from srearena.cluster.embedded.telemetry.metrics.labels import Labels, labels_of
from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine, steps
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector, nameless
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_STEPS_AT_ONCE = 240
"""Instants per range query. Chosen: an hour at the usual interval, which bounds the memory of a query."""
_PHASE = 7500
"""Milliseconds after a multiple of the interval: half of the scrape interval."""
_RESOLVED_RETENTION = 15 * 60_000
"""Milliseconds: Prometheus' `resolvedRetention`."""
SAME_LABELS = "vector contains metrics with the same labelset after applying alert labels"


@dataclass(slots=True)
class RuleState:
    rule: Rule
    recording: Recording
    alerts: dict[Labels, Alert] = field(default_factory=dict)
    error: str = ""


@dataclass(slots=True)
class GroupState:
    group: RuleGroup
    rules: list[RuleState]
    evaluated: int | None = None
    """The last instant evaluated, in milliseconds."""

    def pending_instants(self, since: int, now: int) -> tuple[int, int] | None:
        """Return the first and last instant to evaluate."""
        interval = self.group.interval
        phase = _PHASE % interval
        first = since if self.evaluated is None else max(self.evaluated + 1, since)
        first = -(-(first - phase) // interval) * interval + phase
        last = (now - phase) // interval * interval + phase
        return (first, last) if first <= last else None


class Rules:
    """All rule groups over a store."""

    def __init__(self, store: MetricStore, groups: Sequence[RuleGroup] | None = None, version: int = 3) -> None:
        self._store = store
        self._engine = Engine(store, version=version)
        chosen = packaged_groups() if groups is None else groups
        self.groups = [
            GroupState(group, [RuleState(rule, Recording(store, rule.name)) for rule in group.rules])
            for group in chosen
        ]
        self._next = 0
        """When the next instant of a group is due, in milliseconds."""
        self.recorded_names = frozenset(
            {"ALERTS", "ALERTS_FOR_STATE"}
            | {rule.name for group in chosen for rule in group.rules if not rule.alerting}
        )

    def catch_up(self, now: float) -> None:
        """Evaluate every instant up to now that has not been evaluated yet."""
        if milliseconds(now) < self._next:
            return
        begin = self._store.first
        if begin is None:
            return
        since = max(milliseconds(begin), milliseconds(now - self._store.retention))
        until = milliseconds(now)
        for state in self.groups:
            due = state.pending_instants(since, until)
            if due is None:
                continue
            first, last = due
            interval = state.group.interval
            for start in range(first, last + 1, _STEPS_AT_ONCE * interval):
                end = min(last, start + (_STEPS_AT_ONCE - 1) * interval)
                for rule in state.rules:
                    self._evaluate(rule, start, end, interval)
            state.evaluated = last
        self._next = min((_following(state) for state in self.groups), default=0)

    def _evaluate(self, state: RuleState, start: int, end: int, interval: int) -> None:
        times = steps(start, end, interval)
        try:
            vector = self._engine.range(state.rule.expression, start, end, interval)
            if state.rule.alerting:
                _advance(state, vector, times)
            else:
                labels = {name: template.source for name, template in state.rule.labels.items()}
                state.recording.write(vector, times, labels)
            state.error = ""
        except QueryError as error:
            state.error = str(error)

    def active(self, now: float) -> Iterator[tuple[Rule, Alert]]:
        """Yield pending and firing alerts."""
        self.catch_up(now)
        for group in self.groups:
            for state in group.rules:
                for alert in state.alerts.values():
                    if alert.state != "inactive":
                        yield state.rule, alert

    def alerts_json(self, now: float) -> list[dict[str, Any]]:
        return [alert.json() for _, alert in self.active(now)]

    def groups_json(self, now: float, kind: str = "") -> list[dict[str, Any]]:
        self.catch_up(now)
        return [_group_json(group, kind) for group in self.groups]


def _following(state: GroupState) -> int:
    """Return the instant after the last one evaluated."""
    return 0 if state.evaluated is None else state.evaluated + state.group.interval


def _advance(state: RuleState, vector: Vector, times: Integers) -> None:
    """Advance the alerts of a rule through the instants, with the results of its expression."""
    rule = state.rule
    values = vector.values
    labels_by_row: dict[int, Labels] = {}
    by_step: list[list[int]] = [[] for _ in range(len(times))]
    for row, where in enumerate(vector.present):
        for step in where.nonzero()[0].tolist():
            by_step[step].append(row)
    templated = any(template.uses_value for template in rule.labels.values())
    for step, at in enumerate(times.tolist()):
        elements: dict[Labels, tuple[int, float]] = {}
        for row in by_step[step]:
            value = float(values[row, step])
            labels = labels_by_row.get(row)
            if labels is None or templated:
                labels = labels_by_row[row] = _alert_labels(rule, vector.series[row], value)
            if labels in elements:
                raise QueryError(SAME_LABELS)
            elements[labels] = (row, value)
        if not elements and not state.alerts:
            continue
        for labels, (row, value) in elements.items():
            alert = state.alerts.get(labels)
            if alert is None or alert.state == "inactive":
                alert = state.alerts[labels] = Alert(rule, labels, nameless(vector.series[row]), at)
            alert.value = value
            alert.keep_firing_since = None
        for labels, alert in list(state.alerts.items()):
            _advance_alert(state, labels, alert, at, labels in elements)


def _advance_alert(state: RuleState, labels: Labels, alert: Alert, at: int, present: bool) -> None:
    """Advance one alert by one instant; `present` says whether the expression gave its element."""
    rule = state.rule
    if not present and alert.state == "firing" and rule.keep_firing:
        if alert.keep_firing_since is None:
            alert.keep_firing_since = at
        present = at - alert.keep_firing_since < rule.keep_firing
    if not present:
        if alert.state != "inactive":
            alert.record(state.recording.store).end(at)
        if alert.state == "pending" or (alert.resolved is not None and at - alert.resolved > _RESOLVED_RETENTION):
            del state.alerts[labels]
        elif alert.state == "firing":
            alert.state, alert.resolved = "inactive", at
        return
    if alert.state == "pending" and at - alert.active >= rule.hold:
        alert.state, alert.fired = "firing", at
    alert.record(state.recording.store).write(at, alert.state, alert.active)


def _alert_labels(rule: Rule, series: Labels, value: float) -> Labels:
    series_labels = dict(nameless(series))
    extra = {name: template.render(series_labels, value) for name, template in rule.labels.items()}
    return labels_of({**series_labels, **extra, "alertname": rule.name})


def _group_json(state: GroupState, kind: str) -> dict[str, Any]:
    evaluated = "0001-01-01T00:00:00Z" if state.evaluated is None else format_micro_time(state.evaluated / 1000)
    kinds = {"": (True, False), "alert": (True,), "record": (False,)}[kind]
    return {
        "name": state.group.name,
        "file": state.group.file,
        "interval": state.group.interval / 1000,
        "limit": 0,
        "evaluationTime": 0,
        "lastEvaluation": evaluated,
        "rules": [_rule_json(rule, evaluated) for rule in state.rules if rule.rule.alerting in kinds],
    }


def _rule_json(state: RuleState, evaluated: str) -> dict[str, Any]:
    rule = state.rule
    document: dict[str, Any] = {
        "name": rule.name,
        "query": rule.text,
        "health": "err" if state.error else "unknown" if evaluated.startswith("0001") else "ok",
        "evaluationTime": 0,
        "lastEvaluation": evaluated,
        "type": "alerting" if rule.alerting else "recording",
    }
    if rule.labels or rule.alerting:
        document["labels"] = {name: template.source for name, template in rule.labels.items()}
    if state.error:
        document["lastError"] = state.error
    if rule.alerting:
        active = [alert for alert in state.alerts.values() if alert.state != "inactive"]
        document |= {
            "state": _worst(alert.state for alert in active),
            "duration": rule.hold / 1000,
            "keepFiringFor": rule.keep_firing / 1000,
            "annotations": {name: template.source for name, template in rule.annotations.items()},
            "alerts": [alert.json() for alert in active],
        }
    return document


def _worst(states: Iterable[str]) -> str:
    found = set(states)
    return "firing" if "firing" in found else "pending" if "pending" in found else "inactive"
