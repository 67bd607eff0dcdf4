"""`srearena episodes`: serves incidents that can be forked over HTTP, to trainers in any language."""

from __future__ import annotations

import asyncio
import json
import signal
from secrets import token_urlsafe

import click

from srearena.conductor.serving.json_app import serve
from srearena.frameworks.http_server import IncidentsApp
from srearena.frameworks.incidents import IncidentPool, framework_spec
from srearena.option_types import COUNT, PORT


@click.command()
@click.option("--port", type=PORT, default=0, help="Port on the loopback interface; by default a free one.")
@click.option("--most", type=COUNT, default=64, show_default=True, help="Incidents that are open at once.")
@click.option("--stages", help="Only these stages, separated by commas.")
@click.option("--max-steps", type=COUNT, default=30, show_default=True, help="Actions of an agent per incident.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as a JSON line.")
def command(port: int, most: int, stages: str | None, max_steps: int, as_json: bool) -> None:
    """Serve incidents to a trainer: groups from one prepared world, forks at any moment, rewards.

    Ctrl-C and SIGTERM end the server and all its incidents.
    """
    pool = IncidentPool(framework_spec(stages.split(",") if stages else None, max_steps))
    token = token_urlsafe(24)

    def announce(at: int) -> None:
        address = {"url": f"http://127.0.0.1:{at}", "token": token}
        if as_json:
            click.echo(json.dumps(address))
        else:
            click.echo("\n".join(f"{key:<6} {value}" for key, value in address.items()))
            click.echo("GET /openapi.json describes the API. Ctrl-C ends it.")

    async def run(app: IncidentsApp) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(app, port, announce, stop)

    with IncidentsApp(pool, token, most) as app:
        asyncio.run(run(app))
