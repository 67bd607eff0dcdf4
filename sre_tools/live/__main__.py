"""`python -m sre_tools.live`: the live tools over stdio, or over streamable HTTP when asked to.

Which episode is in the environment: SREARENA_URL and SREARENA_TOKEN. Over HTTP the same token protects the server, and
one line of JSON on standard output says where it is and how agents are told of it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading

import click

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
        import anyio

        from sre_tools.live.connection import Connection
        from sre_tools.live.server import toolset
    except ImportError as problem:
        click.echo(f"Error: the server needs {problem.name}: pip install 'srearena[tools]'", err=True)
        sys.exit(1)
    url, token = os.environ.get("SREARENA_URL", ""), os.environ.get("SREARENA_TOKEN", "")
    try:
        connection = Connection(url, token)
        with toolset(connection, mode) as tools:
            if http:
                if until_eof:
                    threading.Thread(target=_end_with_input, daemon=True).start()
                _serve_http(tools, url, token, mode, port)
            else:
                anyio.run(_serve_stdio, tools)
    except (SreArenaError, OSError) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)


def _end_with_input() -> None:
    """Whoever started this server holds the other end, and loses it however it ends."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


async def _serve_stdio(tools: object) -> None:
    from mcp.server.stdio import stdio_server

    from sre_tools.live.server import make_server

    server = make_server(tools)  # type: ignore[arg-type]
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _serve_http(tools: object, url: str, token: str, mode: str, port: int) -> None:
    import uvicorn

    from sre_tools.live.configuration import configurations, stdio
    from sre_tools.live.server import http_app

    listener = socket.create_server(("127.0.0.1", port))
    place = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    process = stdio(url, token, mode)
    click.echo(json.dumps({"url": place, "stdio": process, "configurations": configurations(place, token, process)}))
    sys.stdout.flush()
    app = http_app(tools, token)  # type: ignore[arg-type]
    uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)).run(sockets=[listener])


if __name__ == "__main__":
    main()
