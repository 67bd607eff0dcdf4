"""A rotated password stays rotated: the database refuses the old one.

Why it cannot be gamed: a pod of the harness logs in over the network, by the name of the store's Service, with the
client of the store's own image; nothing in the agent's containers is executed, and pods that only carry the store's
labels are not asked. Setting the old password again would make the clients work, and would revert the rotation. Only
the server's answer that the password is wrong counts as a refusal: no answer is a complaint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, declared_image, run_probe

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_REFUSED = "password authentication failed"


class OldPassword(Check):
    """The store refuses the old password of a user."""

    name = "old-password"

    def __init__(self, store: str, user: str, database: str, password: str) -> None:
        self._store = store
        self._login = f"PGPASSWORD={password} psql -h {store} -U {user} {database} -tAc 'select 1' 2>&1; true"
        self._user = user

    def complaints(self, problem: Problem) -> list[str]:
        if not problem.fault_injected:
            return []  # nothing has been rotated yet
        try:
            answer = run_probe(problem, self._login, image=declared_image(problem, self._store)).strip()
        except ProbeFailed as failed:
            return [str(failed)]
        if _REFUSED in answer:
            return []
        if answer == "1":
            return [f"{self._store} accepts the old password of {self._user}"]
        return [f"{self._store} does not answer a login: {answer[-200:]}"]
