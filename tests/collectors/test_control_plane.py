"""Metrics of the control plane reflect its state."""

from __future__ import annotations

from tests.clusters import running
from tests.collectors.harness import Observed, deployment


def test_objects_are_counted_by_resource(cluster: Observed) -> None:
    for labels, value in cluster.series("apiserver_storage_objects", 0, job="apiserver").items():
        assert value == cluster.world.store.count(dict(labels)["resource"])
    assert cluster.value("apiserver_storage_objects", resource="nodes") == 3


def test_pods_without_a_node_wait_in_the_scheduler(cluster: Observed) -> None:
    assert cluster.value("scheduler_pending_pods", queue="unschedulable") == 0
    cluster.apply(deployment("vast", container="{resources: {requests: {cpu: 500}}}"))
    cluster.pass_time()
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
        api.advance(15)
    about = {"resource": "pods", "version": "v1", "job": "apiserver"}
    assert cluster.value("apiserver_request_total", verb="LIST", scope="namespace", code="200", **about) == 1
    assert cluster.value("apiserver_request_total", verb="GET", scope="resource", code="404", **about) == 1


def test_every_metric_is_described(cluster: Observed) -> None:
    cluster.apply(deployment("web", container="{readinessProbe: {httpGet: {path: /, port: 80}}}"))
    cluster.pass_time(30)
    assert [name for name in cluster.store.metric_names() if name not in cluster.store.metadata] == []
    counters = [name for name, about in cluster.store.metadata.items() if about.kind == "counter"]
    assert [name for name in counters if not name.endswith(("_total", "_failcnt"))] == []


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
