"""`srearena cleanup`: what a run on a real cluster left behind when it was killed."""

from __future__ import annotations

from pathlib import Path

import click

from srearena.cluster.base import ClusterError
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.conductor.episode.environment import machines_of
from srearena.conductor.shared_cluster import Ledger, all_ledgers, restore
from srearena.conductor.shared_cluster.restoration import plan
from srearena.config import Config
from srearena.service.kubernetes import Kubernetes


@click.command()
@click.option("--run", "name", help="Only this run; by default all whose process is gone.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, without changing anything.")
def command(name: str | None, dry_run: bool) -> None:
    """Restore real clusters after runs that ended without restoring them."""
    ledgers = all_ledgers()
    chosen = [entry for entry in ledgers if entry.run == name] if name else [e for e in ledgers if not e.alive]
    if name and not chosen:
        known = ", ".join(entry.run for entry in ledgers) or "none"
        raise ClusterError(f"there is nothing to clean up of run {name!r} (known: {known})")
    for entry in ledgers:
        if entry.alive and (name is None or entry.run == name):
            click.echo(
                f"run {entry.run} is in progress (process {entry.pid}) and restores the cluster when it ends", err=True
            )
    chosen = [entry for entry in chosen if not entry.alive]
    if not chosen:
        click.echo("There is nothing to clean up.")
    unfinished = [entry.run for entry in chosen if not _clean(entry, dry_run)]
    if unfinished:
        raise ClusterError(f"not everything is restored: run `srearena cleanup --run {unfinished[0]}` again later")


def _clean(ledger: Ledger, dry_run: bool) -> bool:
    """Restore the cluster of one run; whether that is complete (or would be)."""
    cluster = KubernetesCluster(Path(ledger.kubeconfig), context=ledger.context, name=ledger.host)
    with cluster, Kubernetes.of(cluster) as api:
        identity = api.get("namespaces", "kube-system")["metadata"]["uid"]
        if identity != ledger.cluster:
            ledger.delete()
            click.echo(f"run {ledger.run}: its cluster no longer exists; the ledger is deleted")
            return True
        click.echo(f"run {ledger.run} on {ledger.context} ({ledger.server})")
        if dry_run:
            for line in plan(api, ledger):
                click.echo(f"  would {line}")
            return True
        cluster.set_node_access(machines_of(cluster, Config(k8s_host=ledger.host, k8s_user=ledger.user)))
        report = restore(cluster, api, ledger, lambda text: click.echo(f"  {text}"))
    for line in report.done:
        click.echo(f"  {line}")
    for line in report.foreign:
        click.echo(f"  not deleted, because it may belong to others: {line}")
    for line in report.unrestored:
        click.echo(f"  not restored: {line}")
    if not report.unrestored:
        ledger.delete()
    return not report.unrestored
