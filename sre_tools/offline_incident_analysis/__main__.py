"""`python -m sre_tools.offline_incident_analysis`: serve the tools over stdio, or with `--http` over HTTP."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.workspace import Workspace
from srearena.errors import SreArenaError

if TYPE_CHECKING:
    from sre_tools.server import Toolset


def _serve_http(toolset: Toolset, serving: str, host: str, port: int) -> None:
    from sre_tools.server import serve_http

    token = os.environ.get("SRE_TOOLS_TOKEN") or secrets.token_urlsafe(32)
    origin = "from SRE_TOOLS_TOKEN" if os.environ.get("SRE_TOOLS_TOKEN") else token

    def announce(url: str) -> None:
        click.echo(f"Serving {serving} at {url}; bearer token: {origin}", err=True)

    serve_http(toolset, token, host, port, announce)


def _live(kubeconfig: Path, prometheus: str, loki: str, jaeger: str, output: Path | None) -> Workspace:
    from sre_tools.live_workspace import LiveWorkspace
    from srearena.cluster.base import TelemetryEndpoints

    if not prometheus:
        raise ToolError("--live needs --prometheus: the URL of the cluster's Prometheus")
    token = os.environ.get("TELEMETRY_TOKEN", "")
    return LiveWorkspace(kubeconfig, TelemetryEndpoints(prometheus, loki, jaeger, token=token), output=output)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--snapshot",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: Path(os.environ.get("SRE_TOOLS_SNAPSHOT", ".")),
    help="A snapshot, or a directory of several; $SRE_TOOLS_SNAPSHOT or the current directory by default.",
)
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Directory of the column cache.")
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Directory that build_topology may write to."
)
@click.option(
    "--architecture",
    type=click.Path(exists=True, path_type=Path),
    help="Architecture JSON outside the snapshot that build_topology may read, or a directory of such files.",
)
@click.option(
    "--http", is_flag=True, help="Serve streamable HTTP instead of stdio; the token is $SRE_TOOLS_TOKEN or generated."
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=0, help="Port; 0 for any free port.")
@click.option(
    "--live",
    "kubeconfig",
    type=click.Path(path_type=Path),
    help="Kubeconfig of a running cluster, instead of a snapshot.",
)
@click.option("--prometheus", default="", help="With --live: URL of Prometheus (required).")
@click.option("--loki", default="", help="With --live: URL of Loki (optional).")
@click.option("--jaeger", default="", help="With --live: URL of Jaeger (optional).")
def main(
    snapshot: Path,
    cache: Path | None,
    output_dir: Path | None,
    architecture: Path | None,
    http: bool,
    host: str,
    port: int,
    kubeconfig: Path | None,
    prometheus: str,
    loki: str,
    jaeger: str,
) -> None:
    """Serve the diagnostic tools over a recorded incident, or over a live cluster ($TELEMETRY_TOKEN is the bearer
    token for Prometheus, Loki and Jaeger, if they need one)."""
    try:
        from sre_tools.live.analysis import RunningSystemTools
        from sre_tools.offline_incident_analysis.server import RecordedIncidentTools
        from sre_tools.server import serve_stdio
    except ImportError as problem:
        click.echo(f"Error: the server needs {problem.name}: pip install 'srearena[tools]'", err=True)
        sys.exit(1)
    try:
        with (
            Workspace(snapshot, cache=cache, output=output_dir, architecture=architecture)
            if kubeconfig is None
            else _live(kubeconfig, prometheus, loki, jaeger, output_dir)
        ) as workspace:
            toolset = RecordedIncidentTools(workspace) if kubeconfig is None else RunningSystemTools(workspace)
            if http:
                _serve_http(toolset, str(kubeconfig or workspace.root), host, port)
            else:
                serve_stdio(toolset)
    except (SreArenaError, OSError) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
