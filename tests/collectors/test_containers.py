"""cAdvisor: what containers do shows in their series, and only there."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.objects import name_of, uid_of
from tests.collectors.harness import Observed, deployment, service


def _one(cluster: Observed, app: str) -> str:
    (pod,) = cluster.pods(app)
    return name_of(pod)


def test_processor_time_grows_as_fast_as_the_container_computes(cluster: Observed) -> None:
    cluster.apply(deployment("busy"))
    cluster.pass_time(30)
    pod = _one(cluster, "busy")
    cluster.container(cluster.pods("busy")[0]).meter.load("test", 0.7)
    cluster.pass_time(30)
    rate = cluster.rate("container_cpu_usage_seconds_total", pod=pod, container="main")
    assert rate == pytest.approx(0.7, abs=0.05)
    of_pod = cluster.rate("container_cpu_usage_seconds_total", pod=pod, container="")
    assert of_pod == pytest.approx(rate)
    assert not cluster.series("container_cpu_cfs_periods_total", pod=pod)


def test_a_quota_throttles_and_is_seen_to(cluster: Observed) -> None:
    cluster.apply(deployment("limited", container="{resources: {limits: {cpu: 200m, memory: 256Mi}}}"))
    cluster.pass_time(30)
    cluster.container(cluster.pods("limited")[0]).meter.load("test", 0.8)
    cluster.pass_time(30)
    labels = {"pod": _one(cluster, "limited"), "container": "main"}
    assert cluster.rate("container_cpu_usage_seconds_total", **labels) == pytest.approx(0.2, abs=0.01)
    assert cluster.rate("container_cpu_cfs_periods_total", **labels) == pytest.approx(10, abs=0.2)
    assert cluster.rate("container_cpu_cfs_throttled_periods_total", **labels) == pytest.approx(10, abs=0.2)
    assert cluster.rate("container_cpu_cfs_throttled_seconds_total", **labels) > 0.5
    assert cluster.value("container_spec_cpu_quota", **labels) == pytest.approx(20_000)
    assert cluster.value("container_spec_cpu_period", **labels) == pytest.approx(100_000)
    assert cluster.value("container_spec_memory_limit_bytes", **labels) == 256 * 1024**2


def test_memory_is_what_the_processes_hold(cluster: Observed) -> None:
    cluster.apply(deployment("fat"))
    cluster.pass_time(30)
    labels = {"pod": _one(cluster, "fat"), "container": "main"}
    before = cluster.value("container_memory_working_set_bytes", **labels)
    meter = cluster.container(cluster.pods("fat")[0]).meter
    meter.set_memory("test", 100 * 1024**2)
    cluster.pass_time()
    meter.set_memory("test", 0)
    cluster.pass_time()
    claimed = meter.working_set
    assert 0.98 * claimed < before <= claimed
    peak = claimed + 100 * 1024**2
    assert 0.98 * peak < cluster.value("container_memory_working_set_bytes", 15, **labels) <= peak
    parts = {name: cluster.value(f"container_memory_{name}", **labels) for name in ("rss", "cache", "usage_bytes")}
    working_set = cluster.value("container_memory_working_set_bytes", **labels)
    reclaimable = parts["usage_bytes"] - working_set
    assert 0.9 * working_set < parts["rss"] < working_set < parts["usage_bytes"]
    assert parts["cache"] - reclaimable < working_set - parts["rss"], "page cache in use, and memory of the kernel"
    assert cluster.value("container_memory_max_usage_bytes", **labels) == peak + reclaimable


def test_a_healthy_system_moves(cluster: Observed) -> None:
    """What moves is not by that alone the cause of an incident."""
    cluster.apply(deployment("calm") + "---\n" + service("calm"))
    cluster.pass_time(60)
    (pod,) = cluster.pods("calm")
    labels = {"pod": name_of(pod), "container": "main"}
    server = {"pod": f"kube-apiserver-{cluster.world.control_plane_name}", "container": "kube-apiserver"}
    kubelet = {"node": pod["spec"]["nodeName"], "operation_type": "sync"}
    seen: dict[str, set[float]] = {}
    for _ in range(6):
        cluster.pass_time(30)
        for name, value in {
            "memory": cluster.value("container_memory_working_set_bytes", **labels),
            "processor": round(cluster.rate("container_cpu_usage_seconds_total", **server), 6),
            "probe": cluster.value("probe_duration_seconds", service="calm"),
            "syncs": cluster.value("kubelet_pod_worker_duration_seconds_count", **kubelet),
        }.items():
            seen.setdefault(name, set()).add(value)
    assert {name: len(values) for name, values in seen.items() if len(values) < 4} == {}
    assert all(0.035 < rate < 0.065 for rate in seen["processor"])


def test_a_restart_is_another_container_and_its_counters_start_anew(cluster: Observed) -> None:
    cluster.apply(deployment("phoenix"))
    cluster.pass_time(30)
    labels = {"pod": _one(cluster, "phoenix"), "container": "main"}
    container = cluster.container(cluster.pods("phoenix")[0])
    container.meter.load("test", 0.5)
    cluster.pass_time(60)
    (before,) = cluster.series("container_cpu_usage_seconds_total", **labels).items()
    container.kill()
    cluster.pass_time(60)
    (after,) = cluster.series("container_cpu_usage_seconds_total", **labels).items()
    assert dict(after[0])["id"] != dict(before[0])["id"]
    assert after[1] < 1 < before[1]
    assert cluster.value("container_start_time_seconds", **labels) == int(cluster.world.clock.now - 60)
    assert cluster.value("kube_pod_container_status_restarts_total", **labels) == 1


def test_the_counters_of_a_pod_outlive_its_containers(cluster: Observed) -> None:
    cluster.apply(deployment("lasting"))
    cluster.pass_time(30)
    pod = _one(cluster, "lasting")
    container = cluster.container(cluster.pods("lasting")[0])
    container.meter.load("test", 0.5)
    cluster.pass_time(60)
    before = cluster.value("container_cpu_usage_seconds_total", pod=pod, container="")
    container.kill()
    cluster.pass_time(60)
    assert cluster.value("container_cpu_usage_seconds_total", pod=pod, container="main") < 1
    assert cluster.value("container_cpu_usage_seconds_total", pod=pod, container="") > before > 25


def test_files_and_sockets_of_a_container_show(cluster: Observed) -> None:
    cluster.apply(deployment("writer"))
    cluster.pass_time(30)
    labels = {"pod": _one(cluster, "writer"), "container": "main"}
    container = cluster.container(cluster.pods("writer")[0])
    assert container.main is not None
    before = {name: cluster.value(name, **labels) for name in ("container_file_descriptors", "container_sockets")}
    written = cluster.value("container_fs_writes_bytes_total", **labels)
    container.main.take_descriptor()
    container.filesystem.root.volume.space.take(1_000_000)
    node = cluster.pods("writer")[0]["spec"]["nodeName"]
    disk = cluster.value("node_disk_written_bytes_total", instance=node)
    cluster.pass_time()
    for name, value in before.items():
        assert cluster.value(name, **labels) == value + 1
    assert cluster.value("container_fs_writes_bytes_total", **labels) == written + 1_000_000
    assert cluster.value("container_fs_writes_total", **labels) == 61
    assert cluster.value("container_fs_reads_bytes_total", **labels) > 0
    assert cluster.value("node_disk_written_bytes_total", instance=node) >= disk + 1_000_000


def test_counters_of_bytes_and_packets_are_whole_numbers_and_losses_show(cluster: Observed) -> None:
    cluster.apply(deployment("lossy"))
    cluster.pass_time(30)
    pod = _one(cluster, "lossy")
    sandbox = cluster.nodes.sandbox("default", pod)
    assert sandbox is not None
    sandbox.namespace.carried.add(10.5, 1.5, 20.7, 2.7)
    sandbox.namespace.carried.lost_packets += 3.2
    cluster.pass_time()
    for direction in ("receive", "transmit"):
        for what in ("bytes", "packets", "packets_dropped", "errors"):
            value = cluster.value(f"container_network_{direction}_{what}_total", pod=pod)
            assert value == int(value)
    assert cluster.value("container_network_transmit_packets_dropped_total", pod=pod) == 3


def test_what_too_much_memory_does_shows_as_the_last_end(cluster: Observed) -> None:
    cluster.apply(deployment("glutton", container="{resources: {limits: {memory: 64Mi}}}"))
    cluster.pass_time(30)
    pod = _one(cluster, "glutton")
    cluster.container(cluster.pods("glutton")[0]).meter.set_memory("test", 65 * 1024**2)
    cluster.pass_time(45)
    ended = cluster.series("kube_pod_container_status_last_terminated_reason", pod=pod)
    assert [dict(labels)["reason"] for labels in ended] == ["OOMKilled"]


def test_what_is_fetched_counts_on_both_interfaces(cluster: Observed) -> None:
    cluster.apply(deployment("web"))
    cluster.pass_time(30)
    address = cluster.pods("web")[0]["status"]["podIP"]
    command = f"while true; do wget -q -O /dev/null http://{address}/; sleep 1; done"
    cluster.apply(deployment("reader", "busybox:1.36", command))
    cluster.pass_time(60)
    web, reader = _one(cluster, "web"), _one(cluster, "reader")
    received = cluster.rate("container_network_receive_bytes_total", pod=reader)
    assert received > 500
    assert cluster.rate("container_network_transmit_bytes_total", pod=web) == pytest.approx(received, rel=0.1)
    assert cluster.rate("container_network_transmit_packets_total", pod=reader) > 0


def test_a_pod_that_is_gone_has_no_series_any_more(cluster: Observed) -> None:
    cluster.apply(deployment("fleeting"))
    cluster.pass_time(30)
    (pod,) = cluster.pods("fleeting")
    assert cluster.series("container_memory_rss", pod=name_of(pod))
    assert cluster.series("kube_pod_info", uid=uid_of(pod))
    cluster.delete("deployments.apps", "default", "fleeting")
    cluster.pass_time(90)
    assert not cluster.series("container_memory_rss", pod=name_of(pod))
    assert not cluster.series("kube_pod_info", uid=uid_of(pod))
    assert not cluster.series("prober_probe_total", pod=name_of(pod))
