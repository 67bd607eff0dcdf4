"""Static pods: run from manifests on the machine's disk, with or without an API server.

For each the kubelet writes a mirror pod to the API, so that it is visible there. A deleted mirror pod is written again;
only removing the manifest ends the pod.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.kubelet.pods.worker import PodWorker
from srearena.cluster.embedded.objects import Obj, annotations_of, copy_of, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending
from srearena.cluster.embedded.registry.errors import AlreadyExists, ApiError

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet

RETRY_SECONDS = 5.0
_PREFIX = "kubernetes.io/config."
MIRROR = f"{_PREFIX}mirror"


def is_mirror(pod: Obj) -> bool:
    return MIRROR in annotations_of(pod)


class StaticPods:
    """The manifests of one machine."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._manifests: dict[str, Obj] = {}
        """By the pod's full name."""

    def add(self, manifest: Obj) -> None:
        """Add a manifest to the machine's manifest folder."""
        pod = self._prepared(manifest)
        self._manifests[name_of(pod)] = pod
        if self._kubelet.running:
            self._write_mirror(name_of(pod))

    def remove(self, name: str) -> None:
        """Remove a manifest (by its own name, without the node's); the pod ends."""
        full = f"{name}-{self._kubelet.name}"
        pod = self._manifests.pop(full, None)
        worker = self._worker(full)
        if pod is None or worker is None:
            return
        worker.static = False
        self._kubelet.client.delete("pods", worker.pod, grace_seconds=0)
        worker.removed()

    def start(self) -> None:
        """Run every manifest; called when the kubelet starts."""
        for name in self._manifests:
            self._write_mirror(name)

    def _worker(self, name: str) -> PodWorker | None:
        return next((w for w in self._kubelet.workers.values() if w.static and name_of(w.pod) == name), None)

    def _prepared(self, manifest: Obj) -> Obj:
        kubelet = self._kubelet
        pod = copy_of(manifest)
        metadata = pod["metadata"]
        metadata["name"] = f"{metadata['name']}-{kubelet.name}"
        metadata.setdefault("namespace", "default")
        digest = hashlib.md5(orjson.dumps(manifest), usedforsecurity=False).hexdigest()
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            f"{_PREFIX}hash": digest,
            MIRROR: digest,
            f"{_PREFIX}seen": format_micro_time(kubelet.clock.now),
            f"{_PREFIX}source": "file",
        }
        spec = pod["spec"]
        spec["nodeName"] = kubelet.name
        spec["tolerations"] = [*(spec.get("tolerations") or ()), {"effect": "NoExecute", "operator": "Exists"}]
        return pod

    def _write_mirror(self, name: str) -> None:
        """Create the mirror pod where it is missing; retried where the write is refused."""
        kubelet = self._kubelet
        pod = self._manifests.get(name)
        if pod is None or not kubelet.running:
            return
        node = kubelet.client.get("nodes", "", kubelet.name)
        mirror = copy_of(pod)
        if node is not None:
            owner = {"apiVersion": "v1", "controller": True, "kind": "Node", "name": kubelet.name}
            mirror["metadata"]["ownerReferences"] = [{**owner, "uid": uid_of(node)}]
        try:
            kubelet.client.create("pods", mirror)
        except AlreadyExists:
            return
        except AdmissionPending as pending:
            pending.ready.then(lambda: self._write_mirror(name))
        except ApiError:
            kubelet.clock.after(RETRY_SECONDS, self._write_mirror, name)

    def adopt(self, pod: Obj) -> bool:
        """Process a mirror pod that appeared or changed; False where the pod is not a mirror pod of this node."""
        if not is_mirror(pod) or name_of(pod) not in self._manifests:
            return False
        kubelet = self._kubelet
        worker = self._worker(name_of(pod))
        if worker is None:
            worker = PodWorker(kubelet, pod, static=True)
            kubelet.workers[worker.uid] = worker
            kubelet.commit(worker)
            worker.begin()
            return True
        if worker.uid != uid_of(pod):
            self._rename(worker, pod)
        if meta(pod).get("deletionTimestamp"):
            kubelet.client.delete("pods", pod, grace_seconds=0)
        elif worker.pod is not pod:
            worker.update(pod)
        return True

    def _rename(self, worker: PodWorker, pod: Obj) -> None:
        """Move the containers to the UID of a recreated mirror pod."""
        kubelet = self._kubelet
        kubelet.workers.pop(worker.uid, None)
        sandbox = kubelet.machine.sandboxes.pop(worker.uid, None)
        kubelet.machine.volumes.pop(worker.uid, None)
        worker.uid = uid_of(pod)
        kubelet.machine.volumes[worker.uid] = worker.volumes
        worker.pod = pod
        worker.status = None
        kubelet.workers[worker.uid] = worker
        if sandbox is not None:
            kubelet.machine.network.detach_pod(sandbox.uid)
            sandbox.uid, sandbox.pod = worker.uid, pod
            kubelet.machine.sandboxes[worker.uid] = sandbox
            sandbox.plug_in()
        worker.sync(0)

    def lost_mirror(self, pod: Obj) -> bool:
        """Write a deleted mirror pod again; False where the pod is not a mirror pod of this node."""
        if not is_mirror(pod) or name_of(pod) not in self._manifests or namespace_of(pod) == "":
            return False
        self._kubelet.clock.after(1.0, self._write_mirror, name_of(pod))
        return True
