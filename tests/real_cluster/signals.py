"""Golden signals, alerts and moments of an incident.

Of each service the requests it answered are compared with those before the fault. What is compared between clusters is
the direction and the order of size of a change, not the value: the clusters run on different machines.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from statistics import median

import yaml

from srearena.cluster import alert_rules
from srearena.conductor.actions.telemetry import Telemetry
from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes
from tests.real_cluster.spans import Span, spans

WINDOW = 45.0
"""Seconds before the fault, and before the fingerprint, that are compared."""
STEP = 15.0
"""Between two evaluations of the alert rules."""
_ENOUGH = 10
"""Requests of a service before the fault, for a comparison."""
_CHANGED = 3.0
"""A factor that is a change: medians of a shared machine vary by less."""
_FAILING, _HEALTHY = 0.1, 0.02
"""Shares of failed requests."""

Signals = dict[str, dict[str, list[float]]]
"""By service: requests a second, the median of their durations in ms, the share that failed; before, with the fault."""

_SUBJECTS = ("deployment", "statefulset", "daemonset", "job_name", "service", "pod")
_DRAWN = re.compile(r"(-[0-9a-f]{6,10})?-[a-z0-9]{5}$")


def take_signals(app: Application, api: Kubernetes, injected: float, now: float) -> Signals:
    """The golden signals of every service that takes part in users' requests."""
    if app.frontend is None:
        return {}
    windows = ((injected - WINDOW, injected), (now - WINDOW, now))
    halves = [_by_service(spans(app, api, app.frontend.service, *window), *window) for window in windows]
    found: Signals = {}
    for service in sorted(halves[0]):
        before, after = (half.get(service, ()) for half in halves)
        found[service] = {
            "traffic": [_short(len(some) / WINDOW) for some in (before, after)],
            "latency": [_short(median(span.duration for span in some)) if some else 0.0 for some in (before, after)],
            "errors": [
                _short(sum(span.failed for span in some) / len(some)) if some else 0.0 for some in (before, after)
            ],
        }
    return found


def words(signals: Signals) -> list[str]:
    """What has changed, in words: less traffic, slower or faster (and by which power of ten), errors."""
    found = []
    for service in measured(signals):
        measures = signals[service]
        (rate, rate_after), (time, time_after) = measures["traffic"], measures["latency"]
        if rate_after * _CHANGED < rate:
            found.append(f"{service}: {'less' if rate_after else 'no'} traffic")
        elif rate_after > rate * _CHANGED:
            found.append(f"{service}: more traffic")
        if time and time_after and abs(math.log10(time_after / time)) > math.log10(_CHANGED):
            power = max(1, round(abs(math.log10(time_after / time))))
            found.append(f"{service}: {'slower' if time_after > time else 'faster'}, {10**power} times")
        if measures["errors"][1] > _FAILING and measures["errors"][0] < _HEALTHY:
            found.append(f"{service}: errors")
    return sorted(found)


def measured(signals: Signals) -> set[str]:
    """The services that answered enough requests before the fault for a comparison."""
    return {service for service, measures in signals.items() if measures["traffic"][0] * WINDOW >= _ENOUGH}


def take_alerts(app: Application, telemetry: Telemetry, injected: float, now: float) -> tuple[list[str], float | None]:
    """Alerts about the application that came with the fault and lasted, and seconds until the first of them was active.

    Active is an alert whose expression holds; it fires when that has lasted as long as its rule says. Left out are
    alerts on span metrics, which a real cluster has none of: the application sends its spans to its own Jaeger; and
    those of the blackbox exporter.
    """
    before = set(_active(app, telemetry, injected - WINDOW, injected))
    lasting, first = set(), []
    for name, states in _active(app, telemetry, injected, now).items():
        moments = [moment for moments in states.values() for moment in moments]
        if name not in before and ("firing" in states or max(moments) > now - 2 * STEP):
            lasting.add(name)
            first.append(min(moments) - injected)
    return sorted(lasting), round(min(first), 1) if first else None


def _active(
    app: Application, telemetry: Telemetry, start: float, end: float
) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """By alert: when it was pending and when it was firing."""
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for labels, points in telemetry.series("ALERTS", start, end, STEP):
        if labels.get("namespace") in app.namespaces and labels["alertname"] not in _left_out():
            subject = next((labels[one] for one in _SUBJECTS if one in labels), "")
            if "pod" in labels and subject == labels["pod"]:
                subject = _DRAWN.sub("", subject)
            moments = found[f"{labels['alertname']} {subject}"].setdefault(labels["alertstate"], [])
            moments += [moment for moment, _ in points]
    return found


@cache
def _left_out() -> set[str]:
    """Alerts on what only the embedded cluster measures."""
    rules = [
        (name, rule)
        for name, text in alert_rules.rule_files().items()
        for group in yaml.safe_load(text)["groups"]
        for rule in group["rules"]
    ]
    return {rule["alert"] for name, rule in rules if name == "requests.yaml" or "probe_success" in rule["expr"]}


def first_moment(moments: Iterable[float], injected: float) -> float | None:
    """Seconds from the fault to the first of these moments that is not before it."""
    later = [moment - injected for moment in moments if moment >= injected]
    return round(min(later), 1) if later else None


def _by_service(found: Iterator[Span], start: float, end: float) -> Mapping[str, Sequence[Span]]:
    services: dict[str, list[Span]] = defaultdict(list)
    for span in found:
        if span.served and start <= span.start <= end:
            services[span.service].append(span)
    return services


def _short(value: float) -> float:
    return float(f"{value:.3g}")
