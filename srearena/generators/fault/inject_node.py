"""Faults of machines, pods and containers: a stopped kubelet, pods and containers that are killed.

Kubernetes has no API for a machine's own services; those faults use the cluster's node access. What kills pods
repeatedly is an actor in the cluster, as a faulty clean-up job would be: it runs until it is stopped.
"""

from __future__ import annotations

import errno

from srearena.generators.fault.actors import account, deployment, script_container
from srearena.generators.fault.edits import Addition, CompositeFault
from srearena.generators.fault.pod_templates import first_container, pod_spec, set_variable, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import NodeOperation, Pause, pods_of, selector_of, workers
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

FORTIO, FORTIO_PORT = "fortio/fortio:1.69.5", 8080


@fault("kubelet_crash")
def kubelet_crash(bed: Testbed, service: str) -> Fault:
    """The kubelet of every worker stops: containers keep running, and their status is no longer reported."""
    return NodeOperation(bed, workers(bed), "stop_kubelet", "start_kubelet")


@fault("pod_kill")
def pod_kill(bed: Testbed, service: str, actor: str = "pod-recycler", period: int = 12) -> Fault:
    """An actor deletes the pods of a workload every few seconds."""
    selector = selector_of(bed, service)
    script = (
        f"while true; do kubectl -n {bed.namespace} delete pods -l {selector} --grace-period=0 --force --wait=false; "
        f"sleep {period}; done"
    )
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]}]
    pod: Obj = {
        "serviceAccountName": actor,
        "terminationGracePeriodSeconds": 0,
        "containers": [script_container("recycler", script)],
    }
    objects = [*account(actor, bed.namespace, rules), deployment(actor, bed.namespace, pod)]
    return CompositeFault(*(Addition(bed, obj) for obj in objects))


class ReplaceImages(Fault):
    """Changes the image of running pods, but not of their workload."""

    def __init__(self, bed: Testbed, service: str, image: str) -> None:
        self._bed = bed
        self._service = service
        self._image = image
        self._changed: dict[str, str] = {}

    def _set(self, pod: Obj, image: str) -> None:
        name = pod["spec"]["containers"][0]["name"]
        patch = {"spec": {"containers": [{"name": name, "image": image}]}}
        self._bed.kubernetes.patch("pods", pod["metadata"]["name"], patch, self._bed.namespace, manager="kubectl-set")

    def inject(self) -> None:
        for pod in pods_of(self._bed, self._service):
            self._changed[pod["metadata"]["uid"]] = pod["spec"]["containers"][0]["image"]
            self._set(pod, self._image)

    def recover(self) -> None:
        for pod in self._bed.kubernetes.list("pods", self._bed.namespace):
            image = self._changed.get(pod["metadata"]["uid"])
            if image is not None:
                self._set(pod, image)
        self._changed = {}

    def in_place(self) -> bool:
        return bool(self._changed)


@fault("pod_failure")
def pod_failure(bed: Testbed, service: str, image: str = "registry.k8s.io/pause:3.10") -> Fault:
    """The pods of a workload run a pause image."""
    return ReplaceImages(bed, service, image)


@fault("container_kill")
def container_kill(bed: Testbed, service: str, period: int = 20) -> Fault:
    """A sidecar that shares the process namespace kills the main program every few seconds."""

    def change(obj: Obj) -> None:
        program = first_container(obj)["command"][0]
        script = f"while true; do sleep {period}; pkill -9 {program}; done"
        spec = pod_spec(obj)
        spec["shareProcessNamespace"] = True
        spec["containers"].append({"name": "memory-guard", "image": "busybox:1.36", "command": ["sh", "-c", script]})

    return workload_edit(bed, service, change)


