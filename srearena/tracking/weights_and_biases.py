"""Logging of runs to Weights & Biases, enabled by `USE_WANDB=true` (in `.env` or the environment).

Each run becomes one W&B run: totals, a table with a row per trial and its session id, and the sessions of all trials as
an artifact. The package is an extra (`wandb`) and is configured by its own variables (WANDB_API_KEY, WANDB_PROJECT,
WANDB_MODE).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srearena.errors import SreArenaError

_COLUMNS = ("session_id", "problem", "trial", "seed", "agent", "outcome", "reason")
_USAGE = ("steps", "tokens_in", "tokens_out", "cost", "wall_seconds")


def is_enabled(variables: Mapping[str, str]) -> bool:
    return variables.get("USE_WANDB", "").strip().lower() in ("1", "true", "yes", "on")


def rows(results: Sequence[Mapping[str, Any]]) -> tuple[list[str | int], list[list[Any]]]:
    """The summary table: its columns, and a row per trial."""
    stages = sorted({stage for result in results for stage in result.get("scores") or {}})
    columns: list[str | int] = [*_COLUMNS, *(f"{stage}_score" for stage in stages), *_USAGE]
    table = []
    for result in results:
        usage, scores = result.get("usage") or {}, result.get("scores") or {}
        fields = [result.get("session", ""), *(result.get(name) for name in _COLUMNS[1:])]
        table.append([*fields, *(scores.get(stage) for stage in stages), *(usage.get(name) for name in _USAGE)])
    return columns, table


def log_run(
    folder: Path,
    results: Sequence[Mapping[str, Any]],
    totals: Mapping[str, Any],
    config: Mapping[str, Any],
    variables: Mapping[str, str],
) -> str:
    """Log a run and return its URL; SreArenaError says what is missing."""
    for name, value in variables.items():  # from `.env`: wandb reads os.environ only
        if name.startswith("WANDB_"):
            os.environ.setdefault(name, value)
    try:
        import wandb
    except ImportError as problem:
        raise SreArenaError("USE_WANDB is set, but W&B is not installed: pip install 'srearena[wandb]'") from problem
    try:
        run = wandb.init(
            project=variables.get("WANDB_PROJECT") or "srearena",
            name=folder.name,
            config=dict(config),
            dir=str(folder),
            job_type="evaluation",
        )
        columns, table = rows(results)
        outcomes = {f"outcome/{name}": count for name, count in (totals.get("outcomes") or {}).items()}
        run.log({"summary": wandb.Table(columns=columns, data=table), "trials": len(results), **outcomes})
        trajectories = wandb.Artifact(f"trajectories-{folder.name}", type="trajectory")
        for file in sorted((folder / "trials").rglob("*.json*")):
            trajectories.add_file(str(file), name=str(file.relative_to(folder)))
        run.log_artifact(trajectories)
        run.finish()
    except Exception as problem:  # of any kind: the results are on disk already
        raise SreArenaError(f"W&B could not take the run: {type(problem).__name__}: {problem}") from problem
    return run.url or f"{folder / 'wandb'} (offline: `wandb sync` sends it)"
