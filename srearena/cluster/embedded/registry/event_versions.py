"""Events between the core version they are kept in and events.k8s.io/v1, which names the same things anew."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj

# (core, events.k8s.io): the same field under two names.
_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_TO_NEW = dict(_RENAMED)
_TO_CORE = {new: core for core, new in _RENAMED}
# What each version writes even when there is nothing in it.
_CORE_ALWAYS: dict[str, Any] = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_NEW_ALWAYS: dict[str, Any] = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}
_NEW_OMITS_EMPTY = ("reportingController", "reportingInstance")


def to_core(event: Obj) -> Obj:
    """An events.k8s.io/v1 event as it is kept."""
    renamed = {_TO_CORE.get(key, key): value for key, value in event.items()}
    return {**_absent(_CORE_ALWAYS, renamed), **renamed, "apiVersion": "v1"}


def from_core(event: Obj) -> Obj:
    """A kept event as events.k8s.io/v1 shows it."""
    renamed = {_TO_NEW.get(key, key): value for key, value in event.items()}
    for key in _NEW_OMITS_EMPTY:
        if not renamed.get(key):
            renamed.pop(key, None)
    return {**_absent(_NEW_ALWAYS, renamed), **renamed, "apiVersion": "events.k8s.io/v1"}


def _absent(always: dict[str, Any], present: Obj) -> Obj:
    return {key: ({} if value == {} else value) for key, value in always.items() if key not in present}
