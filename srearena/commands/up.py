"""`srearena up`: starts applications with load and telemetry, and prints the addresses."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from time import time as now  # noqa: TID251 - the start time is real time
from typing import Any

import click

from srearena.backends import backend_options, chosen_config
from srearena.cluster import Cluster, ClusterError, registry
from srearena.cluster.launcher import ChildCluster, checked_options
from srearena.cluster.registry import RunningCluster
from srearena.conductor.episode.environment import real_cluster
from srearena.conductor.shared_cluster import SharedCluster
from srearena.config import Config
from srearena.errors import InputError
from srearena.observer.grafana import data_sources
from srearena.option_types import AMOUNT, SEED, WHOLE
from srearena.service.apps import Application, find_application

DEPLOYMENT = 240.0
"""Virtual seconds before the history, in which the applications become ready."""


@click.command()
@click.argument("applications", nargs=-1, required=True, metavar="APP...")
@click.option("--name", default="", help="Name of the cluster; by default the first application's.")
@click.option(
    "--nodes", type=WHOLE, default=3, show_default=True, help="Worker nodes in addition to the control plane."
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all randomness in the cluster.")
@click.option(
    "--speed", type=AMOUNT, default=1.0, show_default=True, help="Virtual seconds per real second after the start."
)
@click.option(
    "--history",
    type=AMOUNT,
    default=900.0,
    show_default=True,
    help="Seconds of operation under load before the present.",
)
@click.option("--no-load", is_flag=True, help="Deploy without load.")
@click.option("--detach", is_flag=True, help="Return once it is ready; stop it with `srearena down`.")
@click.option(
    "--grafana",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the telemetry APIs of an embedded cluster to this file, as data sources for Grafana.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the addresses as one JSON object.")
@backend_options
def command(
    applications: tuple[str, ...],
    name: str,
    nodes: int,
    seed: int,
    speed: float,
    history: float,
    no_load: bool,
    detach: bool,
    grafana: Path | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Start applications with load and telemetry, and print the addresses."""
    chosen = [find_application(one) for one in applications]
    config = chosen_config(**where)
    if not config.embedded:
        _start_on_real_cluster(chosen, config, load=not no_load, detach=detach, as_json=as_json)
        return
    models = tuple(str(app.folder) for app in chosen if app.model_path is not None)
    name = name or chosen[0].folder.name.replace("_", "-")
    behind = max(0.0, history) + DEPLOYMENT
    options = checked_options(workers=nodes, seed=seed, speed=speed, behind=behind, models=models, display_name=name)
    begun = monotonic()
    cluster = ChildCluster(name, options, registry.make_directory(name))
    try:
        _bring_up(chosen, cluster, load=not no_load, as_json=as_json)
        _say(f"simulating {history:g} s of history ...", as_json)
        cluster.catch_up()
        entry = RunningCluster(name, cluster.pid, cluster.url, str(cluster.kubeconfig), nodes, seed, speed, now())
        registry.register(entry)
        if grafana is not None:
            _write_private(grafana, data_sources(name, cluster.telemetry))
        _show(cluster, entry, chosen, monotonic() - begun, as_json=as_json, detach=detach)
    except BaseException:
        cluster.close()
        registry.unregister(name)
        raise
    if detach:
        cluster.detach()
    else:
        _wait_for_end(cluster, name)


def _bring_up(chosen: list[Application], cluster: Cluster, *, load: bool, as_json: bool) -> None:
    """Deploy all applications before waiting for the first, so that they start in parallel."""
    for app in chosen:
        _say(f"deploying {app.name} ...", as_json)
        app.deploy(cluster)
    for app in chosen:
        app.wait_until_ready(cluster)
        if load:
            app.start_workload(cluster)


def _start_on_real_cluster(
    chosen: list[Application], config: Config, *, load: bool, detach: bool, as_json: bool
) -> None:
    """Start the applications on a real cluster; everything is deleted at the end, unless `detach` is set."""
    begun = monotonic()
    shared = real_cluster(chosen, config, say=lambda text: _say(f"{text} ...", as_json))
    try:
        _bring_up(chosen, shared, load=load, as_json=as_json)
        context = shared.inner.context
        places = {"kubeconfig": str(context.path), "context": context.name, **_endpoints(shared)}
        if as_json:
            apps = [{"name": app.name, "namespace": app.namespace} for app in chosen]
            click.echo(json.dumps({"run": shared.ledger.run, **places, "applications": apps}))
        else:
            names = ", ".join(f"{app.name} (namespace {app.namespace})" for app in chosen)
            click.echo(f"{names}: up after {monotonic() - begun:.1f} s.\n")
            for key, value in places.items():
                click.echo(f"  {key:<13}{value}")
    except BaseException:
        shared.close()
        raise
    if detach:
        shared.leave_running()
        end = f"srearena cleanup --run {shared.ledger.run}"
        click.echo(
            f"\nThe addresses end with this command, the applications keep running: stop them with `{end}`.",
            err=as_json,
        )
        return
    if not as_json:
        click.echo("\nStop it with Ctrl-C.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        signal.pause()
    except KeyboardInterrupt:
        click.echo("Restoring the cluster.", err=True)
    finally:
        shared.close()


def _write_private(path: Path, text: str) -> None:
    """Write a file that holds a token: its owner alone may read it."""
    try:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror or problem}") from problem


def _endpoints(shared: SharedCluster) -> dict[str, str]:
    try:
        return {kind: value for kind, value in asdict(shared.telemetry).items() if value}
    except ClusterError:
        return {}


def _say(text: str, as_json: bool) -> None:
    if not as_json:
        click.echo(text, err=True)


def _show(
    cluster: ChildCluster,
    entry: RunningCluster,
    chosen: list[Application],
    seconds: float,
    *,
    as_json: bool,
    detach: bool,
) -> None:
    endpoints = asdict(cluster.telemetry)
    if as_json:
        facts = {
            "name": entry.name,
            "kubeconfig": entry.kubeconfig,
            **endpoints,
            "namespace": chosen[0].namespace,
            "applications": [{"name": app.name, "namespace": app.namespace} for app in chosen],
        }
        click.echo(json.dumps(facts))
        return
    names = ", ".join(f"{app.name} (namespace {app.namespace})" for app in chosen)
    click.echo(f"{names}: up after {seconds:.1f} s.\n")
    click.echo(f"  export KUBECONFIG={entry.kubeconfig}")
    for kind in ("prometheus", "loki", "jaeger", "alertmanager"):
        click.echo(f"  {kind:<13}{endpoints[kind]}")
    click.echo(f"  {'token':<13}{endpoints['token']}\n")
    click.echo(f"Watch it with `srearena view {entry.name}` in the browser, or `srearena top {entry.name}` here.")
    click.echo(f"Stop it with `srearena down {entry.name}`." if detach else "Stop it with Ctrl-C.")


def _wait_for_end(cluster: ChildCluster, name: str) -> None:
    """Wait until the user stops the cluster."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        cluster.wait_for_end()
    except KeyboardInterrupt:
        click.echo(f"{name} is down.")
    finally:
        cluster.close()
        registry.unregister(name)
