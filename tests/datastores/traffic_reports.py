"""Reports of bulk traffic, as the traffic engine gives them to stores."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.programs.datastores.datastore import BulkStatements


def slow_statements(client: str, **facts: Any) -> BulkStatements:
    """Ten statements of two seconds since the last report, three of them running."""
    known = {"operation": "select", "database": "", "target": "", "text": "", "calls": 10.0, "mean_seconds": 2.0}
    known |= {"running": 3.0, "share_above": lambda seconds: float(seconds < 2.0)}
    return BulkStatements(client, **{**known, **facts})
