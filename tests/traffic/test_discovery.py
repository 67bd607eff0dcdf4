"""Callers that find their peers in a registry: addresses of pods that are gone, and a registry that lost everything."""

from __future__ import annotations

from pathlib import Path

from tests.traffic.small_applications import Lab, load, server


def lab_with_consul(folder: Path) -> Lab:
    registry = {"address": "consul:8500", "protocol": "http"}
    back = server("back", dependencies={"consul": registry})
    back["start"] = [{"register": "consul", "name": "srv-back", "else": {"log": "cannot register: {error}", "exit": 1}}]
    front = server(
        "front",
        dependencies={"consul": registry, "back": {"discover": "consul/srv-back", "protocol": "grpc"}},
    )
    front["operations"]["work"]["does"] = [{"call": "back work"}]
    lab = Lab(folder, [back, front, load("front", 20)])
    lab.run("consul", port=8500, image="hashicorp/consul:latest")
    lab.wait(20)
    lab.run("back")
    lab.run("front", port=8080)
    lab.run("load")
    lab.wait(60)
    return lab


def replace_pod(lab: Lab, name: str) -> None:
    for pod in list(lab.client.list("pods", "lab")):
        if pod["metadata"]["labels"]["app"] == name:
            lab.client.delete("pods", pod)


def test_no_service_is_needed_to_reach_a_registered_peer(tmp_path: Path) -> None:
    lab = lab_with_consul(tmp_path)
    assert lab.client.get("services", "lab", "back") is None
    assert lab.failing("front", "work") == 0.0


def test_the_address_of_a_pod_that_is_gone_does_no_harm_while_another_stands(tmp_path: Path) -> None:
    lab = lab_with_consul(tmp_path)
    replace_pod(lab, "back")
    lab.wait(60)
    assert lab.failing("front", "work") == 0.0


def test_a_registry_that_lost_everything_stops_callers_until_peers_register_again(tmp_path: Path) -> None:
    lab = lab_with_consul(tmp_path)
    replace_pod(lab, "consul")
    lab.wait(60)
    assert lab.failing("front", "work") > 0.99
    replace_pod(lab, "back")
    lab.wait(60)
    assert lab.failing("front", "work") == 0.0
