"""What metrics-server knows, and since when."""

from __future__ import annotations

import pytest

from tests.kubelet.harness import Lab


def test_a_new_pod_is_unknown_for_about_a_minute(lab: Lab) -> None:
    lab.run()
    lab.pass_time(30)
    assert lab.is_ready()
    assert lab.nodes.agent.pod_usage(lab.pod()) is None
    lab.pass_time(45)
    found = lab.nodes.agent.pod_usage(lab.pod())
    assert found is not None
    assert found["main"].working_set > 0
    assert found["main"].window == pytest.approx(15)


def test_a_load_shows_in_the_next_samples(lab: Lab) -> None:
    lab.run()
    lab.pass_time(90)
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None
    record.container.meter.load("work", 0.5)
    lab.pass_time(31)
    found = lab.nodes.agent.pod_usage(lab.pod())
    assert found is not None
    assert found["main"].cores == pytest.approx(0.5, rel=0.05)
    node = lab.nodes.agent.node_usage("worker")
    assert node is not None
    assert node.cores > 0.5
    assert lab.clock.now - found["main"].at <= 15


def test_a_restart_makes_the_pod_unknown_again(lab: Lab) -> None:
    lab.run(image="busybox:1.36", command=["sleep", "100"])
    lab.pass_time(95)
    assert lab.nodes.agent.pod_usage(lab.pod()) is not None
    lab.pass_time(25)
    assert lab.container()["restartCount"] == 1
    assert lab.nodes.agent.pod_usage(lab.pod()) is None


def test_nothing_is_known_of_a_node_whose_kubelet_is_down(lab: Lab) -> None:
    lab.pass_time(60)
    assert lab.nodes.agent.node_usage("worker") is not None
    lab.nodes.access.stop_kubelet("worker")
    lab.pass_time(20)
    assert lab.nodes.agent.node_usage("worker") is None
