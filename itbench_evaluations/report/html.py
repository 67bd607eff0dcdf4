"""The result as one self-contained page: no scripts, no network, no styles but its own.

The content security policy in the page's head allows exactly the style sheet below, by its hash. All text of agents and
ground truths is escaped; in attributes it is used only as a quoted label.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from itbench_evaluations.criteria import HEADLINE
from itbench_evaluations.report import drawing
from itbench_evaluations.report.text import as_html, percent

MAX_TRIALS = 1000

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --good: #2a7d46; --bad: #b3372f; --root: #2a6fb0; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; } td, th { border-bottom: 1px solid var(--line);
padding: .25rem .5rem; text-align: left; vertical-align: top; } td.n, th.n { text-align: right;
font-variant-numeric: tabular-nums; }
code { overflow-wrap: anywhere; } .good { color: var(--good); } .bad { color: var(--bad); } .empty { opacity: .7; }
details { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; margin: .5rem 0; }
summary { cursor: pointer; } .two { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.two > div { overflow-x: auto; border: 1px solid var(--soft); border-radius: 6px; padding: .5rem; }
svg .edge { fill: none; stroke: currentColor; opacity: .5; } svg .tip { fill: currentColor; opacity: .5; }
svg rect { fill: none; stroke: currentColor; } svg text { font-size: 12px; fill: currentColor; }
svg .root rect { stroke: var(--root); stroke-width: 2.5; }
svg .unknown rect { stroke: var(--bad); stroke-dasharray: 4 3; }
@media (max-width: 50rem) { .two { grid-template-columns: 1fr; } }
"""

_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"


def _cell(value: float | None) -> str:
    return f'<td class="n">{percent(value)}</td>'


def _interval(row: Mapping[str, Any]) -> str:
    ci = row.get("ci95")
    return f'<td class="n">{percent(ci[0])} to {percent(ci[1])}</td>' if ci else '<td class="n">–</td>'


def _overall(statistics: Mapping[str, Any], k: int) -> str:
    rows = []
    for metric, row in statistics["overall"].items():
        if not isinstance(row, Mapping):
            continue
        left_out = f" ({row['excluded']} excluded)" if row.get("excluded") else ""
        rows.append(
            f"<tr><td><code>{as_html(metric)}</code>{left_out}</td>{_cell(row['mean'])}{_interval(row)}"
            f"{_cell(row.get('pass@1'))}{_cell(row.get('pass@k'))}{_cell(row.get('pass^k'))}{_cell(row.get('majority@k'))}</tr>"
        )
    head = "".join(
        f'<th class="n">{name}</th>'
        for name in ("mean %", "95 % interval", "pass@1 %", f"pass@{k} %", f"pass^{k} %", f"majority@{k} %")
    )
    return f"<table><tr><th>metric</th>{head}</tr>{''.join(rows)}</table>"


def _incidents(statistics: Mapping[str, Any]) -> str:
    rows = []
    for incident, row in statistics["per_incident"].items():
        headline = row.get(HEADLINE) or next((v for v in row.values() if isinstance(v, Mapping)), {"mean": None})
        rows.append(
            f"<tr><td>{as_html(incident)}</td>{_cell(headline['mean'])}{_interval(headline)}"
            f'<td class="n">{row["n_trials"]}</td><td class="n">{row["bad_runs"]}</td>'
            f'<td class="n">{row["judge_errors"]}</td></tr>'
        )
    names = (f"{HEADLINE} %", "95 % interval", "trials", "bad runs", "judge errors")
    head = "".join(f'<th class="n">{name}</th>' for name in names)
    return f"<table><tr><th>incident</th>{head}</tr>{''.join(rows)}</table>"


def _list(title: str, items: list[str], kind: str) -> str:
    body = "".join(f"<li><code>{as_html(item)}</code></li>" for item in items) or "<li class='empty'>nothing</li>"
    return f'<div><h3 class="{kind}">{title}</h3><ul>{body}</ul></div>'


