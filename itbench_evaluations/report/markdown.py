"""The result as Markdown: tables, and the graphs as Mermaid, for a pull request or a wiki."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from itbench_evaluations.criteria import HEADLINE
from itbench_evaluations.report import drawing
from itbench_evaluations.report.text import as_markdown, percent

MAX_TRIALS = 300


def _interval(row: Mapping[str, Any]) -> str:
    ci = row.get("ci95")
    return f"{percent(ci[0])} to {percent(ci[1])}" if ci else "–"


def _trial(row: Mapping[str, Any], truth: Mapping[str, Any]) -> list[str]:
    details = row["details"]
    found = [p["entity"] for p in details["predicted_entities"] if p["matches_gt"]]
    lines = [f"### Incident {as_markdown(row['incident_id'])}, trial {as_markdown(row['trial_id'])}", ""]
    if row.get("error"):
        lines += [f"Not readable, graded 0: {as_markdown(row['error'])}", ""]
    for title, items in (
        ("Found", found),
        ("Missed", details["missed"]),
        ("Wrongly blamed", details["wrongly_blamed"]),
    ):
        lines.append(f"- {title}: {', '.join(as_markdown(item) for item in items) or 'nothing'}")
    for note in [*row.get("repairs", []), *row.get("notes", [])]:
        lines.append(f"- Note: {as_markdown(note)}")
    lines += ["", f"{HEADLINE}: {percent(row['flat_scores'].get(HEADLINE))} %", ""]
    for title, graph in (("Truth", truth), ("Prediction", details["predicted_graph"])):
        if graph["nodes"]:
            lines += [f"{title}:", "", "```mermaid", *drawing.mermaid(graph, truth), "```", ""]
    return lines


def render(document: Mapping[str, Any]) -> str:
    """The whole report."""
    config, statistics = document["config"], document["statistics"]
    overall, k = statistics["overall"], config["k"]
    lines = [
        "# Evaluation",
        "",
        f"{overall['total_trials']} trials of {overall['total_incidents']} incidents, policy {config['policy']}, "
        f"reasoning by {config['reasoning_source']}. Bad runs: {overall['total_bad_runs']} (graded 0). "
        f"Judge errors: {overall['total_judge_errors']}.",
        "",
        *(f"- Warning: {as_markdown(warning)}" for warning in document.get("warnings", [])),
        "",
        f"| metric | mean % | 95 % interval | pass@1 % | pass@{k} % | pass^{k} % | majority@{k} % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for metric, row in overall.items():
        if isinstance(row, Mapping):
            chances = [percent(row.get(name)) for name in ("pass@1", "pass@k", "pass^k", "majority@k")]
            lines.append(f"| `{metric}` | {percent(row['mean'])} | {_interval(row)} | {' | '.join(chances)} |")
    lines += [
        "",
        f"| incident | {HEADLINE} % | 95 % interval | trials | bad runs |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for incident, row in statistics["per_incident"].items():
        headline = row.get(HEADLINE, {"mean": None})
        lines.append(
            f"| {as_markdown(incident)} | {percent(headline['mean'])} | {_interval(headline)} | {row['n_trials']} | "
            f"{row['bad_runs']} |"
        )
    lines.append("")
    rows = document["raw_results"]
    if len(rows) > MAX_TRIALS:
        lines += [f"Only the first {MAX_TRIALS} of {len(rows)} trials are shown; the JSON result has them all.", ""]
    for row in rows[:MAX_TRIALS]:
        lines += _trial(row, document["incidents"][row["incident_id"]]["gt_graph"])
    return "\n".join(lines) + "\n"
