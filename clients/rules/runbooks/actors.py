"""What disturbs others: programs that delete pods, jobs that lock, priorities that push out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import created_at, edited
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, path_of
from clients.rules.topology import calls, configuration_of, mentions, targets

_DELETED = re.compile(
    r'pod "?([a-z0-9.-]+)"? (?:force )?deleted|(?:deleting|killing|evict\w*) pod[/ ]"?([a-z0-9.-]+)', re.I
)


@runbook
def deletes_pods(system: System) -> Iterator[Hypothesis]:
    """Its log or its command tells that it deletes pods of others, again and again."""
    for workload in system.workloads:
        text = configuration_of(system, workload)
        logged = {first or second for first, second in _DELETED.findall(system.logs_of(name_of(workload)))}
        victims = {system.owner_of(pod) for pod in logged} - {"", name_of(workload)}
        deletes = re.search(r"\bdelete\s+pods?\b|\bkubectl\b.*\bdelete\b", text)
        if not (victims and len(logged) > 1) and not deletes:
            continue
        yield Hypothesis(
            path_of(workload),
            f"it deletes pods of {', '.join(sorted(victims)) or 'others'}",
            Strength.CONFIRMED,
            [commands.scale(workload, 0)],
            frozenset({name_of(workload), *victims}),
            "Operation Error",
        )


@runbook
def job_started_before_the_trouble(system: System) -> Iterator[Hypothesis]:
    """A job that runs since shortly before the first alert works on something that others depend on."""
    if not system.alerts:
        return
    known, graph = targets(system), calls(system)
    for job in system.own("jobs"):
        started = created_at(job)
        if not (job.get("status") or {}).get("active") or not system.preceded_trouble(started):
            continue
        if job["metadata"].get("ownerReferences") or started > system.onset:
            continue
        used = set(mentions(configuration_of(system, job), known))
        hurt = {name for name in system.suffering if name in used or graph.get(name, set()) & used}
        yield Hypothesis(
            path_of(job),
            f"it runs since shortly before the first alert, and uses {', '.join(sorted(used)) or 'resources'}",
            Strength.CONFIRMED if hurt else Strength.POSSIBLE,
            [commands.delete(job)],
            frozenset({name_of(job), *used}),
            "Operation Error",
        )


@runbook
def pushes_out(system: System) -> Iterator[Hypothesis]:
    """A priority class gives other pods precedence, and these have pods of the application evicted."""
    preempted = [
        system.owner_of(str((event.get("involvedObject") or {}).get("name")))
        for event in system.own("events")
        if event.get("reason") == "Preempted"
    ]
    victims = {name for name in preempted if name}
    if not victims:
        return
    classes = [one for one in system.all("priorityclasses") if not name_of(one).startswith("system-")]
    # The default class, or the highest that a pod has.
    used = {str(pod["spec"].get("priorityClassName")) for pod in system.all("pods")}
    guilty = [one for one in classes if name_of(one) in used or one.get("globalDefault")]
    guilty.sort(key=lambda one: (not one.get("globalDefault"), -max(created_at(one), edited(one, "value"))))
    for one in guilty[:1]:
        holders = [w for w in _holders(system, name_of(one)) if name_of(w) not in victims]
        yield Hypothesis(
            path_of(one),
            f"its pods push out those of {', '.join(sorted(victims))}",
            Strength.CONFIRMED,
            [commands.delete(one), *(commands.restart(w) for w in holders)],
            frozenset(victims | {name_of(w) for w in system.workloads}),
        )


def _holders(system: System, name: str) -> list[Obj]:
    found = []
    for resource in ("deployments", "statefulsets"):
        for one in system.all(resource):
            pods = [p for p in system.all("pods") if str(p["metadata"]["name"]).startswith(f"{name_of(one)}-")]
            if any(pod["spec"].get("priorityClassName") == name for pod in pods):
                found.append(one)
    return found
