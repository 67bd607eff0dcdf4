"""Machines and kubelets: changes show in their metrics, and an unreachable target is down."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.network.links import Scope
from srearena.cluster.embedded.telemetry.collectors.collector import SLOW_INTERVAL
from tests.collectors.harness import Observed, deployment

NODE = "worker-1"


def _up(cluster: Observed, node: str = NODE) -> dict[str, float]:
    """`up` of everything on a node, by what it is."""
    address = cluster.nodes.address_of(node)
    found = {
        dict(labels).get("metrics_path", dict(labels)["job"]): value
        for labels, value in cluster.series("up").items()
        if dict(labels)["instance"] in (node, f"{address}:10250")
    }
    assert len(found) == 4, found
    return found


def test_a_healthy_cluster_has_no_target_down(cluster: Observed) -> None:
    assert set(cluster.series("up").values()) == {1.0}
    assert set(_up(cluster)) == {"/metrics", "/metrics/cadvisor", "/metrics/probes", "node-exporter"}
    for target in cluster.assembly.telemetry.targets():
        assert target.health == "up" and not target.error and target.url.startswith("http")
        assert target.samples or target.job == "kube-dns", "a name server without queries has no samples"


def test_scrapes_take_the_time_of_the_way_and_of_the_page(cluster: Observed) -> None:
    def durations() -> dict[str, float]:
        found = cluster.series("scrape_duration_seconds", node=NODE) | cluster.series(
            "scrape_duration_seconds", instance=NODE
        )
        return {dict(labels).get("metrics_path", dict(labels)["job"]): value for labels, value in found.items()}

    first = durations()
    assert first["/metrics/probes"] < first["/metrics"] < first["/metrics/cadvisor"] < 0.5
    assert first["node-exporter"] > 3 * first["/metrics/probes"]
    cluster.pass_time(60)
    assert all(0.5 < value / first[name] < 2 and value != first[name] for name, value in durations().items())


def test_a_machine_without_power_is_down_and_its_series_end(cluster: Observed) -> None:
    booted = cluster.value("node_boot_time_seconds", instance=NODE)
    cluster.nodes.access.power_off(NODE)
    cluster.pass_time(30)
    assert set(_up(cluster).values()) == {0.0}
    assert not cluster.series("node_boot_time_seconds", instance=NODE)
    assert not cluster.series("container_memory_rss", node=NODE)
    assert cluster.series("node_boot_time_seconds", instance="worker-2")
    (target,) = [t for t in cluster.assembly.telemetry.targets() if t.instance == NODE]
    assert target.health == "down" and "no route to host" in target.error
    cluster.nodes.access.power_on(NODE)
    cluster.pass_time(30)
    assert set(_up(cluster).values()) == {1.0}
    assert cluster.value("node_boot_time_seconds", instance=NODE) > booted
    assert cluster.value("node_cpu_seconds_total", instance=NODE, cpu="0", mode="idle") <= SLOW_INTERVAL


def test_a_stopped_kubelet_is_down_but_the_machine_is_not(cluster: Observed) -> None:
    cluster.nodes.access.stop_kubelet(NODE)
    cluster.pass_time(30)
    up = _up(cluster)
    assert up.pop("node-exporter") == 1
    assert set(up.values()) == {0.0}
    assert not cluster.series("kubelet_running_pods", node=NODE)
    cluster.nodes.access.start_kubelet(NODE)
    cluster.pass_time(30)
    assert set(_up(cluster).values()) == {1.0}


@pytest.mark.parametrize("cut", ["partition", "link"])
def test_a_machine_that_is_cut_off_is_down(cluster: Observed, cut: str) -> None:
    if cut == "partition":
        cluster.nodes.access.partition(NODE)
    else:
        cluster.assembly.network.links.partition(Scope.of(nodes=[NODE]))
    cluster.pass_time(30)
    assert set(_up(cluster).values()) == {0.0}
    assert set(_up(cluster, "worker-2").values()) == {1.0}


def test_a_node_that_was_deleted_is_no_target(cluster: Observed) -> None:
    cluster.nodes.access.stop_kubelet(NODE)
    cluster.delete("nodes", "", NODE)
    cluster.pass_time(30)
    assert not cluster.series("up", instance=NODE)


def test_disk_memory_and_clock_of_a_machine(cluster: Observed) -> None:
    access = cluster.nodes.access
    before = cluster.value("node_memory_MemAvailable_bytes", instance=NODE)
    access.hold_memory(NODE, 4 * 1024**3)
    access.fill_disk(NODE, 0.8)
    access.set_clock_skew(NODE, 42)
    cluster.assembly.network.fabric.flows.carry(NODE, "test", 1000)
    cluster.pass_time(30)
    used = before - cluster.value("node_memory_MemAvailable_bytes", instance=NODE)
    assert used == pytest.approx(4 * 1024**3, rel=0.01)
    size = cluster.value("node_filesystem_size_bytes", instance=NODE)
    assert cluster.value("node_filesystem_avail_bytes", instance=NODE) / size == pytest.approx(0.2, abs=0.01)
    assert cluster.value("node_time_seconds", instance=NODE) == pytest.approx(cluster.world.clock.now + 42)
    assert cluster.value("node_nf_conntrack_entries", instance=NODE) >= 1000
    limit = cluster.assembly.network.fabric.flows.table(NODE).limit
    assert cluster.value("node_nf_conntrack_entries_limit", instance=NODE) == limit


def test_a_machine_adds_up_what_its_containers_use_also_of_those_that_ended(cluster: Observed) -> None:
    cluster.apply(deployment("busy", container="{resources: {requests: {cpu: 100m}}}"))
    cluster.pass_time(30)
    (pod,) = cluster.pods("busy")
    node, container = pod["spec"]["nodeName"], cluster.container(pod)
    container.meter.load("test", 2.0)
    cluster.pass_time(60)
    cores = cluster.value("machine_cpu_cores", node=node)
    user = {"instance": node, "mode": "user", "cpu": "0"}
    busy = [cluster.rate("node_cpu_seconds_total", **{**user, "cpu": str(cpu)}) for cpu in range(int(cores))]
    assert sum(busy) == pytest.approx(2.0, abs=0.1)
    assert 0.5 < cluster.value("node_load1", instance=node) < 2.5
    assert cluster.value("node_load15", instance=node) < cluster.value("node_load1", instance=node)
    before = cluster.value("node_cpu_seconds_total", **user)
    container.kill()
    cluster.pass_time(30)
    assert cluster.value("node_cpu_seconds_total", **user) >= before
    idle = cluster.rate("node_cpu_seconds_total", instance=node, mode="idle", cpu="0")
    assert 0.9 < idle <= 1


def test_the_volume_of_a_claim_and_what_is_in_it(cluster: Observed) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.apply(
        f"""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec: {claim}
