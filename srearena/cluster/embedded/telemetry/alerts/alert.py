"""One alert: an element of a rule's result, its state, and the series that record it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.telemetry.alerts.rule_files import Rule
from srearena.cluster.embedded.telemetry.metrics.blocks import Block
from srearena.cluster.embedded.telemetry.metrics.labels import Labels
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

State = Literal["inactive", "pending", "firing"]


class AlertRecord:
    """The series ALERTS and ALERTS_FOR_STATE of one alert, while it is active."""

    def __init__(self, store: MetricStore, labels: Labels) -> None:
        alert_labels = dict(labels)
        self._block: Block = store.block(
            [
                {**alert_labels, "__name__": "ALERTS", "alertstate": "pending"},
                {**alert_labels, "__name__": "ALERTS", "alertstate": "firing"},
                {**alert_labels, "__name__": "ALERTS_FOR_STATE"},
            ]
        )

    def write(self, at: int, state: State, active: int) -> None:
        pending = 1.0 if state == "pending" else math.nan
        firing = 1.0 if state == "firing" else math.nan
        self._block.append(at / 1000, (pending, firing, active // 1000))

    def end(self, at: int) -> None:
        self._block.end(at / 1000)


@dataclass(slots=True, eq=False)
class Alert:
    rule: Rule
    labels: Labels
    series: Labels
    """The labels of the element itself, for templates."""
    active: int
    """Time since which the expression has been true, in milliseconds."""
    state: State = "pending"
    value: float = 0.0
    fired: int | None = None
    resolved: int | None = None
    keep_firing_since: int | None = None
    _record: AlertRecord | None = field(default=None, repr=False)

    def record(self, store: MetricStore) -> AlertRecord:
        if self._record is None:
            self._record = AlertRecord(store, self.labels)
        return self._record

    @property
    def annotations(self) -> dict[str, str]:
        labels = dict(self.series)
        return {name: template.render(labels, self.value) for name, template in self.rule.annotations.items()}

    def json(self) -> dict[str, Any]:
        return {
            "labels": dict(self.labels),
            "annotations": self.annotations,
            "state": self.state,
            "activeAt": format_micro_time(self.active / 1000),
            "value": _exponential(self.value),
        }


def _exponential(value: float) -> str:
    """Go's 'e' format with the shortest digits: 1e+00."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    digits = next(
        f"{value:.{places}e}" for places in range(18) if float(f"{value:.{places}e}") == value or places == 17
    )
    mantissa, _, exponent = digits.partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:]:0>2}"
