"""Metrics that no alert is about, in one query: connections, processor time and lost packets of pods, full tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

_POD = "sum by (namespace, pod, node)"
_PARTS = {  # over a quarter of an hour where a node that is cut off answers no more
    "sockets": f"topk(5, {_POD} (max_over_time(container_sockets[15m])))",
    "cpu": f'topk(5, {_POD} (rate(container_cpu_usage_seconds_total{{container!=""}}[2m])))',
    "dropped": (
        f"topk(5, {_POD} (rate(container_network_receive_packets_dropped_total[2m])"
        " + rate(container_network_transmit_packets_dropped_total[2m])) > 0.2)"
    ),
    "connections": (
        "max_over_time(node_nf_conntrack_entries[15m]) / max_over_time(node_nf_conntrack_entries_limit[15m]) > 0.9"
    ),
    "busy": '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m])) > 0.9',
}
QUERY = " or ".join(f'label_replace({query}, "signal", "{name}", "", "")' for name, query in _PARTS.items())
_SERIES = re.compile(r"^\w*\{(.*)\} (\S+)$")


@dataclass(frozen=True, slots=True)
class Signal:
    """A value that stands out."""

    name: str
    pod: str
    node: str
    value: float


def parse(text: str) -> list[Signal]:
    """The series of the answer to `QUERY`."""
    found = []
    for line in text.splitlines():
        match = _SERIES.match(line)
        if match is None:
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', match[1]))
        node = labels.get("node") or labels.get("instance") or ""
        try:
            found.append(Signal(labels.get("signal", ""), labels.get("pod", ""), node, float(match[2])))
        except ValueError:
            continue
    return found
