"""What a visit to a real cluster has to put right, on disk before anything is changed.

One file per visit under the user's state directory, readable by its owner only: which cluster, which namespaces are
going to be made, how everything else was. It says nothing about what is going to be broken. It is gone when the visit
ended well; one whose process is gone is what `srearena cleanup` finishes.
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
from srearena.cluster.registry import is_alive, state_directory
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.shared_cluster.inventory import as_document, from_document
from srearena.conductor.shared_cluster.journal import Journal


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
    """What `k8s_host` said, and `k8s_user`: the way to the machines."""
    user: str
    begun: str
    """The cluster's time when the inventory was taken."""
    namespaces: tuple[str, ...]
    """Those that we make; none of them was there."""
    inventory: Baseline = field(repr=False)
    pid: int = 0
    kept: bool = False
    """Whether what was put there is to stay when its process ends (`srearena up --detach`)."""
    machines: bool = False
    """Whether machines may have been touched."""

    @property
    def path(self) -> Path:
        return folder() / f"{self.run}.json"

    @property
    def journal(self) -> Journal:
        """What was made since, by us and by the agent."""
        return Journal(self.path.with_suffix(".made"), self.namespaces)

    @property
    def alive(self) -> bool:
        """Whether the process that made it is still at work."""
        return self.pid != 0 and is_alive(self.pid)

    def write(self) -> None:
        """Appears whole or not at all, and is on the disk when this returns."""
        place = folder()
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
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

    def changed(self, **fields: Any) -> Ledger:
        """Written anew with other fields."""
        new = replace(self, **fields)
        new.write()
        return new

    def forget(self) -> None:
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
        raise ClusterError(f"the record of a visit at {path} cannot be read: {problem}") from problem


def all_ledgers() -> list[Ledger]:
    place = folder()
    return [read_ledger(path) for path in sorted(place.glob("*.json"))] if place.is_dir() else []


def refuse_company(ledgers: Sequence[Ledger], cluster: str) -> None:
    """One visit at a time: ClusterError where another is under way on this cluster, or was never finished."""
    for ledger in ledgers:
        if ledger.cluster != cluster:
            continue
        if ledger.alive:
            raise ClusterError(f"run {ledger.run} uses this cluster (process {ledger.pid}): wait until it ends")
        if ledger.kept:
            raise ClusterError(
                f"`srearena up` left run {ledger.run} here: `srearena cleanup --run {ledger.run}` ends it"
            )
        raise ClusterError(
            f"run {ledger.run} did not end well on this cluster: `srearena cleanup` puts everything back first"
        )
