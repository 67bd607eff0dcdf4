"""Calm traffic passes in strides, and still nothing is lost between one round of a load and the next."""

from __future__ import annotations

from srearena.cluster import start_embedded
from srearena.service.apps import find_application
from srearena.service.kubernetes import Kubernetes


def test_a_round_counts_all_of_its_requests_wherever_strides_end() -> None:
    app = find_application("hotel_reservation")
    settings = {"in_process": True, "speed": 0, "start": 1_767_225_602, "models": [app.folder]}
    with start_embedded(seed=1, **settings) as cluster, Kubernetes.of(cluster) as api:
        app.deploy(cluster)
        app.wait_until_ready(cluster)
        load = app.start_workload(cluster, rate=50, duration=7)
        assert load is not None
        cluster.wait(120)
        throughputs = [one.throughput for one in load.result(api, app.namespace).rounds[1:]]
        assert len(throughputs) > 5
        assert all(40 < throughput < 60 for throughput in throughputs), throughputs
