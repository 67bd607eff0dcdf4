"""What alerts are about, where nothing better is known: a symptom for each component."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import System, path_of

_EFFECTS = re.compile(r"Stopped|NoRequests|NoDatabase|Latency|ErrorRate")
"""Alerts about requests: they may be the fault of what is called, or of what no longer calls."""


@runbook
def alerted(system: System) -> Iterator[Hypothesis]:
    own = [alert for alert in system.alerts if not _EFFECTS.search(alert.name)]
    requests = [alert for alert in system.alerts if re.search("Latency|ErrorRate", alert.name)]
    for alerts in (own, requests):
        for alert in alerts:
            workload = system.workload(system.owner_of(alert.subject.replace("_", "-")))
            if workload is not None:
                why = f"alert {alert.name}: {alert.text}"[:200]
                yield Hypothesis(path_of(workload), why, Strength.SYMPTOM, [commands.restart(workload)])
        if alerts:
            return
