"""Typed rows of each table. Times are aware and in UTC; `None` means that the recording has no value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Alert:
    observed_at: datetime | None
    alertname: str
    state: str
    severity: str | None
    namespace: str | None
    entity: str | None
    active_at: datetime | None
    value: float | None
    labels: dict[str, Any]
    annotations: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    time: datetime | None
    type: str | None
    reason: str | None
    message: str | None
    count: int
    kind: str | None
    namespace: str | None
    name: str | None
    component: str | None


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """An object from `first_seen` to `last_seen`, between which only status and bookkeeping fields changed."""

    first_seen: datetime | None
    last_seen: datetime | None
    observations: int
    kind: str
    namespace: str | None
    name: str
    uid: str | None
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogRecord:
    time: datetime | None
    service: str | None
    severity: str | None
    body: str | None
    trace_id: str | None
    namespace: str | None
    pod: str | None
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    time: datetime | None
    trace_id: str
    span_id: str
    parent_id: str | None
    name: str | None
    kind: str | None
    service: str | None
    duration_ns: int | None
    status: str | None
    status_message: str | None
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    object_kind: str
    object_name: str
    metric: str
    time: datetime | None
    value: float | None
    namespace: str | None
    labels: dict[str, Any]
