"""A rotated password stays rotated: the database refuses the old one.

Why it cannot be gamed: the check logs in to the database over the network. Setting the old password again would make
the clients work, and would revert the rotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.service.errors import ServiceError

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class OldPassword(Check):
    """The store refuses the old password of a user."""

    name = "old-password"

    def __init__(self, store: str, user: str, database: str, password: str) -> None:
        self._store = store
        self._login = f"PGPASSWORD={password} psql -h {store} -U {user} {database} -tAc 'select 1'"
        self._user = user

    def complaints(self, problem: Problem) -> list[str]:
        if not problem.fault_injected:
            return []  # nothing has been rotated yet
        labels = f"opentelemetry.io/name={self._store}"
        for pod in problem.kubernetes.list("pods", problem.namespace, labels=labels):
            if (pod.get("status") or {}).get("phase") != "Running":
                continue
            try:
                finished = problem.kubernetes.exec(
                    pod["metadata"]["name"], ["sh", "-c", self._login], problem.namespace
                )
            except ServiceError as failure:
                return [f"{self._store} cannot be queried: {failure}"]
            return [f"{self._store} accepts the old password of {self._user}"] if finished.status == 0 else []
        return [f"{self._store} is not running"]
