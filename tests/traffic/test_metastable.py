"""A trigger that goes and a failure that stays: what aggressive retries do, and what ends it."""

from __future__ import annotations

from pathlib import Path

from tests.traffic.small_applications import Lab, load, server


def storm(folder: Path, attempts: int) -> Lab:
    """A server near its limit, and a caller with a short timeout."""
    front = server(
        "front",
        cpu="0.2ms",
        dependencies={"back": {"address": "back:8080", "protocol": "grpc", "timeout": "250ms", "attempts": attempts}},
    )
    front["operations"]["work"]["does"] = [{"call": "back work"}]
    lab = Lab(folder, [server("back", cpu="5ms"), front, load("front", 100)])
    lab.run("back", port=8080, resources={"limits": {"cpu": "1"}})
    lab.run("front", port=8080)
    lab.run("load")
    lab.wait(90)
    return lab


def spike(lab: Lab, rate: float, seconds: float, back_to: float = 100.0) -> None:
    driver = next(iter(lab.traffic.drivers.values()))
    driver.rate = rate
    lab.wait(seconds)
    driver.rate = back_to


def test_aggressive_retries_keep_a_storm_alive_after_its_trigger_is_gone(tmp_path: Path) -> None:
    lab = storm(tmp_path, attempts=10)
    assert lab.failing("front", "work") < 0.01, "healthy at half its capacity"
    spike(lab, 400, 20)
    lab.wait(180)
    assert lab.failing("front", "work") > 0.9, "the load is what it was, the failure stays"
    # Less load than the retries can multiply beyond capacity drains the queue; afterwards the old load is no problem.
    spike(lab, 5, 120)
    lab.wait(60)
    assert lab.failing("front", "work") < 0.01


def test_without_retries_the_same_trigger_passes(tmp_path: Path) -> None:
    lab = storm(tmp_path, attempts=1)
    spike(lab, 400, 20)
    lab.wait(180)
    assert lab.failing("front", "work") < 0.01