def _trial(row: Mapping[str, Any], truth: Mapping[str, Any]) -> str:
    details = row["details"]
    found = [
        f"{p['entity']} → {p['matched_to']} ({p['matched_by']})"
        for p in details["predicted_entities"]
        if p["matches_gt"]
    ]
    headline = row["flat_scores"].get(HEADLINE)
    state = "bad run" if row["bad_run"] else f"F1 {percent(headline)} %"
    parts = [
        f"<details><summary>Incident {as_html(row['incident_id'])}, trial {as_html(row['trial_id'])}: {state}</summary>"
    ]
    if row.get("error"):
        parts.append(f'<p class="bad">Not readable, graded 0: {as_html(row["error"])}</p>')
    parts.append(
        '<div class="two">'
        + _list("Found", found, "good")
        + _list("Missed", list(details["missed"]), "bad")
        + _list("Wrongly blamed", list(details["wrongly_blamed"]), "bad")
        + _list("Repairs and notes", [*row.get("repairs", []), *row.get("notes", [])], "")
        + "</div>"
    )
    parts.append(
        f'<div class="two"><div><h3>Truth</h3>{drawing.svg(truth, truth, "truth")}</div>'
        f"<div><h3>Prediction</h3>{drawing.svg(details['predicted_graph'], truth, 'prediction')}</div></div>"
    )
    if details["reasoning"]:
        rows = "".join(
            f"<tr><td><code>{as_html(drawing.plain_name(item['component']))}</code><br>{as_html(item['role'])}</td>"
            f"<td>{as_html('; '.join(item['expected']))}</td><td>{as_html(item['given'])}</td>"
            f"{_cell(item['score'])}</tr>"
            for item in details["reasoning"]
        )
        parts.append(
            f"<h3>Reasoning (judged by {as_html(row['reasoning_source'])})</h3><table><tr><th>component</th>"
            f'<th>answer key</th><th>explanation</th><th class="n">%</th></tr>{rows}</table>'
        )
    scores = "".join(
        f"<tr><td><code>{as_html(name)}</code></td>{_cell(value)}</tr>" for name, value in row["flat_scores"].items()
    )
    parts.append(f"<details><summary>All scores</summary><table>{scores}</table></details></details>")
    return "".join(parts)


def render(document: Mapping[str, Any]) -> str:
    """The whole page."""
    config, statistics = document["config"], document["statistics"]
    overall = statistics["overall"]
    rows = document["raw_results"]
    warnings = "".join(f"<li>{as_html(warning)}</li>" for warning in document.get("warnings", []))
    about = (
        f"{overall['total_trials']} trials of {overall['total_incidents']} incidents, matched by policy "
        f"{as_html(config['policy'])}, reasoning by {as_html(config['reasoning_source'])}. Bad runs: "
        f"{overall['total_bad_runs']} (graded 0). Judge errors: {overall['total_judge_errors']}."
    )
    cut = (
        f"<p>Only the first {MAX_TRIALS} of {len(rows)} trials are shown; the JSON result has them all.</p>"
        if len(rows) > MAX_TRIALS
        else ""
    )
    return "".join(
        (
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            "<meta name='viewport' content='width=device-width, initial-scale=1'><title>Evaluation</title>",
            f"<style>{_STYLE}</style></head><body><h1>Evaluation</h1><p>{about}</p>",
            f"<ul class='bad'>{warnings}</ul>" if warnings else "",
            "<h2>Overall</h2>",
            _overall(statistics, int(config["k"])),
            "<h2>By incident</h2>",
            _incidents(statistics),
            "<h2>By trial</h2>",
            cut,
            *(_trial(row, document["incidents"][row["incident_id"]]["gt_graph"]) for row in rows[:MAX_TRIALS]),
            "</body></html>\n",
        )
    )
