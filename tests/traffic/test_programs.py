"""Startup, serving and end of modelled programs, depending on the state of the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traffic.small_applications import Lab, load, server


def test_a_missing_setting_ends_the_program_with_its_own_words(tmp_path: Path) -> None:
    needy = server("needy", settings={"address": {"env": "STORE_ADDR"}})
    needy["start"] = [{"need": "address", "else": {"log": "STORE_ADDR is not set", "exit": 3}}]
    lab = Lab(tmp_path, [needy])
    lab.run("needy", port=8080)
    lab.wait(60)
    assert lab.restarts("needy") >= 2
    assert "STORE_ADDR is not set" in lab.logs("needy")


def test_a_program_waits_for_what_it_needs_and_then_starts(tmp_path: Path) -> None:
    patient = server("patient", dependencies={"back": {"address": "back:8080", "protocol": "grpc"}})
    patient["start"] = [{"reach": "back", "within": "1s", "else": {"log": "waiting for back: {error}", "retry": "2s"}}]
    lab = Lab(tmp_path, [patient, server("back"), load("patient", 5)])
    lab.run("patient", port=8080)
    lab.run("load")
    lab.wait(40)
    assert lab.restarts("patient") == 0
    assert "no such host" in lab.logs("patient")
    assert float(lab.fluid.call_fails[lab.call("load", "work").index]) == 1.0, "nothing listens yet"
    lab.run("back", port=8080)
    lab.wait(40)
    assert lab.failing("patient", "work") == 0.0


def test_a_port_that_is_taken_ends_the_second(tmp_path: Path) -> None:
    lab = Lab(tmp_path, [server("web"), {**server("twin"), "images": ["lab/twin"]}])
    lab.client.create(
        "pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pair", "namespace": "lab", "labels": {"app": "pair"}},
            "spec": {
                "containers": [
                    {"name": "web", "image": "lab/web:latest"},
                    {"name": "twin", "image": "lab/twin:latest"},
                ]
            },
        },
    )
    lab.wait(60)
    assert "address already in use" in lab.logs("pair")
    assert lab.restarts("pair") >= 2


def test_a_failed_call_can_kill_and_the_program_heals_with_its_dependency(tmp_path: Path) -> None:
    fragile = server(
        "fragile", dependencies={"cache": {"address": "cache:11211", "protocol": "memcached", "timeout": "2s"}}
    )
    fragile["operations"]["work"]["does"] = [
        {"call": "cache get", "on_error": "crash", "crash_log": ["panic: cache error: {error}"], "exit": 2}
    ]
    lab = Lab(tmp_path, [fragile, load("fragile", 20)])
    lab.run("cache", port=11211, image="memcached:1.6.7")
    lab.run("fragile", port=8080)
    lab.run("load")
    lab.wait(60)
    assert lab.restarts("fragile") == 0
    lab.delete("services", "cache")
    lab.wait(60)
    assert lab.restarts("fragile") >= 2
    assert "panic: cache error: dial tcp: lookup cache" in lab.logs("fragile")


def test_a_leak_ends_at_the_limit(tmp_path: Path) -> None:
    leaking = server("leaking", settings={"leak": {"env": "LEAK"}}, memory="10Mi")
    leaking["effects"] = [{"when": {"setting": "leak", "is": "on"}, "leaks": "200Ki"}]
    lab = Lab(tmp_path, [leaking, load("leaking", 20)])
    limits = {"limits": {"memory": "64Mi"}}
    lab.run("leaking", port=8080, resources=limits, env=[{"name": "LEAK", "value": "on"}])
    lab.run("load")
    lab.wait(120)
    assert lab.restarts("leaking") >= 1
    (pod,) = [p for p in lab.client.list("pods", "lab") if p["metadata"]["labels"]["app"] == "leaking"]
    last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("OOMKilled", 137)


def test_garbage_collection_eats_the_processor_as_its_percentage_falls(tmp_path: Path) -> None:
    busy = server("busy", settings={"gc": {"env": "GOGC", "default": 100}}, operation={"allocates": "1Mi"})
    busy["collects"] = {"percent": "${gc}", "live": "20Mi"}
    lab = Lab(tmp_path, [busy, {**busy, "name": "calm", "images": ["lab/calm"]}, load("calm", 50)])
    lab.run("calm", port=8080, resources={"limits": {"cpu": "1"}})
    lab.run("load")
    lab.wait(60)
    is_steady = lab.response("calm", "work")
    lab.delete("deployments.apps", "calm")
    lab.run(
        "tight",
        port=8080,
        image="lab/calm:latest",
        resources={"limits": {"cpu": "1"}},
        env=[{"name": "GOGC", "value": "1"}],
    )
    lab.delete("services", "calm")
    lab.client.create(
        "services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "calm", "namespace": "lab"},
            "spec": {"selector": {"app": "tight"}, "ports": [{"port": 8080}]},
        },
    )
    lab.wait(120)
    assert lab.response("calm", "work") > 5 * is_steady


def test_the_same_seed_gives_the_same_spans_and_logs(tmp_path: Path) -> None:
    def run(folder: Path) -> tuple[list[object], str]:
        front = server("front", dependencies={"back": {"address": "back:8080", "protocol": "grpc"}})
        front["operations"]["work"] |= {"does": [{"call": "back work"}], "log": "{time} done in {milliseconds} ms {id}"}
        lab = Lab(
            folder, [front, server("back", operation={"fails": 0.1, "error": "no luck"}), load("front", 20)], seed=5
        )
        lab.run("front", port=8080)
        lab.run("back", port=8080)
        lab.run("load")
        lab.wait(120)
        spans = [
            (s.trace_id, s.span_id, s.name, s.start, s.duration, s.message)
            for s in lab.assembly.telemetry.spans.all_spans()
        ]
        return spans, lab.logs("front")

    assert run(tmp_path / "one") == run(tmp_path / "two")


@pytest.mark.parametrize("browsers", ["true", "false"])
def test_a_task_is_there_where_a_setting_says_so_and_a_header_chooses_the_operation(
    tmp_path: Path, browsers: str
) -> None:
    door = server("door")
    door["listen"] = [{"port": 8080, "protocol": "http"}]
    door["operations"] = {
        "picture": {"route": "GET /pictures/*", "cpu": "1ms"},
        "held": {"route": "GET /pictures/*", "header": "x-hold", "cpu": "1ms", "latency": "2s"},
    }
    visitors = load("door", 4)
    visitors["dependencies"]["target"]["protocol"] = "http"
    visitors["settings"]["browsers"] = {"env": "BROWSERS", "default": "false"}
    visitors["drives"]["tasks"] = [
        {"requests": [{"call": "target GET /pictures/a"}]},
        {
            "name": "page",
            "when": {"setting": "browsers"},
            "requests": [{"call": "target GET /pictures/b", "operation": "held"}],
        },
    ]
    lab = Lab(tmp_path, [door, visitors])
    lab.run("door", port=8080)
    lab.run("load", env=[{"name": "BROWSERS", "value": browsers}])
    lab.wait(40)
    assert lab.mean_response("door", "picture", 10) < 0.1
    served = {node.name for node in lab.fluid.graph.nodes if node.server.name == "door"}
    assert served == ({"picture", "held"} if browsers == "true" else {"picture"})
    if browsers == "true":
        assert lab.mean_response("door", "held", 10) > 1.5


def test_a_proxy_passes_on_responses_and_answers_itself_where_there_is_none(tmp_path: Path) -> None:
    proxy = server("proxy", runtime="envoy", traced=True)
    proxy["listen"] = [{"port": 8080, "protocol": "http"}]
    proxy["dependencies"] = {"back": {"address": "back:8080", "protocol": "http", "timeout": "5s"}}
    proxy["operations"] = {"all": {"route": "ANY /*", "status": 503, "span": "all", "does": [{"call": "back same"}]}}
    back = server("back", traced=True)
    back["listen"] = [{"port": 8080, "protocol": "http"}]
    back["operations"] = {"work": {"route": "GET /work", "fails": 1.0, "error": "no such table", "status": 500}}
    lab = Lab(tmp_path, [proxy, back])
    lab.run("back", port=8080)
    lab.run("proxy", port=8080)
    lab.wait(30)

    def answer() -> tuple[int, str, str]:
        [instance] = [one for one in lab.traffic.instances.values() if one.name == "proxy"]
        response = lab.traffic.request(instance, "GET", "/work")
        assert response is not None
        result, _, _ = response
        assert not result.ok
        return result.status, result.error, "" if result.origin is None else result.origin.server.name

    assert answer() == (500, "no such table", "back")
    lab.delete("deployments.apps", "back")
    lab.wait(60)
    status, error, origin = answer()
    assert (status, origin) == (503, "")
    assert error == (
        "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure, transport "
        "failure reason: delayed connect error: Connection refused"
    )
    lab.delete("services", "back")
    lab.wait(60)
    assert answer() == (503, "no healthy upstream", "")
