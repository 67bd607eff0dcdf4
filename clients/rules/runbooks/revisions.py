"""Workloads that are ready and suffer since a revision, or make those that call them suffer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import System, name_of, path_of

_STARVED = re.compile("Throttl|OOM|Memory|Restart|NotReady|Crash")


@runbook
def changed_before_the_trouble(system: System) -> Iterator[Hypothesis]:
    """A revision changed how a program runs, shortly before something began to suffer."""
    if not system.alerts:
        return
    found: list[tuple[str, Hypothesis]] = []
    for workload in system.own("deployments"):
        revision = suspicious_revision(system, workload)
        if revision is None or not system.preceded_trouble(revision.at) or system.unready(workload):
            continue
        suffers = name_of(workload) in system.suffering
        resources = all(one.path[-1] == "resources" for one in revision.differences)
        if resources and not any(
            _STARVED.search(a.name) and system.owner_of(a.subject) == name_of(workload) for a in system.alerts
        ):
            strength = Strength.LIKELY if suffers else Strength.POSSIBLE
        else:
            strength = Strength.CONFIRMED if suffers else Strength.POSSIBLE
        one = Hypothesis(
            path_of(workload),
            f"shortly before the first alert its revision changed {'; '.join(map(str, revision.differences))}"[:400],
            strength,
            [commands.revert(workload, revision.differences)],
        )
        found.append(("; ".join(map(str, revision.differences)), one))
    # The same change in one release: what it did to most, it did to all.
    certain = Counter(change for change, one in found if one.strength is Strength.CONFIRMED)
    for change, one in found:
        if certain[change] > 2:
            one.strength = Strength.CONFIRMED
        yield one
