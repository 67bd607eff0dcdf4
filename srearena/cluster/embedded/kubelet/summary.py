"""The kubelet's summary of resource usage (`/stats/summary`) and the metrics made of it (`/metrics/resource`).

Both are read from the meters when they are asked for; rates are those of metrics-server's last two samples. Memory is
a working set without page cache, so usage and resident memory agree with it. There are no page faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from srearena.cluster.embedded.durations import format_time, parse_time
from srearena.cluster.embedded.machine.containers.memory_parts import MACHINE_RSS, NO_MEMORY, MemoryParts, memory_parts
from srearena.cluster.embedded.machine.networking.interface_counters import Carried
from srearena.cluster.embedded.objects import Obj, name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet
    from srearena.cluster.embedded.kubelet.node.usage import Usage, UsageSampler
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker
    from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
    from srearena.cluster.embedded.machine.files.inodes import Space

BYTES_PER_INODE = 16_384
"""The ratio with which mkfs.ext4 creates a file system."""
BYTES_PER_FILE = 40_000
"""The average size of a file of an operating system and of images. Chosen."""
_MAX_PID = 4_194_304


class Summary:
    """The summary of one node at one instant."""

    def __init__(self, kubelet: Kubelet, sampler: UsageSampler) -> None:
        self._kubelet = kubelet
        self._machine = kubelet.machine
        self._sampler = sampler
        self._now = kubelet.clock.now
        self._time = format_time(self._now)

    def document(self) -> Obj:
        pods = [
            self._pod(worker, sandbox)
            for uid, worker in self._kubelet.workers.items()
            if (sandbox := self._machine.sandboxes.get(uid)) is not None and sandbox.ready
        ]
        return {"node": self._node(), "pods": pods}

    def _node(self) -> Obj:
        machine = self._machine
        usage = self._sampler.of_node(self._kubelet.name)
        disk = self._space(machine.disk)
        cpu = self._sampler.cpu_seconds_of(machine)
        processes = sum(len(record.container.pids.processes) for record in machine.live.values() if record.container)
        return {
            "nodeName": self._kubelet.name,
            "startTime": format_time(machine.booted_at),
            "cpu": self._cpu(usage, cpu),
            "memory": self._memory(_of_machine(machine.memory_working_set()), machine.memory),
            "network": self._network(machine.namespace.carried),
            "fs": disk,
            "runtime": {"imageFs": disk, "containerFs": disk},
            "rlimit": {"time": self._time, "maxpid": _MAX_PID, "curproc": processes},
        }

    def _pod(self, worker: PodWorker, sandbox: Sandbox) -> Obj:
        pod = worker.pod
        usages = self._sampler.of_pod(self._kubelet, pod) or {}
        containers = []
        cpu, memory, processes, disk = 0.0, NO_MEMORY, 0, 0
        for record in sandbox.running():
            container = record.container
            if container is None:
                continue
            containers.append(self._container(record, usages.get(record.name)))
            cpu += container.meter.cpu_seconds()
            memory = memory.plus(memory_parts(container, record.working_set))
            processes += len(container.pids.processes)
            disk += container.filesystem.root.volume.space.used + record.log.size
        rates = [usage.cores for usage in usages.values()]
        limits = [record.container.meter.memory_limit for record in sandbox.running() if record.container is not None]
        limit = sum(limit for limit in limits if limit) if limits and all(limits) else None
        started = (pod.get("status") or {}).get("startTime") or format_time(sandbox.created_at)
        found: Obj = {
            "podRef": {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)},
            "startTime": started,
            "containers": containers,
            "cpu": {**self._cpu(None, cpu), **({"usageNanoCores": round(sum(rates) * 1e9)} if rates else {})},
            "memory": self._memory(memory, limit),
            "volume": list(self._volumes(worker)),
            "ephemeral-storage": {**self._space(self._machine.disk), "usedBytes": disk},
            "process_stats": {"process_count": processes},
        }
        if not sandbox.host_network:
            found["network"] = self._network(sandbox.namespace.carried)
        return found

    def _container(self, record: ContainerRecord, usage: Usage | None) -> Obj:
        container = record.container
        assert container is not None
        disk = self._space(self._machine.disk)
        return {
            "name": record.name,
            "startTime": format_time(record.started_at),
            "cpu": self._cpu(usage, container.meter.cpu_seconds()),
            "memory": self._memory(memory_parts(container, record.working_set), container.meter.memory_limit),
            "rootfs": {**disk, "usedBytes": container.filesystem.root.volume.space.used},
            "logs": {**disk, "usedBytes": record.log.size},
        }

    def _cpu(self, usage: Usage | None, seconds: float) -> Obj:
        rate = {"usageNanoCores": round(usage.cores * 1e9)} if usage is not None else {}
        return {"time": self._time, **rate, "usageCoreNanoSeconds": round(seconds * 1e9)}

    def _memory(self, memory: MemoryParts, limit: int | None) -> Obj:
        free = {"availableBytes": max(0, limit - memory.working_set)} if limit else {}
        measured = {"usageBytes": memory.usage, "workingSetBytes": memory.working_set, "rssBytes": memory.rss}
        return {"time": self._time, **free, **measured, "pageFaults": 0, "majorPageFaults": 0}

    def _network(self, carried: Carried) -> Obj:
        received, _, sent, _, _ = map(int, carried.totals(self._now))
        counters = {"rxBytes": received, "rxErrors": 0, "txBytes": sent, "txErrors": 0}
        interface = {"name": "eth0", **counters}
        return {"time": self._time, **interface, "interfaces": [interface]}

    def _volumes(self, worker: PodWorker) -> Iterator[Obj]:
        claims = {
            spec["name"]: spec["persistentVolumeClaim"]["claimName"]
            for spec in worker.pod["spec"].get("volumes") or ()
            if spec.get("persistentVolumeClaim")
        }
        for name, mounted in worker.volumes.items():
            volume = {**self._space(mounted.volume.space), "name": name}
            if name in claims:
                volume["pvcRef"] = {"name": claims[name], "namespace": namespace_of(worker.pod)}
            yield volume

    def _space(self, space: Space) -> Obj:
        size, used = space.limits
        inodes = size // BYTES_PER_INODE
        taken = min(inodes, used // BYTES_PER_FILE)
        return {
            "time": self._time,
            "availableBytes": max(0, size - used),
            "capacityBytes": size,
            "usedBytes": used,
            "inodesFree": inodes - taken,
            "inodes": inodes,
            "inodesUsed": taken,
        }


_RESOURCE_METRICS = (
    ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the container in core-seconds"),
    ("container_memory_working_set_bytes", "gauge", "Current working set of the container in bytes"),
    ("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds"),
    ("node_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the node in core-seconds"),
    ("node_memory_working_set_bytes", "gauge", "Current working set of the node in bytes"),
    ("pod_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the pod in core-seconds"),
    ("pod_memory_working_set_bytes", "gauge", "Current working set of the pod in bytes"),
    ("resource_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise"),
)


def resource_metrics(summary: Obj, now: float) -> str:
    """`/metrics/resource`: the processor time and memory in a summary, in the Prometheus text format."""
    samples: dict[str, list[str]] = {name: [] for name, _, _ in _RESOURCE_METRICS}
    stamp = round(now * 1000)

    def add(prefix: str, labels: str, measured: Obj) -> None:
        cpu = measured["cpu"]["usageCoreNanoSeconds"] / 1e9
        memory = measured["memory"]["workingSetBytes"]
        samples[f"{prefix}_cpu_usage_seconds_total"].append(f"{labels} {cpu!r} {stamp}")
        samples[f"{prefix}_memory_working_set_bytes"].append(f"{labels} {memory} {stamp}")

    add("node", "", summary["node"])
    for pod in summary["pods"]:
        name, namespace = pod["podRef"]["name"], pod["podRef"]["namespace"]
        add("pod", f'{{namespace="{namespace}",pod="{name}"}}', pod)
        for container in pod["containers"]:
            labels = f'{{container="{container["name"]}",namespace="{namespace}",pod="{name}"}}'
            add("container", labels, container)
            samples["container_start_time_seconds"].append(f"{labels} {parse_time(container['startTime'])!r}")
    samples["resource_scrape_error"].append(" 0")
    lines = []
    for name, kind, help_text in _RESOURCE_METRICS:
        lines += [f"# HELP {name} [STABLE] {help_text}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{sample}" for sample in samples[name]]
    return "\n".join(lines) + "\n"


def _of_machine(used: int) -> MemoryParts:
    return MemoryParts(used, used, int(MACHINE_RSS * used), 0)
