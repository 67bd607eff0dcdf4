"""`python -m sre_tools.offline_incident_analysis`: serve the tools over stdio, or over HTTP when asked to."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import click

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.workspace import Workspace
from srearena.errors import SreArenaError


def _serve_http(workspace: Workspace, host: str, port: int) -> None:
    from sre_tools.offline_incident_analysis.server import RecordedIncidentTools
    from sre_tools.server import serve_http

    token = os.environ.get("SRE_TOOLS_TOKEN") or secrets.token_urlsafe(32)
    shown = "from SRE_TOOLS_TOKEN" if os.environ.get("SRE_TOOLS_TOKEN") else token

    def announce(url: str) -> None:
        click.echo(f"Serving {workspace.root} at {url}; bearer token: {shown}", err=True)

    serve_http(RecordedIncidentTools(workspace), token, host, port, announce)


def _live(kubeconfig: Path, prometheus: str, loki: str, jaeger: str, output: Path | None) -> Workspace:
    from sre_tools.live_workspace import LiveWorkspace
    from srearena.cluster.base import TelemetryEndpoints

    if not prometheus:
        raise ToolError("--live needs --prometheus: the address of the cluster's Prometheus")
    token = os.environ.get("TELEMETRY_TOKEN", "")
    return LiveWorkspace(kubeconfig, TelemetryEndpoints(prometheus, loki, jaeger, token=token), output=output)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--snapshot",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: Path(os.environ.get("SRE_TOOLS_SNAPSHOT", ".")),
    help="A snapshot, or a directory of several; $SRE_TOOLS_SNAPSHOT or the current directory by default.",
)
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Where to keep columns.")
@click.option("--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Where build_topology may write.")
@click.option(
    "--http", is_flag=True, help="Streamable HTTP instead of stdio; the token is $SRE_TOOLS_TOKEN or made up."
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=0, help="Any free one by default.")
@click.option("--live", "kubeconfig", type=click.Path(path_type=Path), help="A running cluster's kubeconfig instead.")
@click.option("--prometheus", default="", help="With --live: the address of its Prometheus; needed.")
@click.option("--loki", default="", help="With --live: the address of its Loki, if there is one.")
@click.option("--jaeger", default="", help="With --live: the address of its Jaeger, if there is one.")
def main(
    snapshot: Path,
    cache: Path | None,
    output_dir: Path | None,
    http: bool,
    host: str,
    port: int,
    kubeconfig: Path | None,
    prometheus: str,
    loki: str,
    jaeger: str,
) -> None:
    """Serve the diagnostic tools over a recorded incident, or over a live cluster (with $TELEMETRY_TOKEN, if its
    Prometheus, Loki and Jaeger ask for one)."""
    try:
        from sre_tools.offline_incident_analysis.server import RecordedIncidentTools
        from sre_tools.server import serve_stdio
    except ImportError as problem:
        click.echo(f"Error: the server needs {problem.name}: pip install 'srearena[tools]'", err=True)
        sys.exit(1)
    try:
        with (
            Workspace(snapshot, cache=cache, output=output_dir)
            if kubeconfig is None
            else _live(kubeconfig, prometheus, loki, jaeger, output_dir)
        ) as workspace:
            if http:
                _serve_http(workspace, host, port)
            else:
                serve_stdio(RecordedIncidentTools(workspace))
    except (SreArenaError, OSError) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
