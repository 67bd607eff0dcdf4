"""`srearena serve PROBLEM`: serves an episode over HTTP and MCP, for agents in any language."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import click

from srearena import completions
from srearena.backends import backend_options, chosen_config
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.addresses import addresses
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.preconditions import check_cluster, check_folder, check_port
from srearena.conductor.results.store import drawn_seed
from srearena.conductor.serving.http_api import EpisodeApp
from srearena.conductor.serving.json_app import serve
from srearena.conductor.serving.mcp_server import ToolServer
from srearena.option_types import PORT, POSITIVE, SEED
from srearena.paths import results_directory


@click.command()
@click.argument("problem", shell_complete=completions.problems)
@click.option("--port", type=PORT, default=0, help="Port on the loopback interface; by default a free one.")
@click.option("--seed", type=SEED, help="Drawn, and recorded in the result, where it is not given.")
@click.option("--fixed", is_flag=True, help="The catalogue's own target, parameters and moment instead of the seed's.")
@click.option("--stages", help="Only these stages, separated by commas.")
@click.option("--max-seconds", type=POSITIVE, default=3600.0, show_default=True, help="Limit in real seconds.")
@click.option("--agent", default="http", show_default=True, help="Name of the agent in the results.")
@click.option(
    "--mcp",
    type=click.Choice(["safe", "read-only", "full", "none"]),
    default="safe",
    show_default=True,
    help="What kubectl may do in the episode's MCP server; none for no server. read-only binds every interface.",
)
@click.option(
    "--share",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write `episode.json` and `kubeconfig` for an agent in another container into this folder.",
)
@click.option(
    "--grading-token",
    envvar="SREARENA_GRADING_TOKEN",
    help="Serve until POST /grade with this secret, which returns the grade; agents must not have it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the addresses and the result as JSON lines.")
@backend_options
def command(
    problem: str,
    port: int,
    seed: int | None,
    fixed: bool,
    stages: str | None,
    max_seconds: float,
    agent: str,
    mcp: str,
    share: Path | None,
    grading_token: str | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Prepare PROBLEM, print how an agent connects, and grade after its last submission.

    Ctrl-C and SIGTERM end the agent's part; what it has done is graded, and the result is printed.
    """
    spec = EpisodeSpec(
        seed=drawn_seed() if seed is None else seed,
        fixed=fixed,
        stages=tuple(stages.split(",")) if stages else None,
        limits=Limits(steps=None, wall_seconds=max_seconds),
        read_only=mcp == "read-only",
        config=chosen_config(**where),
    )
    conductor = Conductor(spec, say=lambda text: None if as_json else click.echo(f"... {text}"))
    conductor.agent_name = agent
    check_port(port)
    check_folder(results_directory())
    check_cluster(spec.backend)
    signals = _Signals()
    try:
        description, instructions, actions = conductor.init_problem(problem)
        served = _Serving(conductor, signals, port, mcp, as_json, share, grading_token)
        result = asyncio.run(served.serve(description, instructions, actions))
    finally:
        conductor.abandon()
        signals.restore()
    if as_json:
        click.echo(json.dumps({"result": result}))
        return
    click.echo(f"Outcome: {result['outcome']}. {result['reason']}".rstrip())
    for stage in result["stages"]:
        verdict = stage["verdict"]
        if verdict:
            word = "passed" if verdict["passed"] else "failed"
            click.echo(f"  {stage['stage']}: {word} ({'; '.join(verdict['reasons'][:3])})")


class _Signals:
    """SIGTERM and Ctrl-C: before the episode is served they abort, from then on they end the agent's part.

    While it serves, uvicorn handles both, and raises them again for these handlers when it has ended.
    """

    def __init__(self) -> None:
        self._end: Callable[[], object] | None = None
        numbers = (signal.SIGTERM, signal.SIGINT)
        self._before = {number: signal.signal(number, self._receive) for number in numbers}

    def end_with(self, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        self._end = lambda: loop.call_soon_threadsafe(stop.set)

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: object) -> None:
        if self._end is None:
            raise KeyboardInterrupt
        with contextlib.suppress(RuntimeError):  # the loop has ended: the result is being printed
            self._end()


@dataclass(frozen=True, slots=True)
class _Serving:
    """An episode that is served, and how."""

    conductor: Conductor
    signals: _Signals
    port: int
    mcp: str
    as_json: bool
    share: Path | None
    grading_token: str | None

    async def serve(self, description: str, instructions: str, actions: dict[str, str]) -> dict[str, Any]:
        conductor, episode = self.conductor, self.conductor.episode
        if episode is None:
            raise ArenaError("the episode did not start")
        stop = asyncio.Event()
        self.signals.end_with(stop)
        token = token_urlsafe(24)
        endpoints = addresses(episode)
        if self.share is not None:
            endpoints["kubeconfig"] = str(_shared_kubeconfig(self.share, endpoints["kubeconfig"]))
        task = {"description": description, "instructions": instructions, "actions": actions, **endpoints}

        app = EpisodeApp(episode, token, task, stop.set, self.grading_token)
        tools = ToolServer(self.mcp, token)
        tasks: list[asyncio.Task[None]] = []

        def ready(at: int) -> None:
            url = f"http://127.0.0.1:{at}"
            # The MCP server is a client of this server, so it starts while this server runs.
            tasks.append(asyncio.create_task(announce(url)))

        async def announce(url: str) -> None:
            address: dict[str, Any] = {"url": url, "token": token, **endpoints}
            if self.share is not None:
                _publish(self.share, address)
            mcp_server = await tools.start(url)
            if self.as_json:
                click.echo(json.dumps({**address, "mcp": mcp_server}))
                return
            for key, value in address.items():
                click.echo(f"{key:<12} {value}")
            click.echo("The agent reads GET /task and submits with POST /submit; GET /openapi.json describes the API.")
            if "url" in mcp_server:
                click.echo(f"{'mcp':<12} {mcp_server['url']}")
                for client, text in mcp_server["configurations"].items():
                    click.echo(f"\n{client}:\n{text}")
            elif mcp_server:
                click.echo(f"There is no MCP server: {mcp_server['error']}")

        async def watch() -> None:
            while episode.within_limits():
                await asyncio.sleep(1)
            if self.grading_token is None:
                stop.set()

        watcher = asyncio.create_task(watch())
        try:
            await serve(app, self.port, ready, stop)
        finally:
            watcher.cancel()
            for started in tasks:
                started.cancel()
            await tools.stop()
        if not app.graded:
            await asyncio.to_thread(episode.grade)
        return conductor.finish(episode)


def _shared_kubeconfig(folder: Path, own: str) -> Path:
    """A copy of the agent's kubeconfig for another container."""
    folder.mkdir(parents=True, exist_ok=True)
    shared = folder / "kubeconfig"
    shared.write_text(Path(own).read_text())
    return shared


def _publish(folder: Path, address: dict[str, Any]) -> None:
    """Write the addresses for an agent in another container: when the file is there, the episode is ready."""
    draft = folder / "episode.draft"
    draft.write_text(json.dumps(address, indent=1))
    draft.rename(folder / "episode.json")
