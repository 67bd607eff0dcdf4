"""The overview of an incident: services and calls with their signals and deviations, from signals and topology."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from srearena.view.incidents.signals import (
    Key,
    Reading,
    Signals,
    add_series,
    error_reading,
    latency_reading,
    rate_reading,
    share,
)
from srearena.view.incidents.topology import SERVICE, Topology

_SHOWN_POINTS = 240
"""What the charts show at most: one hour of a running system."""


def graph(signals: Signals, topology: Topology) -> dict[str, Any]:
    """The nodes and edges of the service graph, and the instants of the nodes' series."""
    window = slice(max(signals.begin, len(signals.times) - _SHOWN_POINTS), None)
    edges = [*_measured_edges(signals, topology)]
    known = {(edge["from"], edge["to"]) for edge in edges}
    edges += _sampled_edges(signals, topology, known)
    nodes = [_service(signals, key, window) for key in sorted(signals.keys("requests"))]
    names = {node["name"] for node in nodes}
    for name in sorted({edge["to"] for edge in edges} | {edge["from"] for edge in edges}):
        if name not in names:
            nodes.append(_peer(name, topology, [edge for edge in edges if edge["to"] == name]))
    return {"times": signals.times[window], "services": nodes, "edges": edges}


def _service(signals: Signals, key: Key, window: slice) -> dict[str, Any]:
    rates, failures = signals.series("requests", key), signals.series("errors", key)
    shares = [share(failed, rate) if rate is not None else None for rate, failed in zip(rates, failures, strict=True)]
    rate = rate_reading(signals.now("requests", key), signals.usual("requests", key), signals.least_rate)
    errors = error_reading(_share_now(signals, "", key), _usual_shares(signals, "", key))
    latency = latency_reading(signals.now("latency", key), signals.usual("latency", key))
    namespace, name = key
    pods = [pod for pod in signals.keys("cpu") if pod[0] == namespace and belongs(pod[1], name)]
    series = {
        "requests": rates,
        "errors": shares,
        "latency": signals.series("latency", key),
        "cpu": add_series((signals.series("cpu", pod) for pod in pods), len(signals.times)),
        "memory": add_series((signals.series("memory", pod) for pod in pods), len(signals.times)),
    }
    return {
        "name": name,
        "namespace": namespace,
        "kind": SERVICE,
        **_readings(rate, errors, latency),
        "series": {measure: _rounded(values[window]) for measure, values in series.items()},
    }


def belongs(pod: str, service: str) -> bool:
    """Whether a pod's name is one that a workload of the service's name gives."""
    return re.fullmatch(re.escape(service) + r"(-[a-z0-9]{1,12}){0,2}", pod) is not None


def _peer(name: str, topology: Topology, incoming: list[dict[str, Any]]) -> dict[str, Any]:
    """A node without metrics of its own: it is as bad as the worst call to it."""
    level = max((edge["level"] for edge in incoming), default=0)
    kind = topology.kinds.get(name, SERVICE)
    return {"name": name, "namespace": "", "kind": kind, "level": level, "series": {}}


def _measured_edges(signals: Signals, topology: Topology) -> list[dict[str, Any]]:
    """Calls by the metrics of the callers' client spans; several operations of one pair are added."""
    pairs: defaultdict[tuple[str, str], list[Key]] = defaultdict(list)
    for key in signals.keys("sent"):
        callee = topology.callees.get((key[1], key[2]))
        if callee is not None:
            pairs[key[1], callee[0]].append(key)
    edges = []
    for (caller, callee_name), keys in sorted(pairs.items()):
        rates = [signals.now("sent", key) for key in keys]
        present = [rate for rate in rates if rate is not None]
        now = sum(present) if present else None
        failed = sum(signals.now("sent errors", key) or 0.0 for key in keys)
        usual_rates = _summed([signals.usual("sent", key) for key in keys])
        slowest = [value for key in keys if (value := signals.now("sent latency", key)) is not None]
        main = max(keys, key=lambda key: signals.now("sent", key) or 0.0)
        latency = latency_reading(
            max(slowest, default=None), max((signals.usual("sent latency", key) for key in keys), key=_middle)
        )
        errors = error_reading(share(failed, now), _usual_shares(signals, "sent ", main))
        readings = _readings(rate_reading(now, usual_rates, signals.least_rate), errors, latency)
        edges.append({"from": caller, "to": callee_name, "sampled": False, **readings})
    return edges


def _sampled_edges(signals: Signals, topology: Topology, known: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """Calls without client metrics: the callee's requests, divided by the callers in the sampled traces."""
    by_name = {key[1]: key for key in signals.keys("requests")}
    edges = []
    for caller, callee in sorted(topology.calls):
        if (caller, callee) in known or callee not in by_name:
            continue
        part = topology.share_of(caller, callee)
        now = signals.now("requests", by_name[callee])
        usual = [value * part for value in signals.usual("requests", by_name[callee])]
        rate = rate_reading(None if now is None else now * part, usual, signals.least_rate)
        edges.append(
            {"from": caller, "to": callee, "sampled": True, **_readings(rate, Reading(None, None), Reading(None, None))}
        )
    return edges


def _readings(rate: Reading, errors: Reading, latency: Reading) -> dict[str, Any]:
    named = {"requests": rate, "errors": errors, "latency": latency}
    return {
        **{
            name: {"now": _round(one.now), "usual": _round(one.usual), "level": one.level}
            for name, one in named.items()
        },
        "level": max(one.level for one in named.values()),
    }


def _share_now(signals: Signals, prefix: str, key: Key) -> float | None:
    measure = "sent" if prefix else "requests"
    rate = signals.now(measure, key)
    return share(signals.now(f"{prefix}errors", key), rate) if rate else None


def _usual_shares(signals: Signals, prefix: str, key: Key) -> list[float]:
    """The shares of errors in the baseline: of the mean rates, since the baseline keeps no order."""
    rates, failed = signals.usual("sent" if prefix else "requests", key), signals.usual(f"{prefix}errors", key)
    if not rates or not failed or sum(rates) <= 0:
        return [0.0]
    mean = sum(rates) / len(rates)
    return [min(1.0, value / mean) if mean else 0.0 for value in failed]


def _summed(usual: list[list[float]]) -> list[float]:
    """The usual rates of several operations together: quantile by quantile, where all have as many points."""
    length = min((len(values) for values in usual if values), default=0)
    return [sum(values[index * len(values) // length] for values in usual if values) for index in range(length)]


def _middle(values: list[float]) -> float:
    return values[len(values) // 2] if values else -1.0


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _rounded(values: list[float | None]) -> list[float | None]:
    return [_round(value) for value in values]
