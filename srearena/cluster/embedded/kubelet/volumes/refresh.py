"""Update mounted config maps and secrets in running pods.

The kubelet syncs each pod about once a minute; a change becomes visible at the pod's next sync. Files mounted through
a subPath and environment variables are not updated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.kubelet.volumes.projections import MountError, write_payload
from srearena.cluster.embedded.kubelet.volumes.volumes import group_of
from srearena.cluster.embedded.objects import Obj, name_of, namespace_of
from srearena.cluster.embedded.store import Change

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker
    from srearena.cluster.embedded.world import World

PERIOD = 60.0
SPREAD = 0.5
WATCHED = ("configmaps", "secrets")

Place = tuple[str, str, str]


class VolumeRefresh:
    """Tracks which pods mount which objects."""

    def __init__(self, world: World) -> None:
        self._clock = world.clock
        self._random = world.randomness.stream("volume-refresh")
        self._interested: dict[Place, dict[str, PodWorker]] = {}
        self._planned: set[str] = set()
        for resource in WATCHED:
            world.on_change(resource, self._handle_change)

    def register(self, worker: PodWorker, references: list[tuple[str, str]]) -> None:
        namespace = namespace_of(worker.pod)
        for resource, name in references:
            self._interested.setdefault((resource, namespace, name), {})[worker.uid] = worker

    def forget(self, worker: PodWorker) -> None:
        namespace = namespace_of(worker.pod)
        for volume in worker.volumes.values():
            for resource, name in volume.references:
                place = (resource, namespace, name)
                workers = self._interested.get(place)
                if workers is not None:
                    workers.pop(worker.uid, None)
                    if not workers:
                        del self._interested[place]

    def _handle_change(self, change: Change) -> None:
        place = (change.resource, namespace_of(change.new), name_of(change.new))
        for worker in self._interested.get(place, {}).values():
            self.plan(worker)

    def plan(self, worker: PodWorker) -> None:
        """Schedule a refresh of the pod's files at its next sync."""
        if worker.uid not in self._planned:
            self._planned.add(worker.uid)
            turn = self._random.random() * PERIOD * (1 + self._random.random() * SPREAD)
            self._clock.after(turn, self._refresh, worker)

    def _refresh(self, worker: PodWorker) -> None:
        self._planned.discard(worker.uid)
        kubelet = worker.kubelet
        if not worker.volumes or not kubelet.running or not kubelet.online:
            return
        projector = kubelet.projector(worker.field_sources())
        for volume in worker.pod["spec"].get("volumes") or ():
            mounted = worker.volumes.get(volume["name"])
            if mounted is None or not _is_projected(volume):
                continue
            try:
                payload = projector.payload(worker.pod, volume)
            except MountError as error:
                text = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
                kubelet.event(worker.pod, "Warning", "FailedMount", text)
                continue
            write_payload(mounted.volume, payload, kubelet.machine.now, group_of(worker.pod))


def _is_projected(volume: Obj) -> bool:
    return any(kind in volume for kind in ("configMap", "secret", "projected", "downwardAPI"))
