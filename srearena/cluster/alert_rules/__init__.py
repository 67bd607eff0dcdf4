"""Alert rules of every cluster, embedded or real, as rule files of Prometheus."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).parent


def rule_files() -> dict[str, str]:
    """The texts of the rule files by name, in the order of their names."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(DIRECTORY.glob("*.yaml"))}
