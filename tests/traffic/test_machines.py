"""What is done to a machine shows in the requests through what runs on it, and goes when it is undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traffic.small_applications import Lab, load, server


def lab_with_two(folder: Path) -> Lab:
    front = server("front", dependencies={"back": {"address": "back:8080", "protocol": "grpc", "timeout": "2s"}})
    front["operations"]["work"]["does"] = [{"call": "back work"}]
    lab = Lab(folder, [server("back", cpu="5ms"), front, load("front", 20)])
    lab.run("front", port=8080)
    lab.run("back", port=8080)
    lab.run("load")
    lab.wait(60)
    return lab


def place(lab: Lab, name: str) -> tuple[str, str]:
    """The node and the name of an application's pod."""
    (pod,) = [p for p in lab.client.list("pods", "lab") if p["metadata"]["labels"]["app"] == name]
    return pod["spec"]["nodeName"], f"lab/{pod['metadata']['name']}"


def test_a_delay_on_a_pods_interface_shows_at_its_callers(tmp_path: Path) -> None:
    lab = lab_with_two(tmp_path)
    healthy = lab.response("front", "work")
    node, pod = place(lab, "back")
    access = lab.assembly.nodes.access
    access.perform("shape_network", node, pod=pod, delay=0.3, jitter=0.05)
    lab.wait(10)
    assert lab.response("front", "work") == pytest.approx(healthy + 0.3, rel=0.2)
    access.perform("shape_network", node, pod=pod)
    lab.wait(10)
    assert lab.response("front", "work") == pytest.approx(healthy, rel=0.3)


def test_lost_packets_make_calls_slow_and_some_fail(tmp_path: Path) -> None:
    lab = lab_with_two(tmp_path)
    node, pod = place(lab, "back")
    lab.assembly.nodes.access.perform("shape_network", node, pod=pod, loss=0.7)
    lab.wait(20)
    assert lab.failing("front", "work") > 0.1
    assert lab.response("front", "work") > 0.3


def test_a_process_of_the_machine_takes_processor_from_its_pods(tmp_path: Path) -> None:
    lab = lab_with_two(tmp_path)
    node, _ = place(lab, "back")
    healthy = lab.response("back", "work")
    access = lab.assembly.nodes.access
    access.perform("burn_cpu", node, cores=64)
    lab.wait(90)
    assert lab.response("back", "work") > 3 * healthy
    access.perform("burn_cpu", node, cores=0)
    lab.wait(120)
    assert lab.response("back", "work") < 2 * healthy


def test_a_slow_disk_slows_what_is_stored_on_it(tmp_path: Path) -> None:
    front = server("front", dependencies={"db": {"address": "db:27017", "protocol": "mongo"}})
    front["operations"]["work"]["does"] = [{"call": "db insert", "target": "things"}]
    lab = Lab(tmp_path, [front, load("front", 10)])
    lab.run("db", port=27017, image="mongo:4.4.6")
    lab.run("front", port=8080)
    lab.run("load")
    lab.wait(90)
    healthy = lab.response("front", "work")
    node, _ = place(lab, "db")
    lab.assembly.nodes.access.perform("slow_disk", node, factor=100)
    lab.wait(60)
    assert lab.response("front", "work") > healthy + 0.05
