"""Caches that warm up, and what happens when they are emptied."""

from __future__ import annotations

from pathlib import Path

from tests.traffic.small_applications import Lab, load, server


def test_a_cold_cache_heals(tmp_path: Path) -> None:
    front = server(
        "front",
        dependencies={
            "cache": {"address": "cache:11211", "protocol": "memcached"},
            "back": {"address": "back:8080", "protocol": "grpc"},
        },
    )
    front["operations"]["work"]["does"] = [
        {"cache": "cache get", "keys": 1, "space": 1000, "miss": [{"call": "back work"}]}
    ]
    lab = Lab(tmp_path, [server("back"), front, load("front", 50)])
    lab.run("cache", port=11211, image="memcached:1.6.7")
    for name in ("back", "front"):
        lab.run(name, port=8080)
    lab.run("load")
    lab.wait(30)
    cold = lab.rate("back", "work")
    lab.wait(180)
    warm_shares = lab.rate("back", "work")
    assert cold > 10 * warm_shares
    for pod in list(lab.client.list("pods", "lab")):
        if pod["metadata"]["labels"]["app"] == "cache":
            lab.delete("pods", pod["metadata"]["name"])
    lab.wait(40)
    assert lab.rate("back", "work") > 3 * warm_shares, "what was cached is gone with the pod"
    lab.wait(240)
    assert lab.rate("back", "work") < cold / 5
