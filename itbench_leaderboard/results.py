"""Aggregate verdicts on disk into `results/`: one file per agent, and the ranking. No agent or judge is called.

Every planned run counts: one that failed or timed out is a zero; one with an environment error, or that has not been
run yet, is listed as such. The statistics are those of `itbench_evaluations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from itbench_evaluations import estimates
from itbench_evaluations.criteria import METRICS
from itbench_evaluations.results import metric_statistics, overall_statistics
from itbench_leaderboard.config import AgentTable
from itbench_leaderboard.files import read_json, write_json
from itbench_leaderboard.incidents import Incident
from itbench_leaderboard.judging import SCORE
from itbench_leaderboard.outcomes import Outcome
from itbench_leaderboard.rankings import ranked
from itbench_leaderboard.runner import run_of

AGENT_SCHEMA = "leaderboard-agent-v1"
LEADERBOARD_SCHEMA = "leaderboard-v1"
_FIGURES = ("duration_seconds", "inference_count", "input_tokens", "output_tokens", "cost_usd")
_ORDER = (SCORE, "resolved", *METRICS, "localization", "analysis", "diagnosis", "mitigation")


def _row(root: Path, agent: str, incident: Incident, number: int) -> dict[str, Any]:
    """One run in the results."""
    run = run_of(root, agent, incident.name, number)
    document = read_json(run.verdict)
    if not isinstance(document, dict):
        state = run.state()
        return {"run": number, "outcome": state["outcome"] or "not_run", "scores": {}, "error": "not judged yet"}
    metadata = document["metadata"]
    return {
        "run": number,
        "outcome": metadata["outcome"],
        "scores": document["flat_scores"],
        "error": metadata.get("error"),
        "justification": document["eval_result"]["justification"],
        **{name: metadata.get(name) for name in _FIGURES},
    }


def _counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    outcomes: dict[str, int] = {}
    for row in rows:
        outcomes[row["outcome"]] = outcomes.get(row["outcome"], 0) + 1
    return {
        "planned": len(rows),
        "graded": sum(bool(row["scores"]) for row in rows),
        "outcomes": dict(sorted(outcomes.items())),
        "excluded": outcomes.get(str(Outcome.ENVIRONMENT_ERROR), 0),
        "missing": sum(not row["scores"] and row["outcome"] != Outcome.ENVIRONMENT_ERROR for row in rows),
    }


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and total of each figure, over the runs that report it."""
    figures: dict[str, Any] = {}
    for name in _FIGURES:
        values = [float(row[name]) for row in rows if row.get(name) is not None]
        figures[name] = {"mean": estimates.mean(values), "total": sum(values), "n": len(values)} if values else None
    return figures


def agent_document(
    root: Path, name: str, table: AgentTable, incidents: Sequence[Incident], runs: int, k: int
) -> dict[str, Any]:
    rows = {one.name: [_row(root, name, one, number) for number in range(1, runs + 1)] for one in incidents}
    everything = [row for group in rows.values() for row in group]
    scored = {metric for row in everything for metric in row["scores"]}
    metrics = [metric for metric in _ORDER if metric in scored]
    per_incident = {
        incident: {
            metric: metric_statistics(
                [row["scores"][metric] for row in group if metric in row["scores"]], k, estimates.RESAMPLES
            )
            for metric in metrics
        }
        for incident, group in rows.items()
    }
    return {
        "schema_version": AGENT_SCHEMA,
        "agent": {
            "name": name,
            "kind": table.kind,
            "model": table.model,
            "provider": table.provider,
            "prompt": table.prompt or Path(table.prompt_file).stem if table.kind == "cli" else table.prompt,
            "commit": table.commit or "",
            "cli": table.cli if table.kind == "cli" else "",
        },
        "metrics": metrics,
        "scenarios": {
            incident: {"runs": group, "statistics": per_incident[incident], **_counts(group)}
            for incident, group in rows.items()
        },
        "summary": {
            **_counts(everything),
            "figures": _figures(everything),
            "statistics": {metric: overall_statistics(metric, per_incident, estimates.RESAMPLES) for metric in metrics},
        },
    }


def aggregate(
    root: Path,
    agents: Mapping[str, AgentTable],
    incidents: Sequence[Incident],
    *,
    runs: int,
    k: int,
    metric: str = SCORE,
) -> dict[str, Any]:
    """Write `results/` and return the leaderboard's document."""
    directory = root / "results"
    documents = {name: agent_document(root, name, table, incidents, runs, k) for name, table in agents.items()}
    for name, document in documents.items():
        write_json(directory / f"{name}.json", document)
    leaderboard = {
        "schema_version": LEADERBOARD_SCHEMA,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "ranking_metric": metric,
        "runs_per_scenario": runs,
        "k": k,
        "metrics": [name for name in _ORDER if any(name in document["metrics"] for document in documents.values())],
        "incidents": {one.name: one.public_document() for one in incidents},
        "rankings": ranked(documents, metric),
    }
    write_json(directory / "leaderboard.json", leaderboard)
    names = [f"{name}.json" for name in documents]
    write_json(directory / "manifest.json", {"files": names, "updated": leaderboard["generated_at"]})
    return leaderboard


def lines(leaderboard: Mapping[str, Any]) -> Iterator[str]:
    """The ranking as lines for a terminal."""
    yield f"{'':>3} {'AGENT':<40} {leaderboard['ranking_metric']:>8} {'95 %':>15} {'RUNS':>9} {'USD':>9}"
    for row in leaderboard["rankings"]:
        low, high = row["ci95"] or (None, None)
        interval = "" if low is None else f"{low:.3f} to {high:.3f}"
        score = "-" if row["score"] is None else f"{row['score']:.3f}"
        cost = "-" if row["cost_usd"] is None else f"{row['cost_usd']:.2f}"
        noise = "  within noise of the next" if (row["against_next"] or {}).get("within_noise") else ""
        runs = f"{row['graded']}/{row['planned']}"
        yield f"{row['rank']:>3} {row['agent'][:40]:<40} {score:>8} {interval:>15} {runs:>9} {cost:>9}{noise}"
