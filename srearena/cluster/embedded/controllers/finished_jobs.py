"""Delete finished jobs after their ttlSecondsAfterFinished, with their pods."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.jobs import JOBS
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, condition_is, dig, is_terminating


class TtlAfterFinishedController(Controller):
    name = "ttl-after-finished-controller"

    def start(self) -> None:
        self.watch(JOBS)

    def reconcile(self, key: str) -> None:
        job = self.client.get(JOBS, *split_key(key))
        if job is None or is_terminating(job):
            return
        lifetime = dig(job, "spec", "ttlSecondsAfterFinished")
        finished = _finished_at(job)
        if lifetime is None or finished is None:
            return
        left = finished + lifetime - self.clock.now
        if left > 0:
            self.enqueue(key, left)
        else:
            self.client.delete(JOBS, job, propagation="Foreground")


def _finished_at(job: Obj) -> float | None:
    for kind in ("Complete", "Failed"):
        if condition_is(job, kind):
            moments = [c["lastTransitionTime"] for c in job["status"]["conditions"] if c["type"] == kind]
            return parse_time(moments[0])
    return None
