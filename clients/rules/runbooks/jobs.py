"""Scheduled jobs whose runs pile up or fail."""

from __future__ import annotations

from collections.abc import Iterator

from clients.rules import commands
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, path_of


def _runs(system: System, schedule: Obj) -> list[Obj]:
    return [
        job
        for job in system.own("jobs")
        if any(ref["uid"] == schedule["metadata"]["uid"] for ref in job["metadata"].get("ownerReferences") or ())
    ]


@runbook
def runs_pile_up(system: System) -> Iterator[Hypothesis]:
    """Several runs are active at once: earlier ones do not end."""
    for schedule in system.own("cronjobs"):
        runs = [job for job in _runs(system, schedule) if (job.get("status") or {}).get("active")]
        if len(runs) < 2:
            continue
        repairs: list[Repair] = []
        lasting = {name for job in runs for name in _still_running(system, job)}
        base = ("spec", "jobTemplate", "spec", "template", "spec")
        spec = schedule["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        ending = [one for one in spec["containers"] if one["name"] not in lasting]
        if lasting and ending:
            # What runs beside the work has to be a sidecar: an init container that is restarted.
            sidecars = [{**one, "restartPolicy": "Always"} for one in spec["containers"] if one["name"] in lasting]
            changes = [
                ((*base, "initContainers"), [*(spec.get("initContainers") or ()), *sidecars]),
                ((*base, "containers"), ending),
            ]
            repairs.append(commands.patch(schedule, changes))
        repairs += [commands.delete(job) for job in runs]
        yield Hypothesis(
            path_of(schedule),
            f"{len(runs)} of its runs are active at once" + (f": {', '.join(lasting)} never ends" if lasting else ""),
            Strength.CONFIRMED,
            repairs,
            frozenset({name_of(schedule), *(name_of(job) for job in runs)}),
        )


def _still_running(system: System, job: Obj) -> Iterator[str]:
    """The containers of a run that go on although another has completed."""
    for pod in system.own("pods"):
        if not any(ref["uid"] == job["metadata"]["uid"] for ref in pod["metadata"].get("ownerReferences") or ()):
            continue
        states = (pod.get("status") or {}).get("containerStatuses") or ()
        if any("terminated" in (one.get("state") or {}) for one in states):
            yield from (str(one["name"]) for one in states if "running" in (one.get("state") or {}))
