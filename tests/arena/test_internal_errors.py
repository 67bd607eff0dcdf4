"""An error in the simulator's own code ends an episode as an environment error: agents are not graded on it."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

import pytest

from srearena.cluster import start_embedded
from srearena.cluster.embedded.programs.web.nginx import Nginx
from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import call, prepared_episode, shop_problem


@pytest.mark.expected_errors("a telemetry query failed", "ZeroDivisionError")
def test_a_failed_query_ends_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    with prepared_episode(shop_problem(ScalePodZero, "store")) as episode:
        assert episode.within_limits()
        monkeypatch.setattr(PrometheusApi, "handle", lambda *_: 1 / 0)
        episode.act(call('get_metrics("up")'))
        assert not episode.within_limits()
        ending = episode.grade()
    assert ending.outcome == "environment error" and "ZeroDivisionError: division by zero" in ending.reason


@pytest.mark.expected_errors("process .* failed", "ZeroDivisionError")
def test_a_program_that_fails_by_our_error_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: Nginx, process: Any) -> int:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(Nginx, "run", fail)
    containers = [{"name": "web", "image": "nginx"}]
    pod = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": containers}}
    with start_embedded(in_process=True, speed=0) as cluster, Kubernetes(cluster.kubeconfig) as api:
        api.create({"apiVersion": "v1", "kind": "Pod", **pod})
        assert cluster.internal_errors() == []
        cluster.wait(20)
        (first, *_) = cluster.internal_errors()
    assert first.startswith("process 1 (/docker-entrypoint.sh") and first.endswith("ZeroDivisionError: ours")


@pytest.mark.expected_errors("the clock has stopped", "ZeroDivisionError")
def test_an_event_that_fails_while_time_flows_is_reported() -> None:
    with start_embedded(in_process=True) as cluster:
        host = cluster._thread.host  # type: ignore[attr-defined]

        async def plant() -> None:
            host.assembly.world.clock.after(0, lambda: 1 / 0)

        cluster._thread.call(plant())  # type: ignore[attr-defined]
        deadline = monotonic() + 60
        while not cluster.internal_errors() and monotonic() < deadline:
            sleep(0.05)
        assert cluster.internal_errors() == ["the clock has stopped: ZeroDivisionError: division by zero"]


def test_a_cluster_in_a_process_of_its_own_reports_its_errors() -> None:
    with start_embedded() as cluster:
        assert cluster.internal_errors() == []
