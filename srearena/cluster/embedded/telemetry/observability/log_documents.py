"""Log lines as the documents that the Collector's OpenSearch exporter writes (the mapping `ss4o`).

What a line says about itself (severity, trace, span) is read from its text, as the programs of the shop print it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.telemetry.logs.store import LogStream, entries, nanos

Document = dict[str, Any]

_TRACE = re.compile(r"trace_id[=:]\s*\"?([0-9a-f]{32})")
_SPAN = re.compile(r"span_id[=:]\s*\"?([0-9a-f]{16})")
_SEVERITY = re.compile(r"\b(trace|debug|info|warn|warning|error|fail|fatal|crit|critical)\b", re.IGNORECASE)
_NUMBERS = {"TRACE": 1, "DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}
_ALIASES = {"WARNING": "WARN", "FAIL": "ERROR", "CRIT": "FATAL", "CRITICAL": "FATAL"}


def severity_of(text: str) -> tuple[str, int]:
    """The level that a line begins with, and OpenTelemetry's number for it; ("", 0) without one."""
    found = _SEVERITY.search(text[:80])
    if found is None:
        return "", 0
    word = found[1].upper()
    level = _ALIASES.get(word, word)
    return level, _NUMBERS[level]


def documents(stream: LogStream, since: float, until: float) -> Iterator[tuple[str, Document]]:
    """The lines of a stream within a window, each with an identifier that stays the same."""
    labels = stream.labels
    resource = {
        "service.name": labels.get("app", ""),
        "service.namespace": "opentelemetry-demo",
        "k8s.namespace.name": labels.get("namespace", ""),
        "k8s.node.name": labels.get("node_name", ""),
        "k8s.pod.name": labels.get("pod", ""),
    }
    prefix = crc32(labels.get("filename", "").encode())
    for moment, line in entries(stream, nanos(since), nanos(until)):
        text = line.decode(errors="replace")
        level, number = severity_of(text)
        trace, span = _TRACE.search(text), _SPAN.search(text)
        time = format_micro_time(moment / 1e9)
        yield (
            f"{prefix:08x}{moment:x}",
            {
                "@timestamp": time,
                "attributes": {"data_stream": {"dataset": "default", "namespace": "namespace", "type": "record"}},
                "body": text,
                "instrumentationScope": {},
                "observedTimestamp": time,
                "resource": resource,
                "severity": {"number": number, "text": level},
                "spanId": span[1] if span else "",
                "traceId": trace[1] if trace else "",
            },
        )
