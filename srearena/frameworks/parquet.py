"""Suites, results and trajectories as a folder of Parquet files with a data card, for `datasets.load_dataset`.

Neither ground truths nor remedies are written. Results have the grader's reasons, which can name the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import folder_of, read_trials
from srearena.conductor.session import read_session
from srearena.conductor.trials.problem_suites import problem_suite
from srearena.frameworks.incidents import grade_from

Row = dict[str, Any]
_TRIAL = {"run": "VARCHAR", "problem": "VARCHAR", "trial": "INTEGER", "seed": "BIGINT", "agent": "VARCHAR"}
_GRADE = {"outcome": "VARCHAR", "passed": "BOOLEAN", "reward": "DOUBLE"}
TABLES: dict[str, dict[str, str]] = {
    "problems": {
        "suite": "VARCHAR",
        "problem": "VARCHAR",
        "application": "VARCHAR",
        "level": "VARCHAR",
        "difficulty": "VARCHAR",
    },
    "results": {
        **_TRIAL,
        **_GRADE,
        "scores": "STRUCT(stage VARCHAR, score DOUBLE)[]",
        "reason": "VARCHAR",
        "steps": "INTEGER",
        "tokens_in": "BIGINT",
        "tokens_out": "BIGINT",
        "cost": "DOUBLE",
        "wall_seconds": "DOUBLE",
        "virtual_seconds": "DOUBLE",
    },
    "trajectories": {**_TRIAL, **_GRADE, "steps": "STRUCT(step INTEGER, action VARCHAR, observation VARCHAR)[]"},
}
"""The tables with their columns, in DuckDB's types."""
_MEANINGS = {
    "problems": "the problems of the suites, without their answers",
    "results": "one row per trial: outcome, scores of the stages, usage; `reason` can name the answer",
    "trajectories": "one row per trial: what the agent did and what it read, with its reward",
}


def export(folder: Path, suites: Sequence[str], runs: Sequence[Path]) -> dict[str, int]:
    """Write the tables and the data card into a folder, and return the number of rows of each table."""
    if folder.exists() and not folder.is_dir():
        raise ArenaError(f"{folder} is a file: name a folder to export into")
    sources = {
        "problems": _problems(suites),
        "results": (_result(document) for run in runs for document in read_trials(run)),
        "trajectories": (_trajectory(run, document) for run in runs for document in read_trials(run)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    counts = {name: _write(folder / f"{name}.parquet", rows, TABLES[name]) for name, rows in sources.items()}
    (folder / "README.md").write_text(_card(counts))
    return counts


def _problems(suites: Sequence[str]) -> Iterator[Row]:
    registry = ProblemRegistry()
    for suite in map(problem_suite, suites):
        for each in suite.problems:
            summary = registry.get_problem(each).summary().as_document()
            row = {key: summary[key] for key in ("application", "level", "difficulty")}
            yield {"suite": suite.name, "problem": each, **row}


def _trial(document: Row) -> Row:
    grade = grade_from(document, "dense")
    return {
        **{key: document.get(key) for key in _TRIAL},
        "outcome": grade.outcome,
        "passed": grade.passed,
        "reward": grade.reward,
    }


def _result(document: Row) -> Row:
    scores = [{"stage": stage, "score": score} for stage, score in document["scores"].items()]
    usage = {key: document["usage"].get(key) for key in TABLES["results"] if key in document["usage"]}
    return {**_trial(document), "scores": scores, "reason": document["reason"], **usage}


def _trajectory(run: Path, document: Row) -> Row:
    path = folder_of(run, document["problem"], document["trial"]) / "session.jsonl"
    steps: dict[int, Row] = {}
    for entry in read_session(path) if path.is_file() else ():
        if entry["what"] == "action":
            steps[entry["step"]] = {"step": entry["step"], "action": entry["text"], "observation": ""}
        elif entry["what"] == "state" and entry["step"] in steps:
            steps[entry["step"]]["observation"] = entry["text"]
    return {**_trial(document), "steps": list(steps.values())}


def _write(path: Path, rows: Iterable[Row], columns: dict[str, str]) -> int:
    try:
        import duckdb
    except ImportError as missing:
        raise ArenaError("Parquet files are written by DuckDB: pip install 'srearena[tools]'") from missing
    lines = path.with_suffix(".jsonl")
    count = 0
    try:
        with lines.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
                count += 1
        largest = max(lines.stat().st_size, 1)
        with duckdb.connect() as database:
            table = database.read_json(
                str(lines), columns=columns, format="newline_delimited", maximum_object_size=largest + 1
            )
            table.write_parquet(str(path))
    finally:
        lines.unlink(missing_ok=True)
    return count


def _card(counts: dict[str, int]) -> str:
    configs = "\n".join(f"- config_name: {name}\n  data_files: {name}.parquet" for name in TABLES)
    rows = "\n".join(f"| `{name}` | {counts[name]} | {_MEANINGS[name]} |" for name in TABLES)
    columns = "\n".join(f"- `{name}`: {', '.join(f'`{each}`' for each in TABLES[name])}" for name in TABLES)
    return f"""---
pretty_name: SREArena
tags:
- site-reliability-engineering
- kubernetes
- agents
configs:
{configs}
---

# SREArena {installed_version("srearena")}

Incidents on Kubernetes clusters, and how agents fared with them. Written by `srearena export`.

| table | rows | what it is |
| --- | --- | --- |
{rows}

Columns:

{columns}

`reward` is the mean of the scores of all stages that were asked. Observations are what the cluster answered to the
agent. Agents that are evaluated on these problems must not be trained on results and trajectories of the same problems
and seeds.
"""
