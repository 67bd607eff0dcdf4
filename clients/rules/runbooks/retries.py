"""Callers whose retries multiply the load of a callee that is overloaded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import System, containers_of, name_of, path_of

_ATTEMPTS = re.compile(r"RETR(Y|IES)|ATTEMPTS", re.IGNORECASE)
_NOT_A_COUNT = re.compile(r"BACKOFF|DELAY|INTERVAL|TIMEOUT|_MS$", re.IGNORECASE)


@runbook
def multiplies_the_load(system: System) -> Iterator[Hypothesis]:
    """It suffers, its settings have it try again and again, and calls fail although everything is up."""
    failing = {system.owner_of(alert.subject.replace("_", "-")) for alert in system.alerts if "ErrorRate" in alert.name}
    if any(system.unready(one) for one in system.workloads):
        return
    for workload in system.workloads:
        if name_of(workload) not in failing:
            continue
        changes = []
        for index, one in enumerate(containers_of(workload)):
            for place, variable in enumerate(one.get("env") or ()):
                name, value = str(variable["name"]), str(variable.get("value") or "")
                if _ATTEMPTS.search(name) and not _NOT_A_COUNT.search(name) and value.isdigit() and int(value) > 2:
                    path = ("spec", "template", "spec", "containers", index, "env", place, "value")
                    changes.append((path, "1"))
        if changes:
            yield Hypothesis(
                path_of(workload),
                "calls fail while every pod is ready, and its settings have it try several times",
                Strength.LIKELY,
                [commands.patch(workload, changes)],
            )
