"""Laws of queueing theory, checked on programs of a running cluster."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.traffic.small_applications import Lab, load, server


def erlang_wait(servers: int, rate: float, service: float) -> float:
    """Mean time in line of M/M/c, by Erlang's formula."""
    offered = rate * service
    below = sum(offered**k / math.factorial(k) for k in range(servers))
    at = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return at / (below + at) / (servers / service - rate)


@pytest.mark.parametrize(("cores", "utilisation"), [(1, 0.3), (1, 0.6), (1, 0.8), (2, 0.7), (4, 0.8)])
def test_response_time_follows_queueing_theory(tmp_path: Path, cores: int, utilisation: float) -> None:
    service = 0.010
    rate = utilisation * cores / service
    lab = Lab(tmp_path, [server("worker", cpu="10ms", runtime="java"), load("worker", rate)])
    lab.run("worker", port=8080, resources={"limits": {"cpu": str(cores)}})
    lab.run("load")
    lab.wait(90)
    measured = lab.mean_response("worker", "work", 120)
    expected = service + erlang_wait(cores, rate, service)
    # Arrivals fluctuate, so the mean of a few minutes lies a little above that of a constant rate.
    assert measured == pytest.approx(expected, rel=0.25)


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    caller = server("front", dependencies={"back": {"address": "back:8080", "protocol": "grpc"}})
    caller["operations"]["work"]["does"] = [{"call": "back work", "times": 3}]
    lab = Lab(tmp_path, [server("back"), caller, load("front", 50)])
    for name in ("back", "front"):
        lab.run(name, port=8080, replicas=2)
    lab.run("load")
    lab.wait(60)
    before, inside = lab.traffic.counters.good.copy(), in_progress(lab)
    lab.wait(100)
    counted = {
        (key.service, key.kind): lab.traffic.counters.good[row] - before[row]
        for row, key in enumerate(lab.traffic.counters.keys)
    }
    waiting, unmade = (after - before for after, before in zip(in_progress(lab), inside, strict=True))
    assert counted["front", "server"] == pytest.approx(5000, rel=0.05)
    assert counted["front", "client"] == pytest.approx(3 * (counted["front", "server"] - unmade), rel=1e-6)
    assert counted["front", "client"] == pytest.approx(counted["back", "server"] + waiting, rel=1e-6)


def in_progress(lab: Lab) -> tuple[float, float]:
    """Requests in the queues of `back`, and those of `front` whose calls are still to be made."""
    nodes = lab.fluid.graph.nodes
    waiting = sum(float(lab.fluid.waiting[node.index]) for node in nodes if node.server.name == "back")
    return waiting, sum(float(lab.fluid.unmade[node.index]) for node in nodes if node.server.name == "front")


def test_overload_fills_the_line_and_less_load_empties_it(tmp_path: Path) -> None:
    lab = Lab(tmp_path, [server("worker", cpu="10ms"), load("worker", 150)])
    lab.run("worker", port=8080, resources={"limits": {"cpu": "1"}})
    lab.run("load")
    lab.wait(60)
    first = lab.response("worker", "work")
    lab.wait(30)
    assert lab.response("worker", "work") > first + 5, "a third of the load stays in line, second after second"
    assert lab.rate("worker", "work") == pytest.approx(100, rel=0.03)
    driver = next(iter(lab.traffic.drivers.values()))
    driver.rate = 20.0
    lab.wait(120)
    assert lab.response("worker", "work") < 0.05


def test_a_full_queue_turns_requests_away(tmp_path: Path) -> None:
    lab = Lab(tmp_path, [server("worker", cpu="10ms", queue=20), load("worker", 150)])
    lab.run("worker", port=8080, resources={"limits": {"cpu": "1"}})
    lab.run("load")
    lab.wait(90)
    assert lab.response("worker", "work") < 0.35, "a queue has at most twenty requests"
    failing = float(lab.fluid.call_fails[lab.call("load", "work").index])
    assert failing == pytest.approx(1 / 3, abs=0.08)


def test_a_slow_dependency_shows_at_its_callers_and_not_at_its_siblings(tmp_path: Path) -> None:
    slow = server("slow", operation={"latency": "400ms"})
    front = server(
        "front", dependencies={name: {"address": f"{name}:8080", "protocol": "grpc"} for name in ("slow", "quick")}
    )
    front["operations"]["work"]["does"] = [{"call": "quick work"}, {"call": "slow work"}]
    lab = Lab(tmp_path, [slow, server("quick"), front, load("front", 20)])
    for name in ("slow", "quick", "front"):
        lab.run(name, port=8080)
    lab.run("load")
    lab.wait(60)
    assert lab.response("front", "work") > 0.4
    assert lab.response("quick", "work") < 0.01


def test_two_calls_at_once_take_as_long_as_the_longer(tmp_path: Path) -> None:
    front = server("front", dependencies={name: {"address": f"{name}:8080", "protocol": "grpc"} for name in ("a", "b")})
    front["operations"]["work"]["does"] = [{"parallel": [{"call": "a work"}, {"call": "b work"}]}]
    programs = [server("a", operation={"latency": "100ms"}), server("b", operation={"latency": "80ms"}), front]
    lab = Lab(tmp_path, [*programs, load("front", 20)])
    for name in ("a", "b", "front"):
        lab.run(name, port=8080)
    lab.run("load")
    lab.wait(60)
    assert 0.1 < lab.response("front", "work") < 0.13


def test_a_dry_connection_pool_makes_callers_wait_and_time_out(tmp_path: Path) -> None:
    back = server("back", operation={"latency": "100ms"})
    pool = {"address": "back:8080", "protocol": "grpc", "pool": 5, "pool_timeout": "1s"}
    front = server("front", dependencies={"back": pool})
    front["operations"]["work"]["does"] = [{"call": "back work", "log": "cannot get a connection: {error}"}]
    lab = Lab(tmp_path, [back, front, load("front", 100)])
    for name in ("back", "front"):
        lab.run(name, port=8080)
    lab.run("load")
    lab.wait(120)
    assert lab.failing("front", "work") > 0.3, "five connections carry fifty calls a second, not a hundred"
    assert lab.response("back", "work") < 0.15, "the server itself is fine"
    assert "connection pool timed out" in lab.logs("front")


def test_threads_serve_no_more_than_their_calls_allow(tmp_path: Path) -> None:
    """Also when the call graph is built again, as it is whenever the cluster changes."""
    front = server(
        "front", runtime="python", threads=1, dependencies={"back": {"address": "back:8080", "protocol": "grpc"}}
    )
    front["operations"]["work"]["does"] = [{"call": "back work"}]
    back = server("back")
    back["operations"]["work"]["latency"] = "2s"
    lab = Lab(tmp_path, [back, front, load("front", 3)])
    for name in ("back", "front"):
        lab.run(name, port=8080)
    lab.run("load")
    lab.wait(30)
    completed = 0.0
    for second in range(120):
        if second % 10 == 0:
            lab.traffic._version += 1
        lab.wait(1)
        completed += lab.rate("front", "work")
    assert completed == pytest.approx(60, rel=0.05)
    assert lab.fluid.waiting[lab.node("front", "work").index] > 250
