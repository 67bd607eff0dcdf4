"""The state that a run on a shared cluster has to restore, on disk before anything is changed.

One file per run under the user's state directory, readable by its owner only: which cluster, which namespaces the run
will create, and the state of everything else. It says nothing about the fault. It is deleted when the cluster is
restored; where its process has died before, `srearena cleanup` restores the cluster from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from srearena.cluster.base import ClusterError
from srearena.cluster.registry import is_alive
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.shared_cluster.inventory import as_document, from_document
from srearena.conductor.shared_cluster.journal import Journal
from srearena.paths import state_directory


@dataclass(frozen=True, slots=True)
class Ledger:
    run: str
    cluster: str
    """The UID of the namespace kube-system: the cluster itself, whatever its address."""
    server: str
    kubeconfig: str
    """The user's own file; credentials are not copied."""
    context: str
    host: str
    """The configured `k8s_host`: how to reach the machines."""
    user: str
    """The configured `k8s_user`."""
    begun: str
    """The cluster's time when the inventory was recorded."""
    namespaces: tuple[str, ...]
    """The namespaces that the run creates; none existed before."""
    inventory: Baseline = field(repr=False)
    pid: int = 0
    kept: bool = False
    """Whether the applications stay when the process ends (`srearena up --detach`)."""
    machines: bool = False
    """Whether machines may have been changed."""

    @property
    def path(self) -> Path:
        return folder() / f"{self.run}.json"

    @property
    def journal(self) -> Journal:
        """The objects that the run has created since, by the harness and by the agent."""
        return Journal(self.path.with_suffix(".made"), self.namespaces)

    @property
    def alive(self) -> bool:
        """Whether the process of the run still exists."""
        return self.pid != 0 and is_alive(self.pid)

    def write(self) -> None:
        """Write the file atomically and flush it to disk."""
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self.path.with_suffix(".new")
        names = (
            "run",
            "cluster",
            "server",
            "kubeconfig",
            "context",
            "host",
            "user",
            "begun",
            "pid",
            "kept",
            "machines",
        )
        document: dict[str, Any] = {name: getattr(self, name) for name in names}
        document |= {"namespaces": list(self.namespaces), "inventory": as_document(self.inventory)}
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)

    def update(self, **fields: Any) -> Ledger:
        """Write the ledger with changed fields and return it."""
        updated = replace(self, **fields)
        updated.write()
        return updated

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".made").unlink(missing_ok=True)


def folder() -> Path:
    return state_directory() / "visits"


def new_name() -> str:
    return token_hex(4)


def read_ledger(path: Path) -> Ledger:
    try:
        document = json.loads(path.read_text())
        inventory = from_document(document.pop("inventory"))
        return Ledger(**{**document, "namespaces": tuple(document["namespaces"]), "inventory": inventory})
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ClusterError(f"the ledger {path} of a run on a shared cluster cannot be read: {problem}") from problem


def all_ledgers() -> list[Ledger]:
    return [read_ledger(path) for path in sorted(folder().glob("*.json"))] if folder().is_dir() else []


def refuse_concurrent_run(ledgers: Sequence[Ledger], cluster: str) -> None:
    """ClusterError where another run is in progress on this cluster, or has not restored it."""
    for ledger in ledgers:
        if ledger.cluster != cluster:
            continue
        if ledger.alive:
            raise ClusterError(f"run {ledger.run} uses this cluster (process {ledger.pid}): wait until it ends")
        if ledger.kept:
            raise ClusterError(
                f"`srearena up` left run {ledger.run} here: `srearena cleanup --run {ledger.run}` ends it"
            )
        raise ClusterError(f"run {ledger.run} ended without restoring this cluster: run `srearena cleanup` first")
