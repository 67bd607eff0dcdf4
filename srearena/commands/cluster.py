"""`srearena cluster`: embedded clusters for any Kubernetes client."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from time import time as now  # noqa: TID251 - what a person reads is real time

import click

from srearena.cluster import registry
from srearena.cluster.base import ClusterError
from srearena.cluster.launcher import advance as advance_time
from srearena.cluster.launcher import checked_options, launch, stop, wait_until_ready
from srearena.cluster.launcher import detach as detach_cluster
from srearena.cluster.registry import RunningCluster
from srearena.option_types import AMOUNT, PORT, SEED, WHOLE

_STOP_TIMEOUT = 10.0


@click.group()
def command() -> None:
    """Start, list and stop embedded Kubernetes clusters."""


@command.command()
@click.option("--name", default="embedded", show_default=True, help="Name of the cluster.")
@click.option(
    "--nodes", type=WHOLE, default=3, show_default=True, help="Worker nodes in addition to the control plane."
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all randomness in the cluster.")
@click.option(
    "--speed", type=AMOUNT, default=1.0, show_default=True, help="Virtual seconds per real second; 0 stops the clock."
)
@click.option("--port", type=PORT, default=0, help="Port of the API on the loopback interface; by default a free one.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Also write the kubeconfig here.")
@click.option("--detach", is_flag=True, help="Return once the API responds; stop it with `srearena cluster down`.")
@click.option("--json", "as_json", is_flag=True, help="Print the cluster as JSON.")
def up(
    name: str, nodes: int, seed: int, speed: float, port: int, kubeconfig: Path | None, detach: bool, as_json: bool
) -> None:
    """Start a cluster and print how to use it."""
    options = checked_options(workers=nodes, seed=seed, speed=speed, port=port)
    begun = monotonic()
    directory = registry.make_directory(name)
    process = launch(options, directory)
    try:
        url = wait_until_ready(process)
        path = _copy_kubeconfig(directory, kubeconfig)
    except BaseException:
        process.kill()
        registry.unregister(name)
        raise
    entry = RunningCluster(name, process.pid, url, str(path), nodes, seed, speed, now())
    registry.register(entry)
    if detach:
        detach_cluster(directory)
    _show(entry, monotonic() - begun, as_json=as_json, detach=detach)
    if not detach:
        _wait_for_end(process, name)


def _copy_kubeconfig(directory: Path, target: Path | None) -> Path:
    source = directory / "kubeconfig"
    if target is None:
        return source
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(mode=0o600)
        shutil.copyfile(source, target)
    except OSError as problem:
        raise ClusterError(f"cannot write the kubeconfig: {problem}") from problem
    return target.absolute()


def _show(entry: RunningCluster, seconds: float, *, as_json: bool, detach: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(entry)))
        return
    click.echo(
        f"Cluster {entry.name!r} is up at {entry.url} after {seconds:.1f} s: 1 control plane, {entry.workers} workers"
    )
    click.echo(f"\n  export KUBECONFIG={entry.kubeconfig}\n  kubectl get pods -A\n")
    click.echo(f"Stop it with `srearena cluster down {entry.name}`." if detach else "Stop it with Ctrl-C.")


def _wait_for_end(process: subprocess.Popen[bytes], name: str) -> None:
    """Wait until the cluster ends or the user stops it, then delete its files."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        status = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(_STOP_TIMEOUT)
        click.echo(f"Cluster {name!r} is down.")
        return
    finally:
        signal.signal(signal.SIGTERM, before)
        registry.unregister(name)
    if status:
        raise ClusterError(f"cluster {name!r} ended with status {status}")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="As a JSON list.")
def list_(as_json: bool) -> None:
    """List the running clusters."""
    entries = registry.all_running()
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries]))
        return
    if not entries:
        click.echo("No cluster is running: `srearena cluster up` starts one.")
        return
    rows = [("NAME", "API", "WORKERS", "SEED", "SPEED", "PID", "KUBECONFIG")]
    rows += [(e.name, e.url, str(e.workers), str(e.seed), f"{e.speed:g}x", str(e.pid), e.kubeconfig) for e in entries]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@command.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Stop every running cluster.")
def down(names: tuple[str, ...], everything: bool) -> None:
    """Stop clusters by name (`embedded` if none is given)."""
    selected = [entry.name for entry in registry.all_running()] if everything else list(names) or ["embedded"]
    for name in selected:
        entry = registry.find(name)
        if entry is None:
            running = ", ".join(other.name for other in registry.all_running()) or "none"
            raise ClusterError(f"no cluster named {name!r} is running (running: {running})")
        _stop(entry)
        click.echo(f"Cluster {name!r} is down.")


def _stop(entry: RunningCluster) -> None:
    stop(entry.pid)
    deadline = monotonic() + _STOP_TIMEOUT
    while entry.alive and monotonic() < deadline:
        signal.sigtimedwait([], 0.05)
    if entry.alive:
        raise ClusterError(
            f"cluster {entry.name!r} (process {entry.pid}) does not stop: end it with `kill {entry.pid}`"
        )
    registry.unregister(entry.name)


@command.command()
@click.argument("seconds", type=AMOUNT)
@click.option("--name", default="embedded", show_default=True)
def advance(seconds: float, name: str) -> None:
    """Advance a cluster's virtual clock by SECONDS, at full speed."""
    if registry.find(name) is None:
        raise ClusterError(f"no cluster named {name!r} is running: `srearena cluster list` lists the running ones")
    advance_time(registry.directory_of(name), seconds)