@fault("conntrack_exhaustion")
def conntrack_exhaustion(
    bed: Testbed, service: str, tester: str = "gateway-soak", gateway: str = "rpc-gateway"
) -> Fault:
    """A soak test keeps so many connections open that the conntrack table of a workload's node is full."""
    node = pods_of(bed, service)[0]["spec"]["nodeName"]
    # kube-proxy sizes the table as max(131072, 32768 per core) (its defaults conntrack.min and maxPerCore). A client
    # has 28,232 ephemeral ports for one server address (32768 to 60999); 28,000 leaves a few free.
    processors = int(bed.kubernetes.get("nodes", node)["status"]["capacity"]["cpu"])
    room, each = max(131_072, 32_768 * processors), 28_000
    words = ["load", "-c", str(each), "-qps", "100", "-t", "0", f"http://{gateway}:{FORTIO_PORT}/"]
    pod: Obj = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "fortio", "image": FORTIO, "args": words}],
    }
    return CompositeFault(
        Addition(bed, deployment(tester, bed.namespace, pod, replicas=room // each + 1)), Pause(bed, 30)
    )


@fault("noisy_neighbour")
def noisy_neighbour(bed: Testbed, service: str, tenant: str, threads: int = 64) -> Fault:
    """A tenant on a workload's node loses its CPU limit and gets more busy threads than the node has processors."""

    def change(obj: Obj) -> None:
        set_variable(obj, "THREADS", str(threads))
        first_container(obj)["resources"].pop("limits", None)

    return workload_edit(bed, tenant, change)


@fault("eviction_threshold")
def eviction_threshold(bed: Testbed, service: str, share: float = 0.98) -> Fault:
    """The kubelet of a workload's node is configured to keep nearly all of the disk free."""
    node = pods_of(bed, service)[0]["spec"]["nodeName"]
    return NodeOperation(bed, [node], "reserve_disk", "reserve_disk", {"share": share}, {"share": 0.0})


@fault("clock_drift")
def clock_drift(bed: Testbed, service: str, days: int = 30) -> Fault:
    """The clock of a workload's node is ahead by weeks."""
    node = pods_of(bed, service)[0]["spec"]["nodeName"]
    ahead = {"seconds": days * 86_400.0}
    return NodeOperation(bed, [node], "set_clock_skew", "set_clock_skew", ahead, {"seconds": 0.0})


@fault("disk_errors")
def disk_errors(bed: Testbed, service: str) -> Fault:
    """The disk of a workload's node returns I/O errors."""
    node = pods_of(bed, service)[0]["spec"]["nodeName"]
    return NodeOperation(bed, [node], "break_disk", "break_disk", {"number": errno.EIO}, {"number": None})


class CorruptFile(Fault):
    """Overwrites a file in a workload's volume."""

    def __init__(self, bed: Testbed, service: str, file: str) -> None:
        self._bed = bed
        self._service = service
        self._file = file
        self._done = False

    def inject(self) -> None:
        api, namespace = self._bed.kubernetes, self._bed.namespace
        (pod,) = pods_of(self._bed, self._service)
        claims = [one["persistentVolumeClaim"]["claimName"] for one in pod["spec"]["volumes"] if _is_claim(one)]
        volume = api.get("persistentvolumeclaims", claims[0], namespace)["spec"]["volumeName"]
        folder = api.get("persistentvolumes", volume)["spec"]["hostPath"]["path"]
        # Stop the store first: what it writes at shutdown would overwrite the corruption.
        api.scale("deployments", self._service, 0, namespace)
        self._bed.wait_for(lambda: not pods_of(self._bed, self._service), 60.0, f"the pods of {self._service} to go")
        node, path = pod["spec"]["nodeName"], f"{folder}/{self._file}"
        self._bed.cluster.nodes.perform("write_file", node, path=path, data="\x00\x07" * 2048)
        api.scale("deployments", self._service, 1, namespace)
        self._done = True

    def recover(self) -> None:
        """Do nothing: the data is lost, and the store has to be restored or seeded again."""

    def in_place(self) -> bool:
        return self._done


def _is_claim(volume: Obj) -> bool:
    return "persistentVolumeClaim" in volume


@fault("data_corruption")
def data_corruption(bed: Testbed, service: str, file: str = "_mdb_catalog.wt") -> Fault:
    """A store restarts on corrupted data."""
    return CorruptFile(bed, service, file)
