"""Metrics of the control plane reflect its state."""

from __future__ import annotations

from tests.clusters import running
from tests.collectors.harness import Observed, deployment, service


def test_objects_are_counted_by_resource(cluster: Observed) -> None:
    for labels, value in cluster.series("apiserver_storage_objects", 0, job="apiserver").items():
        assert value == cluster.world.store.count(dict(labels)["resource"])
    assert cluster.value("apiserver_storage_objects", resource="nodes") == 3


def test_pods_without_a_node_wait_in_the_scheduler(cluster: Observed) -> None:
    assert cluster.value("scheduler_pending_pods", queue="unschedulable") == 0
    cluster.apply(deployment("vast", container="{resources: {requests: {cpu: 500}}}"))
    cluster.pass_time(30)
    assert cluster.value("scheduler_pending_pods", queue="unschedulable") == 1
    pod = cluster.pods("vast")[0]["metadata"]["name"]
    assert cluster.value("kube_pod_status_unschedulable", pod=pod) == 1
    assert cluster.value("kube_pod_status_phase", pod=pod, phase="Pending") == 1


def test_control_loops_count_their_work(cluster: Observed) -> None:
    before = cluster.value("workqueue_adds_total", name="deployment")
    cluster.apply(deployment("web"))
    cluster.pass_time(30)
    assert cluster.value("workqueue_adds_total", name="deployment") > before
    assert cluster.rate("process_cpu_seconds_total", job="kube-scheduler") > 0


def test_requests_over_http_are_counted(cluster: Observed) -> None:
    with running(cluster.world, speed=0, agent=cluster.nodes.agent) as api, api.http() as http:
        assert http.get("/api/v1/namespaces/default/pods").status_code == 200
        assert http.get("/api/v1/namespaces/default/pods/nobody").status_code == 404
        api.advance(30)
    about = {"resource": "pods", "version": "v1", "job": "apiserver"}
    assert cluster.value("apiserver_request_total", verb="LIST", scope="namespace", code="200", **about) == 1
    assert cluster.value("apiserver_request_total", verb="GET", scope="resource", code="404", **about) == 1


def test_requests_of_programs_are_those_that_the_server_answered(cluster: Observed) -> None:
    def answered() -> float:
        found = cluster.series("apiserver_request_total", 0, verb="POST", resource="pods", subresource="binding")
        return sum(found.values())

    before = answered()
    earlier = cluster.value("rest_client_requests_total", job="kube-scheduler", method="POST", code="201")
    cluster.apply(deployment("web", replicas=3))
    cluster.pass_time(60)
    assert answered() - before == 3
    # Each binding has an event.
    bound = cluster.value("rest_client_requests_total", job="kube-scheduler", method="POST", code="201") - earlier
    assert bound == 6
    labels = {"job": "apiserver", "verb": "POST", "resource": "pods", "subresource": "binding"}
    assert cluster.value("apiserver_request_sli_duration_seconds_bucket", le="+Inf", **labels) == answered()


def test_the_scheduler_measures_from_the_first_sight_of_a_pod(cluster: Observed) -> None:
    name, about = "scheduler_pod_scheduling_sli_duration_seconds", {"attempts": "1"}
    before = cluster.value(f"{name}_count", **about)
    cluster.apply(deployment("web", replicas=2))
    cluster.pass_time(60)
    assert cluster.value(f"{name}_count", **about) - before == 2
    attempts = cluster.value("scheduler_schedule_attempts_total", result="unschedulable")
    cluster.apply(deployment("vast", container="{resources: {requests: {cpu: 500}}}"))
    cluster.pass_time(30)
    assert cluster.value("scheduler_schedule_attempts_total", result="unschedulable") > attempts


def test_a_slow_disk_of_the_control_plane_makes_writes_slow(cluster: Observed) -> None:
    def slow_writes() -> float:
        name = "apiserver_request_sli_duration_seconds"
        about = {"verb": "PUT", "resource": "leases", "job": "apiserver"}
        return cluster.value(f"{name}_count", **about) - cluster.value(f"{name}_bucket", le="0.1", **about)

    cluster.pass_time(60)
    before = slow_writes()
    cluster.nodes.kubelets["control-plane"].machine.disk_factor = 100.0
    cluster.pass_time(120)
    assert slow_writes() - before > 10


def test_the_kubelet_measures_its_work(cluster: Observed) -> None:
    def total(name: str, **labels: str) -> float:
        return sum(cluster.series(name, 0, **labels).values())

    started = total("kubelet_runtime_operations_total", operation_type="start_container")
    pods = total("kubelet_pod_start_duration_seconds_count")
    relists = total("kubelet_pleg_relist_duration_seconds_count")
    cluster.apply(deployment("web", replicas=3))
    cluster.pass_time(60)
    assert total("kubelet_runtime_operations_total", operation_type="start_container") - started == 3
    assert total("kubelet_pod_start_duration_seconds_count") - pods == 3
    assert total("kubelet_pleg_relist_duration_seconds_count") - relists == 60 * len(cluster.nodes.kubelets)


def test_kube_proxy_syncs_when_endpoints_change_and_is_down_without_its_container(cluster: Observed) -> None:
    name = "kubeproxy_network_programming_duration_seconds_count"
    before = sum(cluster.series(name).values())
    cluster.apply(deployment("web") + "---\n" + service("web"))
    cluster.pass_time(60)
    assert sum(cluster.series(name).values()) > before
    assert set(cluster.series("up", 0, job="kube-proxy").values()) == {1.0}


def test_every_metric_is_described(cluster: Observed) -> None:
    cluster.apply(deployment("web", container="{readinessProbe: {httpGet: {path: /, port: 80}}}"))
    cluster.pass_time(30)
    described = cluster.store.metadata
    parts = {
        f"{name}{part}"
        for name, about in described.items()
        if about.kind in ("histogram", "summary")
        for part in ("_bucket", "_sum", "_count")
    }
    assert [name for name in cluster.store.metric_names() if name not in described and name not in parts] == []
    counters = [name for name, about in described.items() if about.kind == "counter"]
    # The kubelet's counter of evictions has no suffix in Kubernetes, either.
    assert [name for name in counters if not name.endswith(("_total", "_failcnt", "kubelet_evictions"))] == []


def test_collectors_change_nothing_in_the_cluster() -> None:
    plain, watched = Observed(seed=3), Observed(seed=3)
    for cluster in (plain, watched):
        cluster.apply(deployment("web", container="{readinessProbe: {httpGet: {path: /, port: 80}}}", replicas=2))
        for _ in range(40):
            if cluster is watched:
                for collector in cluster.assembly.telemetry.collectors:
                    collector.scrape(cluster.world.clock.now + 0.001)
            cluster.pass_time(3.3)
    assert plain.world.store.objects("pods") == watched.world.store.objects("pods")
    assert plain.world.store.objects("events") == watched.world.store.objects("events")


def test_the_same_seed_gives_the_same_samples() -> None:
    gathered = []
    for _ in range(2):
        cluster = Observed(seed=5)
        cluster.apply(deployment("web", replicas=3))
        cluster.pass_time(120)
        gathered.append(
            [
                (frame.series, frame.times.tobytes(), frame.values.tobytes())
                for frame in cluster.store.frames([], 0, int(1e15))
            ]
        )
    assert gathered[0] == gathered[1]
