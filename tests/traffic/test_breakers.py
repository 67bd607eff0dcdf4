"""A circuit breaker spares a dependency that cannot keep up, and closes again when it can."""

from __future__ import annotations

from pathlib import Path

from tests.traffic.small_applications import Lab, load, server


def test_a_breaker_opens_on_errors_and_closes_when_they_are_gone(tmp_path: Path) -> None:
    guarded = {"address": "back:8080", "protocol": "grpc", "breaker": {"errors": 0.5, "minimum": 5, "open": "10s"}}
    front = server("front", dependencies={"back": guarded})
    front["operations"]["work"]["does"] = [{"call": "back work"}]
    lab = Lab(tmp_path, [server("back"), front, load("front", 50)])
    lab.run("front", port=8080)
    lab.run("back", port=8080)
    lab.run("load")
    lab.wait(60)
    assert lab.rate("back", "work") > 30
    lab.delete("services", "back")
    lab.wait(5)
    index = lab.call("front", "work").index
    opened = [float(lab.fluid.open[index])]
    for _ in range(10):
        lab.wait(1)
        opened.append(float(lab.fluid.open[lab.call("front", "work").index]))
    assert max(opened) > 0.5, "most calls are not even tried"
    lab.client.create(
        "services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "back", "namespace": "lab"},
            "spec": {"selector": {"app": "back"}, "ports": [{"port": 8080}]},
        },
    )
    lab.wait(60)
    assert lab.failing("front", "work") < 0.01