---
apiVersion: v1
kind: Pod
metadata: {{name: writer}}
spec:
  containers:
    - name: main
      image: busybox:1.36
      command: [sh, -c, "dd if=/dev/zero of=/data/file bs=1M count=100; sleep 3600"]
      volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]
"""
    )
    cluster.pass_time(60)
    used = cluster.value("kubelet_volume_stats_used_bytes", persistentvolumeclaim="data", namespace="default")
    assert used >= 100 * 1024**2
    capacity = cluster.value("kubelet_volume_stats_capacity_bytes", persistentvolumeclaim="data")
    assert cluster.value("kubelet_volume_stats_available_bytes", persistentvolumeclaim="data") == capacity - used
    cluster.delete("pods", "default", "writer")
    cluster.pass_time(60)
    assert not cluster.series("kubelet_volume_stats_used_bytes", persistentvolumeclaim="data")


def test_answers_to_probes_are_counted(cluster: Observed) -> None:
    probe = "{readinessProbe: {httpGet: {path: %s, port: 80}, periodSeconds: 5}}"
    cluster.apply(deployment("good", container=probe % "/"))
    cluster.apply(deployment("bad", container=probe % "/missing"))
    cluster.pass_time(60)
    good, bad = cluster.pods("good")[0]["metadata"]["name"], cluster.pods("bad")[0]["metadata"]["name"]
    kind = {"probe_type": "Readiness", "container": "main"}
    assert cluster.rate("prober_probe_total", pod=good, result="successful", **kind) == pytest.approx(0.2, abs=0.07)
    assert not cluster.series("prober_probe_total", pod=good, result="failed")
    assert cluster.rate("prober_probe_total", pod=bad, result="failed", **kind) == pytest.approx(0.2, abs=0.07)
    assert cluster.value("kube_pod_status_ready", pod=bad, condition="true") == 0


def test_processors_differ_and_count_in_clock_ticks(cluster: Observed) -> None:
    cluster.pass_time(600)
    spent = {
        (labels["cpu"], labels["mode"]): value
        for key, value in cluster.series("node_cpu_seconds_total", instance=NODE).items()
        if (labels := dict(key))
    }
    cores = len({cpu for cpu, _ in spent})
    assert all(round(value * 100) == pytest.approx(value * 100, abs=1e-6) for value in spent.values())
    assert len({value for (_, mode), value in spent.items() if mode == "system"}) > cores / 2
    up = cluster.world.clock.now - cluster.value("node_boot_time_seconds", instance=NODE)
    for cpu in {cpu for cpu, _ in spent}:
        total = sum(value for (other, _), value in spent.items() if other == cpu)
        assert total == pytest.approx(up, abs=20)  # since the last scrape, at most


def test_processor_time_of_containers_is_in_microseconds(cluster: Observed) -> None:
    cluster.pass_time(60)
    values = cluster.series("container_cpu_usage_seconds_total").values()
    assert all(round(value, 6) == value for value in values)
    assert any(round(value, 5) != value for value in values)
