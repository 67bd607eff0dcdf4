"""Mount a pod's volumes: each is retried with back-off until all of them are mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.kubelet.volumes.projections import MountError
from srearena.cluster.embedded.kubelet.volumes.volumes import NotAttached, UnprocessedVolume, needed_volumes
from srearena.cluster.embedded.objects import Obj

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker

MOUNT_SECONDS = 0.12
FIRST_DELAY = 0.5
LAST_DELAY = 122.0
ATTACH_POLL = 1.0


async def mount_volumes(worker: PodWorker) -> bool:
    """True once every volume is mounted; False where the sync ends without them."""
    missing = {volume["name"]: volume for volume in needed_volumes(worker.pod) if volume["name"] not in worker.volumes}
    if not missing:
        return True
    clock, statistics = worker.kubelet.clock, worker.kubelet.statistics
    seconds = worker.kubelet.jitter(MOUNT_SECONDS, 0.8)
    await clock.sleep(seconds)
    delays: dict[str, float] = {}
    retry_at = dict.fromkeys(missing, clock.now)
    while not worker.is_stopping():
        for name in [name for name in missing if retry_at[name] <= clock.now]:
            try:
                worker.mount(missing[name])
            except MountError as error:
                statistics.mounted(missing[name], seconds, "fail-unknown")
                text = f'{error.operation} failed for volume "{_display_name(worker, missing[name])}" : {error}'
                worker.kubelet.event(worker.pod, "Warning", "FailedMount", text)
                delays[name] = min(delays[name] * 2, LAST_DELAY) if name in delays else FIRST_DELAY
                retry_at[name] = clock.now + delays[name]
            except NotAttached:
                retry_at[name] = clock.now + ATTACH_POLL
            except UnprocessedVolume as error:
                _report_unmounted(worker, sorted(missing), name, error)
                return False
            else:
                statistics.mounted(missing[name], seconds)
                del missing[name]
        if not missing:
            return True
        await worker.stop_signal.wait(min(retry_at[name] for name in missing) - clock.now)
    return False


def _display_name(worker: PodWorker, volume: Obj) -> str:
    """The name in the message: the persistent volume's where there is one."""
    claim = volume.get("persistentVolumeClaim")
    if not claim:
        return str(volume["name"])
    found = worker.kubelet.client.get(
        "persistentvolumeclaims", worker.pod["metadata"]["namespace"], claim.get("claimName", "")
    )
    return str(((found or {}).get("spec") or {}).get("volumeName") or volume["name"])


def _report_unmounted(worker: PodWorker, unmounted: list[str], failed: str, error: UnprocessedVolume) -> None:
    text = (
        f"Unable to attach or mount volumes: unmounted volumes=[{' '.join(unmounted)}], unattached volumes=[], "
        f"failed to process volumes=[{failed}]: {error}"
    )
    worker.kubelet.event(worker.pod, "Warning", "FailedMount", text)
