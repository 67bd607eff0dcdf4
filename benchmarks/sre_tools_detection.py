"""Change-point detection of the diagnostic tools: power over drawn counts, false alarms on healthy recordings.

    python -m benchmarks.sre_tools_detection                        draws only: a minute
    python -m benchmarks.sre_tools_detection --recordings healthy   also false alarms in the recordings of a directory

Record the healthy applications first: `srearena record --all 'noop_*' --out healthy --answers keys`. A false alarm is a
service, or an application as a whole, whose errors, latency or traffic are said to have changed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from sre_tools.offline_incident_analysis.change_points import binomial_changes, poisson_changes
from sre_tools.offline_incident_analysis.trace_onsets import extent, pivot, service_onsets
from srearena.snapshots import find_snapshots, open_snapshot

BUCKETS = 90
"""Ten seconds each: the fifteen minutes of a recording."""
ONSET = 30
"""Five of them are healthy."""
NEAR = 3
"""Buckets by which a found onset may differ from the true one."""


def power(spans: int, before: float, after: float, draws: int, seed: int = 1) -> dict[str, float]:
    """The share of draws in which a step of the error rate is found, and found near its place."""
    random = np.random.default_rng(seed)
    rates = np.where(np.arange(BUCKETS) < ONSET, before, after)
    found = near = 0
    for _ in range(draws):
        changes = binomial_changes(random.binomial(spans, rates).tolist(), [spans] * BUCKETS)
        found += bool(changes)
        near += bool(changes) and abs(changes[0].index - ONSET) <= NEAR
    return {"found_pct": 100 * found / draws, "near_pct": 100 * near / draws}


def false_alarms(draws: int, seed: int = 1) -> dict[str, float]:
    """The share of draws of a constant rate in which a change is found."""
    random = np.random.default_rng(seed)
    failing = [
        bool(binomial_changes(random.binomial(30, rate, BUCKETS).tolist(), [30] * BUCKETS))
        for rate in (0.001, 0.01, 0.1, 0.5)
        for _ in range(draws // 4)
    ]
    counted = [
        bool(poisson_changes(random.poisson(rate, BUCKETS).tolist())) for rate in (0.1, 30.0) for _ in range(draws // 4)
    ]
    # Failures that come in groups, as retries do: five at a time.
    grouped = [
        bool(binomial_changes(np.minimum(30, 5 * random.binomial(6, 0.02, BUCKETS)).tolist(), [30] * BUCKETS))
        for _ in range(draws // 4)
    ]
    shares = {"binomial": failing, "poisson": counted, "grouped": grouped}
    return {f"{name}_false_alarms_pct": 100 * sum(found) / len(found) for name, found in shares.items()}


def healthy(directory: Path, cache: Path | None = None) -> dict[str, Any]:
    """False alarms in the recordings of a directory: of applications as a whole and of their services."""
    alarms: dict[str, list[str]] = {}
    recordings = services = 0
    for path in find_snapshots(directory):
        with open_snapshot(path, cache=cache) as snapshot:
            recordings += 1
            services += len(extent(snapshot).services)
            found = [f"{name}: {onset.text}" for name, onsets in service_onsets(snapshot).items() for onset in onsets]
            onset = pivot(snapshot)
            if onset or found:
                alarms[path.name] = [*([onset[1]] if onset else []), *found]
    return {"recordings": recordings, "services": services, "recordings_with_alarms": len(alarms), "alarms": alarms}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--recordings", type=Path, help="a directory of healthy recordings")
    options = parser.parse_args()
    result: dict[str, Any] = {}
    for spans, before, after in ((30, 0.0, 0.05), (30, 0.0, 0.02), (10, 0.0, 0.05), (30, 0.05, 0.10), (30, 0.02, 0.2)):
        found = power(spans, before, after, options.draws)
        result[f"{100 * before:g} to {100 * after:g} % at {spans} spans"] = found
    result |= false_alarms(options.draws)
    if options.recordings:
        result["healthy"] = healthy(options.recordings)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
