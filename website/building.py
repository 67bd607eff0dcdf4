"""Build a static site from a leaderboard's results: fixed pages, and data files that they load when needed.

Data files are scripts that pass one JSON value to the page, because a page opened from a file cannot fetch. The site
depends only on the leaderboard's files. Agents' text is part of those values and never of a page's markup.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from srearena.errors import SreArenaError
from srearena.view.trials import LeaderboardTrial

SCHEMA = "site-v1"
PAGES = Path(__file__).parent
_FULL = 1.0 - 1e-9  # a run with this score has passed, as for the judge
_ABOUT = ("incident", "kind", "family", "difficulty", "application")
_STEPS, _TEXT = 400, 20_000  # of a trajectory, and characters of a text; chosen: keeps pages small
_MARK = ".srearena-site"  # written first: an incomplete site can be overwritten too


class SiteError(SreArenaError):
    """The results or the output directory cannot be used."""


@dataclass(frozen=True, slots=True)
class Site:
    """A site that was built."""

    directory: Path
    agents: int
    incidents: int
    runs: int


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as problem:
        raise SiteError(f"{path} cannot be read: {problem}") from problem


def slug(metric: str) -> str:
    return re.sub(r"[^A-Za-z0-9_@^.-]", "_", metric)


def _round(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _cut(value: Any) -> Any:
    """The value with all texts cut to a maximum length."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] + "… (cut)"
    if isinstance(value, Mapping):
        return {str(key): _cut(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(each) for each in value]
    return value


class _Data:
    """The directory of data files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, key: str, value: Any) -> None:
        path = self._directory / f"{key}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Escaped so that the text is safe in script files and script elements, also for old engines.
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
        path.write_text(f"srearena.receive({json.dumps(key)},{text});\n", encoding="utf-8")


def _agent(row: Mapping[str, Any]) -> dict[str, Any]:
    test = row.get("against_next")
    names = ("rank", "model", "provider", "kind", "prompt", "commit", "cli", "planned", "graded", "excluded", "missing")
    return {
        "name": row["agent"],
        **{name: row.get(name) for name in names},
        "outcomes": row.get("outcomes") or {},
        "score": _round(row.get("score")),
        "pass1": _round(row.get("pass@1")),
        "passk": _round(row.get("pass@k")),
        "passevery": _round(row.get("pass^k")),
        "mean_cost": _round(row.get("mean_cost_usd")),
        "seconds": _round(row.get("mean_seconds")),
        "turns": _round(row.get("mean_turns")),
        "metrics": {
            metric: [_round(each["mean"]), *(_round(end) for end in each["ci95"] or (None, None))]
            for metric, each in row.get("metrics", {}).items()
        },
        "against_next": test
        and {
            "agent": test["agent"],
            "difference": _round(test["difference"]),
            "p": _round(test["permutation_p"]),
            "within_noise": test["within_noise"],
        },
    }


def _blamed(answer: Any) -> list[str]:
    entities = answer.get("entities") if isinstance(answer, Mapping) else None
    blamed = [e for e in entities or () if isinstance(e, Mapping) and e.get("contributing_factor")]
    names = [entity.get("name") for entity in blamed]
    if isinstance(answer, Mapping) and isinstance(answer.get("stages"), Mapping):  # of a live problem
        components = answer["stages"].get("localization")
        names = components if isinstance(components, list) else []
    return [str(name)[:120] for name in names[:6]]


def _stages(details: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The stages of a live problem, as results have them."""
    kept = ("stage", "submitted", "submission", "wall_seconds", "steps", "recovery", "verdict")
    stages = [stage for stage in details.get("stages") or () if isinstance(stage, Mapping)]
    return [{key: stage[key] for key in kept if key in stage} for stage in stages]


def _steps(directory: Path) -> list[Any]:
    """The transcript: of the event log of a live problem, which says more than the trajectory, else of that."""
    steps = LeaderboardTrial("", directory, (), {}).steps()
    return [_cut(step.as_document()) for step in steps[:_STEPS]]


def _read_untrusted(path: Path) -> Any:
    """Read a file of a run; None if it is invalid, because agents can write anything."""
    try:
        return None if path.is_symlink() else _read(path)
    except SiteError:
        return None


def _runs(root: Path, agent: str, incident: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        directory = root / agent / incident / str(row["run"])
        available = directory.is_dir()  # results may have been copied without the runs
        verdict = (_read_untrusted(directory / "judge_output.json") if available else None) or {}
        details = verdict.get("details", {})
        answer = _read_untrusted(directory / "agent_output.json") if available else None
        yield {
            "run": row["run"],
            "available": available,
            "outcome": row["outcome"],
            "score": _round(row["scores"].get("score")),
            "scores": {metric: _round(value) for metric, value in row["scores"].items()},
            "error": row.get("error"),
            "justification": row.get("justification") or "",
            "seconds": _round(row.get("duration_seconds")),
            "cost": row.get("cost_usd"),
            "answer": _cut(answer),
            "blamed": _blamed(answer),
            "stages": _cut(_stages(details)),
            "predicted_graph": details.get("details", {}).get("predicted_graph") or {"nodes": [], "edges": []},
            "steps": _steps(directory) if available else [],
            "truth": verdict.get("truth") or {},
        }


def _leaderboard(results: Path) -> dict[str, Any]:
    document = _read(results / "leaderboard.json")
    if document is None:
        raise SiteError(f"there is no leaderboard.json in {results}: run `python -m itbench_leaderboard` first")
    if not isinstance(document, dict) or not str(document.get("schema_version", "")).startswith("leaderboard-v1"):
        raise SiteError(f"{results / 'leaderboard.json'} is not a leaderboard of a supported version")
    return document


def _prepare(directory: Path) -> None:
    is_other = directory.is_dir() and any(directory.iterdir()) and not (directory / _MARK).is_file()
    if is_other or (directory.exists() and not directory.is_dir()):
        raise SiteError(f"{directory} holds something else than a site: give --output an empty directory")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _MARK).touch()
    for name in ("assets", "data"):
        shutil.rmtree(directory / name, ignore_errors=True)
    shutil.copyfile(PAGES / "index.html", directory / "index.html")
    shutil.copytree(PAGES / "assets", directory / "assets")


def build(results: Path, directory: Path, submitter: str = "") -> Site:
    """Build the site of `results/`, and of the runs beside it if they exist, in a directory that is empty or a site."""
    leaderboard = _leaderboard(results)
    _prepare(directory)
    data = _Data(directory / "data")
    rows = leaderboard["rankings"]
    incidents = list(leaderboard["incidents"].values())
    documents = [_read(results / f"{row['agent']}.json") or {"scenarios": {}} for row in rows]
    metric_kinds: dict[str, list[str]] = {}
    for metric in leaderboard["metrics"]:
        matrix = [_scores(document, incidents, metric) for document in documents]
        data.write(f"scores/{slug(metric)}", matrix)
        scored = {incidents[i]["kind"] for line in matrix for i, value in enumerate(line) if value is not None}
        metric_kinds[metric] = sorted(scored)
    data.write("totals/runs", [_totals(document, incidents, leaderboard["ranking_metric"]) for document in documents])
    counted = _write_details(data, results, rows, documents, incidents)
    index = {
        "schema": SCHEMA,
        **{key: leaderboard[key] for key in ("generated_at", "ranking_metric", "k", "metrics")},
        "runs": leaderboard["runs_per_scenario"],
        "version": version("srearena"),
        "submitter": submitter,
        "metric_kinds": metric_kinds,
        "downloads": _downloads(results, directory / "results", rows, documents, incidents, leaderboard["metrics"]),
        "agents": [_agent(row) for row in rows],
        "incidents": incidents,
    }
    data.write("index", index)
    return Site(directory, len(rows), len(incidents), counted)


def _scores(document: Mapping[str, Any], incidents: Sequence[Mapping[str, Any]], metric: str) -> list[Any]:
    scenarios = document["scenarios"]
    return [
        _round(scenarios.get(one["name"], {}).get("statistics", {}).get(metric, {}).get("mean")) for one in incidents
    ]


def _totals(document: Mapping[str, Any], incidents: Sequence[Mapping[str, Any]], metric: str) -> list[Any]:
    """Per incident: runs that were graded, all, and passed; cost and seconds, and of how many runs each is known."""
    found: list[Any] = []
    for one in incidents:
        rows = document["scenarios"].get(one["name"], {}).get("runs")
        if rows is None:
            found.append(None)
            continue
        scores = [row["scores"][metric] for row in rows if row["scores"].get(metric) is not None]
        costs = [row["cost_usd"] for row in rows if row.get("cost_usd") is not None]
        seconds = [row["duration_seconds"] for row in rows if row.get("duration_seconds") is not None]
        passed = sum(score >= _FULL for score in scores)
        found.append(
            [len(scores), len(rows), passed, *(_round(x) for x in (sum(costs), len(costs), sum(seconds), len(seconds)))]
        )
    return found


def _downloads(
    results: Path,
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    documents: Sequence[Mapping[str, Any]],
    incidents: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
) -> list[list[str]]:
    """Write the data as files: the leaderboard as it is; a row for every run as CSV and, with duckdb, as Parquet."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(results / "leaderboard.json", folder / "leaderboard.json")
    with (folder / "runs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["agent", "model", *_ABOUT, "run", "outcome", "seconds", "cost_usd", *metrics])
        for row, document in zip(rows, documents, strict=True):
            for one in incidents:
                for run in document["scenarios"].get(one["name"], {}).get("runs", ()):
                    about = [one.get("name"), *(one.get(name) for name in _ABOUT[1:])]
                    figures = [run["run"], run["outcome"], run.get("duration_seconds"), run.get("cost_usd")]
                    scores = [run["scores"].get(metric) for metric in metrics]
                    cells = (row["agent"], row.get("model"), *about, *figures, *scores)
                    writer.writerow([_cell(cell) for cell in cells])
    files = [
        ["results/leaderboard.json", "ranking, intervals and tests"],
        ["results/runs.csv", "every run with its scores, one in a line"],
    ]
    try:
        import duckdb
    except ModuleNotFoundError:
        return files
    source, target = folder / "runs.csv", folder / "runs.parquet"
    with duckdb.connect() as connection:
        connection.read_csv(str(source), header=True).write_parquet(str(target))
    return [*files, ["results/runs.parquet", "the same as Parquet"]]


def _cell(value: Any) -> Any:
    """A value for a table: spreadsheets run what begins like a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _write_details(
    data: _Data,
    results: Path,
    rows: Sequence[Mapping[str, Any]],
    documents: Sequence[Mapping[str, Any]],
    incidents: Sequence[Mapping[str, Any]],
) -> int:
    """Write the files of agents, incidents and runs; returns the number of runs."""
    counted = 0
    answers: list[list[Any]] = [[] for _ in incidents]
    truths: list[Any] = [{} for _ in incidents]
    metric = "score"
    for a, (row, document) in enumerate(zip(rows, documents, strict=True)):
        listed = []
        for i, incident in enumerate(incidents):
            scenario = document["scenarios"].get(incident["name"])
            if scenario is None:
                continue
            briefs = []
            for run in _runs(results.parent, row["agent"], incident["name"], scenario["runs"]):
                truths[i] = truths[i] or run["truth"]
                brief = [run["run"], run["outcome"], run["score"]]
                answers[i].append([a, *brief, run["blamed"]])
                briefs.append(brief)
                details = {key: value for key, value in run.items() if key not in ("truth", "blamed", "available")}
                counted += 1
                if run["available"]:
                    data.write(f"runs/{a}-{i}-{run['run']}", details)
            listed.append([i, briefs, _round(scenario["statistics"].get(metric, {}).get("mean"))])
        data.write(f"agents/{a}", listed)
    for i, incident in enumerate(incidents):
        timeline = _read_untrusted(results / "timelines" / f"{incident['name']}.json") or {}
        entries = [_cut(entry) for entry in timeline.get("entries", []) if isinstance(entry, Mapping)]
        charts = timeline.get("charts") if isinstance(timeline.get("charts"), Mapping) else None
        details = {"truth": _cut(truths[i]), "timeline": entries, "charts": _cut(charts), "runs": answers[i]}
        data.write(f"incidents/{i}", details)
    return counted
