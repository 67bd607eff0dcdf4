"""Metrics of the kubelet: the pods it runs, the volumes of their claims, the results of probes."""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.node.node_object import KUBELET_VERSION
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.kubelet.pods.worker import PodWorker
from srearena.cluster.embedded.kubelet.probing.probes import Probe
from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume
from srearena.cluster.embedded.objects import name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors.node_job import KubeletJob
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_STATES = ("created", "exited", "running")
_VOLUME = (
    "kubelet_volume_stats_capacity_bytes",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_used_bytes",
    "kubelet_volume_stats_health_status_abnormal",
)


class KubeletCollector(KubeletJob):
    path = "/metrics"
    metrics = (
        ("kubelet_running_pods", "gauge", "Pods with a running sandbox."),
        ("kubelet_running_containers", "gauge", "Containers by state."),
        ("kubelet_node_name", "gauge", "The node's name."),
        ("kubernetes_build_info", "gauge", "The kubelet's version."),
        ("kubelet_volume_stats_capacity_bytes", "gauge", "Size of a claim's volume."),
        ("kubelet_volume_stats_available_bytes", "gauge", "What is free of it."),
        ("kubelet_volume_stats_used_bytes", "gauge", "What is used of it."),
        ("kubelet_volume_stats_health_status_abnormal", "gauge", "1 where the volume cannot be used."),
    )

    def __init__(self, nodes: Nodes, scraper: Scraper, store: MetricStore) -> None:
        super().__init__(nodes, scraper, store)
        self._claims: dict[str, dict[str, list[tuple[str, str]]]] = {}
        """By node and pod: volumes and their claims, which are immutable."""

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        if "kubelet" not in buffer:
            rows: list[Mapping[str, str]] = [{"__name__": "kubelet_running_pods"}]
            rows += ({"__name__": "kubelet_running_containers", "container_state": state} for state in _STATES)
            rows.append({"__name__": "kubelet_node_name"})
            version = {"git_version": KUBELET_VERSION, "major": "1", "minor": KUBELET_VERSION.split(".")[1]}
            rows.append({"__name__": "kubernetes_build_info", **version, "platform": "linux/amd64"})
            buffer.put("kubelet", rows, [0.0] * len(rows))
        buffer.set("kubelet", (*_running(kubelet), 1.0, 1.0))
        self._volumes(buffer, kubelet)

    def _volumes(self, buffer: SeriesBuffer, kubelet: Kubelet) -> None:
        workers, claims = kubelet.workers, self._claims.setdefault(kubelet.name, {})
        if claims.keys() != workers.keys():
            claims = self._claims[kubelet.name] = {uid: _claims_of(worker) for uid, worker in workers.items()}
        mounts: dict[tuple[str, str], MountedVolume] = {}
        for uid, pairs in claims.items():
            for name, claim in pairs:
                mounted = workers[uid].volumes.get(name)
                if mounted is not None:
                    mounts[namespace_of(workers[uid].pod), claim] = mounted
        for key in [key for key in buffer if isinstance(key, tuple) and key not in mounts]:
            buffer.drop(key)
        for key, mounted in mounts.items():
            size, used = mounted.volume.space.limits
            values = (size, max(0, size - used), used, mounted.volume.broken is not None)
            if key in buffer:
                buffer.set(key, values)
            else:
                labels = {"namespace": key[0], "persistentvolumeclaim": key[1]}
                buffer.put(key, [{"__name__": name, **labels} for name in _VOLUME], values)


def _claims_of(worker: PodWorker) -> list[tuple[str, str]]:
    """Return the volumes of a pod that are claims, and the claims."""
    pairs: list[tuple[str, str]] = []
    for spec in worker.pod["spec"].get("volumes") or ():
        if spec.get("persistentVolumeClaim"):
            pairs.append((spec["name"], spec["persistentVolumeClaim"]["claimName"]))
        elif spec.get("ephemeral"):
            pairs.append((spec["name"], f"{name_of(worker.pod)}-{spec['name']}"))
    return pairs


def _running(kubelet: Kubelet) -> tuple[float, ...]:
    """Return the numbers of pods, then of created, exited and running containers."""
    pods = containers = exited = 0
    for sandbox in kubelet.machine.sandboxes.values():
        pods += sandbox.ready
        for attempts in sandbox.records.values():
            for record in attempts:
                containers += 1
                if record.finished_at is not None:
                    exited += 1
    running = len(kubelet.machine.live)
    return pods, containers - exited - running, exited, running


class ProbeCollector(KubeletJob):
    path = "/metrics/probes"
    metrics = (("prober_probe_total", "counter", "Results of the probes of containers."),)

    def __init__(self, nodes: Nodes, scraper: Scraper, store: MetricStore) -> None:
        super().__init__(nodes, scraper, store)
        self._shapes: dict[str, list[_ProbeResult]] = {}
        """By pod: the state that determines its series."""

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        workers = kubelet.workers
        for uid in [uid for uid in buffer if uid not in workers]:
            buffer.drop(uid)
        for uid, worker in workers.items():
            shape: list[_ProbeResult] = []
            values: list[float] = []
            for probe in worker.probes_begun:
                shape.append((probe, "successful"))
                values.append(probe.successes)
                if probe.failures:
                    shape.append((probe, "failed"))
                    values.append(probe.failures)
                if probe.unknowns:
                    shape.append((probe, "unknown"))
                    values.append(probe.unknowns)
            if uid in buffer and self._shapes[uid] == shape:
                buffer.set(uid, values)
            elif shape:
                self._shapes[uid] = shape
                pod_labels = {"namespace": namespace_of(worker.pod), "pod": name_of(worker.pod), "pod_uid": str(uid)}
                buffer.put(uid, [_probe_labels(pod_labels, result) for result in shape], values)


_ProbeResult = tuple[Probe, str]
"""A probe and its result."""


def _probe_labels(pod_labels: Mapping[str, str], probe_result: _ProbeResult) -> Mapping[str, str]:
    probe, result = probe_result
    about = {"container": probe.container["name"], "probe_type": probe.kind.capitalize(), "result": result}
    return {"__name__": "prober_probe_total", **pod_labels, **about}
