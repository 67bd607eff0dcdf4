"""`srearena site`: the leaderboard as a static site."""

from __future__ import annotations

from pathlib import Path

import click

from website.building import build as build_site


@click.group()
def command() -> None:
    """The leaderboard as a static site."""


@command.command()
@click.argument("results", type=click.Path(path_type=Path), default=Path("leaderboard_results") / "results")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Output directory; by default `site` next to RESULTS."
)
@click.option("--submitter", default="", help="Who submits these results; the page Method names them.")
def build(results: Path, output: Path | None, submitter: str) -> None:
    """Build the site from RESULTS, the `results` directory of a leaderboard. Open its index.html, or serve it."""
    if (results / "results" / "leaderboard.json").is_file():
        results = results / "results"
    results = results.absolute()
    site = build_site(results, output or results.parent / "site", submitter)
    click.echo(f"{site.agents} agents, {site.incidents} incidents, {site.runs} runs: {site.directory / 'index.html'}")
