"""The ranking of agents, with significance tests.

Agents are ordered by their mean over incidents. Each has paired tests against the next and the first one: same
incidents, difference, interval, sign-flip permutation, McNemar. Agents with equal means share a rank. Below the first
`TESTED` ranks there are no tests, only intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from itbench_evaluations.comparison import compare
from itbench_evaluations.errors import InputError

TESTED = 30  # chosen: bounds the time of a large table


def _trials(document: Mapping[str, Any], metric: str) -> dict[tuple[str, str], float]:
    return {
        (incident, str(row["run"])): row["scores"][metric]
        for incident, scenario in document["scenarios"].items()
        for row in scenario["runs"]
        if row["scores"].get(metric) is not None
    }


def _test(metric: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        comparison = compare(metric, _trials(first, metric), _trials(second, metric)).as_dict()
    except InputError:
        return None  # no incident in common
    return {"agent": second["agent"]["name"], **comparison}


def _mean(document: Mapping[str, Any], metric: str) -> float | None:
    value = document["summary"]["statistics"].get(metric, {}).get("mean")
    return None if value is None else float(value)


def ranked(documents: Mapping[str, Mapping[str, Any]], metric: str) -> list[dict[str, Any]]:
    """Rows of the ranking, best first."""

    def order_key(name: str) -> tuple[bool, float, str]:
        mean = _mean(documents[name], metric)
        return mean is None, -(mean or 0.0), name

    order = sorted(documents, key=order_key)
    rows: list[dict[str, Any]] = []
    for index, name in enumerate(order):
        document = documents[name]
        summary = document["summary"]
        statistics = summary["statistics"].get(metric, {})
        mean = statistics.get("mean")
        same = bool(rows) and mean is not None and rows[-1]["score"] == mean
        figures = summary["figures"]
        tested = index < TESTED
        following = documents[order[index + 1]] if index + 1 < len(order) else None
        rows.append(
            {
                "rank": rows[-1]["rank"] if same else index + 1,
                **{("agent" if key == "name" else key): value for key, value in document["agent"].items()},
                "score": mean,
                "ci95": statistics.get("ci95"),
                "stderr": statistics.get("stderr"),
                **{chance: statistics.get(chance) for chance in ("pass@1", "pass@k", "pass^k", "majority@k")},
                **{key: summary[key] for key in ("planned", "graded", "excluded", "missing", "outcomes")},
                "cost_usd": (figures["cost_usd"] or {}).get("total"),
                "mean_cost_usd": (figures["cost_usd"] or {}).get("mean"),
                "mean_seconds": (figures["duration_seconds"] or {}).get("mean"),
                "mean_turns": (figures["inference_count"] or {}).get("mean"),
                "metrics": {
                    each: {"mean": row["mean"], "ci95": row.get("ci95"), "n": row["n"]}
                    for each, row in summary["statistics"].items()
                },
                "against_next": _test(metric, document, following) if tested and following else None,
                "against_first": _test(metric, document, documents[order[0]]) if tested and index else None,
            }
        )
    return rows
