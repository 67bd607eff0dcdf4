"""`python -m sre_tools.live`: serve the live tools over stdio, or with `--http` over streamable HTTP.

SREARENA_URL and SREARENA_TOKEN select the episode. Over HTTP the same token protects the server, and one line of JSON
on standard output has its URL and the configuration for agents.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import click

from sre_tools.live.configuration import configurations, stdio
from sre_tools.live.kubectl_modes import MODES
from srearena.errors import SreArenaError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--mode", type=click.Choice(MODES), default="safe", show_default=True, help="Which kubectl commands are allowed."
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP on the loopback interface instead of stdio.")
@click.option("--port", default=0, help="With --http: the port; 0 for any free port.")
@click.option("--until-eof", is_flag=True, help="With --http: exit when standard input is closed.")
def main(mode: str, http: bool, port: int, until_eof: bool) -> None:
    """Serve tools over a running episode."""
    try:
        from sre_tools.live.connection import Connection
        from sre_tools.live.context import LiveContext
        from sre_tools.live.toolset import LiveToolset
        from sre_tools.server import serve_http, serve_stdio
    except ImportError as problem:
        click.echo(f"Error: the server needs {problem.name}: pip install 'srearena[tools]'", err=True)
        sys.exit(1)
    url, token = os.environ.get("SREARENA_URL", ""), os.environ.get("SREARENA_TOKEN", "")

    def announce(mcp_url: str) -> None:
        process = stdio(url, token, mode)
        document = {"url": mcp_url, "stdio": process, "configurations": configurations(mcp_url, token, process)}
        click.echo(json.dumps(document))
        sys.stdout.flush()

    try:
        with LiveContext(Connection(url, token), mode) as context:
            if http:
                if until_eof:
                    threading.Thread(target=_exit_at_eof, daemon=True).start()
                serve_http(LiveToolset(context), token, "127.0.0.1", port, announce, grace=2)
            else:
                serve_stdio(LiveToolset(context))
    except (SreArenaError, OSError) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)


def _exit_at_eof() -> None:
    """Stop when standard input is closed, which happens however the parent process ends."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
