"""What applications carry shows on the interfaces of their pods, on both sides alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from tests.traffic.small_applications import Lab, load, server


def _rates(lab: Lab, name: str) -> dict[str, float]:
    """By how much a counter grew a second in the last minute, by the name of the pod's deployment."""
    now = lab.world.clock.now
    matchers = [Matcher("__name__", "=", name), Matcher("namespace", "=", "lab")]
    return {
        dict(labels)["pod"].rsplit("-", 2)[0]: float(values[-1] - values[0]) / float(times[-1] - times[0])
        for labels, times, values in lab.assembly.telemetry.metrics.select(matchers, now - 60, now)
    }


def test_requests_and_answers_weigh_on_both_interfaces(tmp_path: Path) -> None:
    lab = Lab(tmp_path, [load("work", 50.0), server("work", operation={"payload": 2000})])
    lab.run("work", port=8080)
    lab.wait(30)
    lab.run("load")
    lab.wait(120)
    received = _rates(lab, "container_network_receive_bytes_total")
    sent = _rates(lab, "container_network_transmit_bytes_total")
    assert sent["work"] == pytest.approx(50 * 2000, rel=0.1)
    assert received["load"] == pytest.approx(sent["work"], rel=0.05)
    assert sent["load"] == pytest.approx(received["work"], rel=0.05) and sent["load"] == pytest.approx(
        50 * 400, rel=0.1
    )
    assert _rates(lab, "container_network_receive_packets_total")["load"] > 50
    assert _rates(lab, "container_cpu_usage_seconds_total")["work"] == pytest.approx(0.05, rel=0.3)
