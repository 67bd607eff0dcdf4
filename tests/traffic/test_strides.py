"""A steady state passes in strides, and still nothing is lost between rounds of a load or of scrapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from srearena.cluster import start_embedded
from srearena.cluster.embedded.telemetry.collectors.collector import Collector
from srearena.cluster.embedded.telemetry.pipeline import SCRAPE_SECONDS
from srearena.cluster.embedded.traffic.engine import STEADY_INTERVAL, TICK
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.service.apps import find_application
from srearena.service.kubernetes import Kubernetes
from tests.traffic.small_applications import Lab, load, server


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


class Computed(Collector):
    """Until when the traffic was computed at each scrape."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.until: list[float] = []

    def scrape(self, now: float) -> None:
        self.until.append(now - self._lab.traffic._pending_seconds)


@pytest.mark.parametrize("offset", [0.0, 0.3, 2.7])
def test_scrapes_cover_equal_times_while_a_system_fails_and_recovers(
    tmp_path: Path, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no rate jumps where strides begin or end."""
    lab = Lab(tmp_path, [server("worker", cpu="1ms"), load("worker", 50)])
    lab.wait(offset)
    lab.run("worker", port=8080)
    lab.run("load")
    lab.wait(61.9)
    computed = Computed(lab)
    lab.assembly.telemetry.add([computed])
    steps: list[float] = []
    step = FluidModel.step
    monkeypatch.setattr(
        FluidModel, "step", lambda fluid, seconds, roots: (steps.append(seconds), step(fluid, seconds, roots))
    )

    def strides(seconds: float) -> int:
        """The number of long steps in so many seconds."""
        steps.clear()
        lab.wait(seconds)
        return sum(one > TICK for one in steps)

    worker = lab.client.get("services", "lab", "worker")
    assert worker is not None
    assert strides(67.3) > 5
    lab.delete("services", "worker")
    assert strides(91.4) > 5, "also while every request fails"
    assert lab.failing("load", "work") > 0.99
    service = {"metadata": {"name": "worker", "namespace": "lab"}, "spec": worker["spec"]}
    lab.client.create("services", {"apiVersion": "v1", "kind": "Service", **service})
    assert strides(103.8) > 5
    assert lab.failing("load", "work") == 0
    assert max(steps) == STEADY_INTERVAL
    between = [later - earlier for earlier, later in zip(computed.until, computed.until[1:], strict=False)]
    assert len(between) > 15
    assert between == [pytest.approx(SCRAPE_SECONDS)] * len(between)
