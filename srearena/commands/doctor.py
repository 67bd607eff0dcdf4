"""`srearena doctor`: checks this machine for required and optional tools."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from srearena.cluster.registry import abandoned
from srearena.conductor.session import left_logs
from srearena.paths import CONFIG_EXAMPLE, config_files, results_directory
from srearena.temporary import leftovers


@dataclass(frozen=True, slots=True)
class Finding:
    """One tool, package or resource of the machine."""

    name: str
    present: bool
    required: bool
    purpose: str

    def as_document(self) -> dict[str, object]:
        return {"name": self.name, "there": self.present, "needed": self.required, "what_for": self.purpose}


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
    result = [Finding(f"Python {sys.version.split()[0]}", sys.version_info >= (3, 11), True, "needs 3.11 or newer")]
    for name, purpose, source in _TOOLS:
        present = shutil.which(name) is not None
        result.append(Finding(name, present, False, purpose if present else f"{purpose}; get it from {source}"))
    for name, purpose, command_line in _PACKAGES:
        present = importlib.util.find_spec(name) is not None
        result.append(Finding(name, present, False, purpose if present else f"{purpose}; {command_line}"))
    memory = _memory_gigabytes()
    result.append(Finding(f"{memory:.1f} GB of memory", memory >= 1, True, "an episode takes up to 0.4 GB"))
    result.append(Finding(f"{os.cpu_count()} cores", True, False, "`srearena run --parallel` uses them"))
    configured = any(path.is_file() for path in config_files())
    result.append(Finding("config.yml", configured, False, f"only for real clusters; see {CONFIG_EXAMPLE}"))
    return result


def _memory_gigabytes() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError):
        return 0.0


def remains() -> list[tuple[str, Path]]:
    """What killed processes have left, and what it is."""
    results = results_directory()
    logs = [log for folder in sorted([results / ".live", *results.glob("*/.live")]) for log in left_logs(folder)]
    return [
        *(("temporary folder", path) for path in leftovers()),
        *(("cluster's files", path) for path in abandoned()),
        *(("log of a trial", path) for path in logs),
    ]


@click.command()
@click.option("--json", "as_json", is_flag=True)
def command(as_json: bool) -> None:
    """Check this machine, and show what each missing tool is for. Exit 1 if something required is missing.

    Also lists what killed processes have left; the next command that needs such files removes it.
    """
    results = findings()
    left = remains()
    if as_json:
        removable = [Finding(str(path), True, False, f"{what} of a killed process") for what, path in left]
        click.echo(json.dumps([finding.as_document() for finding in (*results, *removable)]))
    else:
        for finding in results:
            mark = (
                click.style("yes", fg="green")
                if finding.present
                else click.style(" no", fg="red" if finding.required else "yellow")
            )
            click.echo(f"{mark}  {finding.name:<22} {finding.purpose}")
        if left:
            click.echo("\nLeft by killed processes, and removed by the next run, serve, shell or up:")
        for what, path in left:
            click.echo(f"     {what:<22} {path}")
    if any(finding.required and not finding.present for finding in results):
        raise click.exceptions.Exit(1)
