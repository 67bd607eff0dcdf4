"""Paths and constants: where SREArena looks for files, and the environment variables that change it.

Folders of the package are fixed; folders of the user are functions, since their variables may change while a process
runs.
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).parent
METADATA = PACKAGE / "service" / "metadata"
"""One JSON file per application: what the agent learns about it."""
OBSERVER = PACKAGE / "observer"
"""Among others, one folder of manifests per program that is installed on a real cluster."""
CONFIG_EXAMPLE = PACKAGE / "config.yml.example"
_CONFIG = "config.yml"


def config_files() -> tuple[Path, ...]:
    """Where `config.yml` is looked for, in this order: `SREARENA_CONFIG` alone, or the working directory and ours."""
    named = os.environ.get("SREARENA_CONFIG")
    return (Path(named),) if named else (Path(_CONFIG), PACKAGE / _CONFIG)


def results_directory() -> Path:
    """Where results of episodes go: `SREARENA_RESULTS`, or `data/results` in the working directory."""
    return Path(os.environ.get("SREARENA_RESULTS") or Path("data") / "results")


def state_directory() -> Path:
    """Where running clusters are registered: `SREARENA_STATE_DIR`, or `srearena` in the user's state directory."""
    return _of_user("SREARENA_STATE_DIR", "XDG_STATE_HOME", Path(".local") / "state")


def cache_directory() -> Path:
    """Where files that can be made again are kept: `SREARENA_CACHE`, or `srearena` in the user's cache directory."""
    return _of_user("SREARENA_CACHE", "XDG_CACHE_HOME", Path(".cache"))


def _of_user(variable: str, base_variable: str, default: Path) -> Path:
    named = os.environ.get(variable)
    if named:
        return Path(named)
    base = os.environ.get(base_variable)
    return (Path(base) if base else Path.home() / default) / "srearena"


def incidents_directory() -> Path:
    """Where incidents that came in files are kept by id: `SREARENA_INCIDENTS`, or `data/incidents`."""
    return Path(os.environ.get("SREARENA_INCIDENTS") or Path("data") / "incidents")
