"""Lines of logs, as a signal beside metrics and traces."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from srearena.cluster.embedded.traffic.counters import SpanKey
from srearena.cluster.embedded.traffic.engine import Traffic
from srearena.cluster.embedded.traffic.log_volume import MAX_PER_SECOND
from tests.apps.signals import ServiceSpan, Signal, server_span

_ADDRESS = re.compile(rb"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_WORD = re.compile(r"\\\{\w+\\\}")


@dataclass
class _Lines:
    """Texts of one program, and the spans of the requests that give rise to them."""

    service: str
    texts: set[str]
    shares: dict[ServiceSpan, set[tuple[float, float]]]
    """By span: the lines of a request that is served, and of one that fails."""


def assert_log_lines_agree(traffic: Traffic, metrics: dict[SpanKey, Signal], since: float, seconds: float) -> None:
    """Logs have a line for each request that metrics count, within the error of counts."""
    counted = {(key.service, key.span): signal for key, signal in metrics.items() if key.kind == "server"}
    for group in _groups(traffic):
        if any(len(shares) > 1 for shares in group.shares.values()):
            continue  # a span's name stands for operations that log differently
        requests = [_expected(counted[span], *share) for span, (share,) in group.shares.items() if span in counted]
        lines = sum(requests)
        found = sum(_lines(traffic, group.service, text, since) for text in group.texts)
        allowed = 4 * math.sqrt(lines) + 0.05 * lines + 6
        assert found <= lines + allowed, group
        if any("{trace_id}" in text for text in group.texts):
            continue  # only requests with a trace leave such lines
        # Beyond the limit of lines there are fewer, of each operation.
        least = sum(min(number, 0.7 * MAX_PER_SECOND * seconds) for number in requests)
        assert found >= least - allowed, group


def _expected(counted: Signal, if_served: float, if_failed: float) -> float:
    return (counted.count - counted.errors) * if_served + counted.errors * if_failed


def _groups(traffic: Traffic) -> list[_Lines]:
    """Texts together where requests with one name of a span give rise to them."""
    assert traffic.fluid is not None
    groups: list[_Lines] = []
    for node in traffic.fluid.graph.nodes:
        span, operation = server_span(node), node.operation
        if span is None or operation is None:
            continue
        failed = operation.failure_log or operation.log
        texts = {operation.log, failed} - {""}
        share = (operation.log_share if operation.log else 0.0, 1.0 if failed else 0.0)
        group = _Lines(node.server.name, texts, {span: {share}})
        for other in [one for one in groups if one.service == group.service]:
            if other.texts & group.texts or other.shares.keys() & group.shares.keys():
                groups.remove(other)
                group.texts |= other.texts
                for name, shares in other.shares.items():
                    group.shares.setdefault(name, set()).update(shares)
        groups.append(group)
    return [group for group in groups if group.texts]


def assert_addresses_exist(traffic: Traffic, since: float) -> None:
    """Clients that lines of logs name are pods, or the program's own loopback interface."""
    known = {host.encode() for host in traffic.network.fabric.hosts.by_address} | {b"127.0.0.1", b"0.0.0.0"}
    for instance in traffic.instances.values():
        for line in instance.container.log.lines():
            if line.time > since:
                assert known.issuperset(_ADDRESS.findall(line.text)), line.text


def _lines(traffic: Traffic, service: str, text: str, since: float) -> int:
    longest = max(text.split("\n"), key=len)
    number = 0
    for instance in traffic.instances.values():
        if instance.name == service:
            filled = re.escape(instance.settings.fill(longest))
            pattern = re.compile(_WORD.sub(lambda _: ".*", filled).encode())
            lines = instance.container.log.lines()
            number += sum(line.time > since and pattern.fullmatch(line.text) is not None for line in lines)
    return number
