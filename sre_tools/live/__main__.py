"""`python -m sre_tools.live`: the live tools over stdio, or over streamable HTTP when asked to.

Which episode is in the environment: SREARENA_URL and SREARENA_TOKEN. Over HTTP the same token protects the server, and
one line of JSON on standard output says where it is and how agents are told of it.
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
@click.option("--mode", type=click.Choice(MODES), default="safe", show_default=True, help="What kubectl may do.")
@click.option("--http", is_flag=True, help="Streamable HTTP on the loopback interface instead of stdio.")
@click.option("--port", default=0, help="Any free one by default.")
@click.option("--until-eof", is_flag=True, help="With --http: end when the standard input does.")
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
                    threading.Thread(target=_end_with_input, daemon=True).start()
                serve_http(LiveToolset(context), token, "127.0.0.1", port, announce, grace=2)
            else:
                serve_stdio(LiveToolset(context))
    except (SreArenaError, OSError) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)


def _end_with_input() -> None:
    """Whoever started this server holds the other end, and loses it however it ends."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
