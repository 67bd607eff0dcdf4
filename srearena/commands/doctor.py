"""`srearena doctor`: what is there, and what each missing thing would add."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import click


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    there: bool
    needed: bool
    what_for: str


_TOOLS = (
    (
        "kubectl",
        "the kubectl action of agents, the console, and `srearena verify`",
        "https://kubernetes.io/docs/tasks/tools/",
    ),
    ("bash", "the reference remedies that `srearena verify` runs", "your package manager"),
    ("helm", "applications that are charts", "https://helm.sh"),
    ("kind", "real clusters on this machine", "https://kind.sigs.k8s.io"),
    ("bwrap", "agents in a sandbox of their own", "the package bubblewrap"),
)
_PACKAGES = (
    ("duckdb", "recorded incidents and the diagnostic tools", "pip install 'srearena[tools]'"),
    ("mcp", "the diagnostic tools as an MCP server", "pip install 'srearena[tools]'"),
)


def findings() -> list[Finding]:
    found = [Finding(f"Python {sys.version.split()[0]}", sys.version_info >= (3, 11), True, "needs 3.11 or newer")]
    for name, what_for, where in _TOOLS:
        there = shutil.which(name) is not None
        found.append(Finding(name, there, False, what_for if there else f"{what_for}; get it from {where}"))
    for name, what_for, how in _PACKAGES:
        there = importlib.util.find_spec(name) is not None
        found.append(Finding(name, there, False, what_for if there else f"{what_for}; {how}"))
    memory = _memory_gigabytes()
    found.append(Finding(f"{memory:.1f} GB of memory", memory >= 1, True, "an episode takes up to 0.4 GB"))
    found.append(Finding(f"{os.cpu_count()} cores", True, False, "`srearena run --parallel` uses them"))
    found.append(
        Finding("config.yml", Path("config.yml").is_file(), False, "only for real clusters; see config.yml.example")
    )
    return found


def _memory_gigabytes() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError):
        return 0.0


@click.command()
@click.option("--json", "as_json", is_flag=True)
def command(as_json: bool) -> None:
    """Say what this machine has, and what each missing thing would add. Exit 1 if something needed is missing."""
    found = findings()
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found]))
    else:
        for finding in found:
            mark = (
                click.style("yes", fg="green")
                if finding.there
                else click.style(" no", fg="red" if finding.needed else "yellow")
            )
            click.echo(f"{mark}  {finding.name:<22} {finding.what_for}")
    if any(finding.needed and not finding.there for finding in found):
        raise click.exceptions.Exit(1)
