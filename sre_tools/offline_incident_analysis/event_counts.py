"""How often Kubernetes events happened. A recording has an event each time its count rose: its last count is right.

Events of one object and reason differ in their UID, or in their message where a table has no UIDs."""

from __future__ import annotations

_LARGEST = 2**53  # that every reader of JSON can represent
EVENT_KEY = "coalesce(uid, concat_ws('|', component, message)), first_time"

EVENTS = f"""
SELECT type, reason, kind, namespace, name, max(count) AS count, min(coalesce(first_time, time)) AS first,
  max(time) AS last, arg_min(message, time) AS first_message, arg_max(message, time) AS message
FROM events GROUP BY type, reason, kind, namespace, name, {EVENT_KEY}
"""
"""One row per event, however often it was recorded."""


def integer_sum(column: str) -> str:
    """The sum of a column of counts as an integer; a recording may contain any number."""
    return f"CAST(least(sum({column}), {_LARGEST}) AS BIGINT)"
