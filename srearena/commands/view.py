"""`srearena view`: running incidents, runs, trials and leaderboards in the browser."""

from __future__ import annotations

import contextlib
import json
import signal
import webbrowser
from pathlib import Path
from secrets import token_urlsafe
from urllib.parse import quote

import click

from srearena import completions
from srearena.cluster import registry
from srearena.conductor.episode.disclosure import REVEAL_TO, OperatorKey
from srearena.conductor.errors import ArenaError
from srearena.conductor.preconditions import check_port
from srearena.conductor.problems.incidents.document import is_incident_file
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.option_types import PORT
from srearena.paths import results_directory
from srearena.snapshots.layout import find_snapshots
from srearena.view.catalog import Catalog, viewed_folders
from srearena.view.export import exported
from srearena.view.http_app import ViewApp, serve
from srearena.view.incidents.found import Incidents
from srearena.view.playing import Plays


@click.command()
@click.argument(
    "places",
    nargs=-1,
    metavar="[RUN | CLUSTER | RECORDING | FOLDER | INCIDENT.yaml]...",
    shell_complete=completions.runs,
)
@click.option("--port", type=PORT, default=0, help="Port on the loopback interface; by default a free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open the link in the default browser.")
@click.option(
    "--export",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the one trial that is viewed to an HTML file instead of serving.",
)
@click.option("--trial", help="With --export: which trial, as PROBLEM or PROBLEM/NUMBER.")
@click.option(
    "--reveal-faults",
    is_flag=True,
    help=f"Print a key; episodes that are started with it as {REVEAL_TO} show their fault here on request.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the link as JSON.")
def command(
    places: tuple[str, ...],
    port: int,
    open_browser: bool,
    target: Path | None,
    trial: str | None,
    reveal_faults: bool,
    as_json: bool,
) -> None:
    """View incidents and results in the browser: running CLUSTERs and RUNs by name, RECORDINGs, leaderboards.

    An incident's file is listed first among the problems that can be played.

    Without arguments, all runs of `data/results` and the leaderboard of `leaderboard_results`. Running clusters and
    episodes are always there. The application is served on the loopback interface, for those who have the link.
    """
    files = [place for place in places if is_incident_file(place) and Path(place).is_file()]
    playable = ProblemRegistry().match(files) if files else []
    clusters = [entry.name for entry in registry.all_running() if entry.name in places]
    recorded = {place: find_snapshots(Path(place)) for place in places if Path(place).is_dir()}
    recordings = [directory.absolute() for found in recorded.values() for directory in found]
    others = [place for place in places if place not in [*clusters, *files] and not recorded.get(place)]
    catalog = Catalog(viewed_folders(others))
    results = results_directory().absolute()
    operator = OperatorKey() if reveal_faults else None
    watched = [*catalog.folders, *([results] if results not in catalog.folders else [])]
    incidents = Incidents(watched, recordings, operator)
    if target is not None:
        _export(catalog, target, trial)
        return
    token = token_urlsafe(24)

    def ready(at: int) -> None:
        named = f"cluster:{clusters[0]}" if clusters else "recording:0" if len(recordings) == 1 else ""
        page = f"#/incident/{quote(named, safe='')}" if named else "#/incidents" if recordings else ""
        page = "#/play" if playable else page
        link = f"http://127.0.0.1:{at}/?token={quote(token)}{page}"
        if as_json:
            revealed = {"reveal_to": operator.public} if operator is not None else {}
            click.echo(json.dumps({"link": link, "url": f"http://127.0.0.1:{at}", "token": token, **revealed}))
        else:
            click.echo(f"{len(catalog.rows())} trials: {link}")
            if operator is not None:
                click.echo(f"Episodes of commands with {REVEAL_TO}={operator.public} show their fault on request.")
            click.echo("Stop it with Ctrl-C.")
        if open_browser:
            webbrowser.open(link)

    check_port(port)
    application = ViewApp(catalog, token, incidents, Plays(results, playable))
    # SIGTERM ends the episodes in play too: uvicorn raises it again for this handler.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            serve(application, port, ready)
    finally:
        application.close()


def _export(catalog: Catalog, target: Path, trial: str | None) -> None:
    rows = [row for row in catalog.rows() if trial is None or trial in (row.problem, f"{row.problem}/{row.trial}")]
    if len(rows) != 1:
        names = ", ".join(f"{row.problem}/{row.trial} of {row.run}" for row in rows[:10]) or "none"
        raise ArenaError(f"--export writes one trial, and {len(rows)} fit ({names}): name a run and --trial")
    found = catalog.find(rows[0].id)
    assert found is not None
    try:
        target.write_text(exported(found.document()), encoding="utf-8")
    except OSError as problem:
        raise ArenaError(f"cannot write {target}: {problem}") from problem
    click.echo(f"{target}: {rows[0].problem}, {rows[0].agent}, {rows[0].outcome}")
