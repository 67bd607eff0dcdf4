"""Liveness, readiness and startup probes that fail, and what the pod and its Service do about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .operator import Operator


def web(probes: dict[str, Any], image: str = "nginx:1.27", **more: Any) -> dict[str, Any]:
    """A Deployment called web with those probes on its only container."""
    container = {"name": "web", "image": image, "ports": [{"name": "http", "containerPort": 80}], **probes, **more}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }


def endpoints(operator: Operator) -> dict[str, list[bool]]:
    """Whether each endpoint of the Service web is ready."""
    slices = operator.get("endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
    return {
        address: [endpoint["conditions"]["ready"]]
        for piece in slices
        for endpoint in piece.get("endpoints") or ()
        for address in endpoint["addresses"]
    }


def test_an_unready_pod_runs_but_gets_no_traffic_until_it_is_well(operator: Operator) -> None:
    operator.apply(web({"readinessProbe": {"httpGet": {"path": "/ready.html", "port": "http"}, "periodSeconds": 5}}))
    operator.kubectl("expose", "deployment", "web", "--port=80")
    operator.wait(30)
    name = operator.only_pod("app=web")
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("0/1", "Running", "0")
    unhealthy = ("Warning", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404")
    assert unhealthy in operator.events(name)
    assert operator.condition("Ready", "pod", name)["message"] == "containers with unready status: [web]"
    assert list(endpoints(operator).values()) == [[False]]
    assert operator.row("endpoints", "web")["ENDPOINTS"] == ""

    operator.kubectl("exec", name, "--", "sh", "-c", "echo yes > /usr/share/nginx/html/ready.html")
    operator.wait(10)
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("1/1", "Running", "0")
    assert list(endpoints(operator).values()) == [[True]]

    operator.kubectl("exec", name, "--", "rm", "/usr/share/nginx/html/ready.html")
    operator.wait(20)
    assert operator.row("pod", name)["READY"] == "0/1"
    assert list(endpoints(operator).values()) == [[False]]
    assert operator.condition("Available", "deployment", "web")["status"] == "False"


def test_a_failing_liveness_probe_restarts_the_container_again_and_again(operator: Operator) -> None:
    operator.apply(
        web({"livenessProbe": {"httpGet": {"path": "/health", "port": 80}, "periodSeconds": 5, "failureThreshold": 3}})
    )
    operator.wait(200)
    name = operator.only_pod("app=web")
    status = operator.container(name)
    assert status["restartCount"] >= 4
    events = operator.events(name)
    assert ("Warning", "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 404") in events
    assert ("Normal", "Killing", "Container web failed liveness probe, will be restarted") in events
    last = status["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (0, "Completed"), "nginx ends well when it is told to"
    operator.wait(120)
    assert operator.printed_status(name) in ("CrashLoopBackOff", "Running", "Completed")

    operator.apply(web({"livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5}}))
    operator.wait(60)
    name = operator.only_pod("app=web")
    assert operator.row("pod", name)["RESTARTS"] == "0"
    assert operator.row("pod", name)["READY"] == "1/1"
    assert "Unhealthy" not in operator.reasons(name)


def test_a_server_that_wont_stop_is_killed_after_its_grace_period(operator: Operator) -> None:
    operator.apply(
        web(
            {"livenessProbe": {"exec": {"command": ["cat", "/tmp/healthy"]}, "periodSeconds": 5}},
            image="busybox:1.36",
            command=[
                "sh",
                "-c",
                "trap '' TERM; touch /tmp/healthy; sleep 30; rm /tmp/healthy; while true; do sleep 1; done",
            ],
        )
    )
    operator.wait(40)
    name = operator.only_pod("app=web")
    assert operator.container(name)["restartCount"] == 0
    operator.wait(45)
    status = operator.container(name)
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 137
    assert status["lastState"]["terminated"]["reason"] == "Error"
    failed = "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory"
    assert ("Warning", "Unhealthy", failed) in [(a, b, c.strip()) for a, b, c in operator.events(name)]


def test_a_slow_start_is_killed_unless_a_startup_probe_gives_it_time(operator: Operator) -> None:
    slow = ["sh", "-c", "sleep 60; nc -lk -p 80 -e echo hi"]
    liveness = {"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 2}
    operator.apply(web({"livenessProbe": liveness}, image="busybox:1.36", command=slow))
    operator.wait(60)
    name = operator.only_pod("app=web")
    address = operator.path("{.status.podIP}", "pod", name)
    assert operator.container(name)["restartCount"] >= 1
    refused = f"Liveness probe failed: dial tcp {address}:80: connect: connection refused"
    assert ("Warning", "Unhealthy", refused) in operator.events(name)
    startup = {"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 30}
    operator.apply(web({"livenessProbe": liveness, "startupProbe": startup}, image="busybox:1.36", command=slow))
    operator.wait(75)
    name = operator.only_pod("app=web")
    status = operator.container(name)
    assert (status["started"], status["ready"], status["restartCount"]) == (False, False, 0)
    operator.wait(45)
    status = operator.container(name)
    assert (status["started"], status["ready"], status["restartCount"]) == (True, True, 0)


def test_a_startup_probe_that_never_succeeds_ends_in_a_crash_loop(operator: Operator) -> None:
    probe = {"exec": {"command": ["cat", "/tmp/started"]}, "periodSeconds": 2, "failureThreshold": 3}
    operator.apply(web({"startupProbe": probe}, image="busybox:1.36", command=["sh", "-c", "sleep 3600"]))
    operator.wait(200)
    name = operator.only_pod("app=web")
    assert operator.container(name)["restartCount"] >= 2
    events = operator.events(name)
    assert ("Normal", "Killing", "Container web failed startup probe, will be restarted") in events
    assert any(reason == "Unhealthy" and text.startswith("Startup probe failed: cat:") for _, reason, text in events)


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ({"httpGet": {"port": 8081}}, 'Get "http://{ip}:8081/": dial tcp {ip}:8081: connect: connection refused'),
        ({"tcpSocket": {"port": 8081}}, "dial tcp {ip}:8081: connect: connection refused"),
        ({"exec": {"command": ["sh", "-c", "echo locked; exit 1"]}}, "locked\n"),
        (
            {"exec": {"command": ["sleep", "5"]}},
            'command timed out: "sleep 5" timed out after 1s',
        ),
        (
            {"grpc": {"port": 8081}},
            'timeout: failed to connect service "{ip}:8081" within 1s: context deadline exceeded',
        ),
    ],
    ids=["http", "tcp", "exec", "exec-timeout", "grpc"],
)
def test_each_kind_of_readiness_probe_fails_in_its_own_words(
    operator: Operator, probe: dict[str, Any], words: str
) -> None:
    operator.apply(web({"readinessProbe": {**probe, "periodSeconds": 3}}))
    operator.wait(20)
    name = operator.only_pod("app=web")
    address = operator.path("{.status.podIP}", "pod", name)
    assert ("Warning", "Unhealthy", "Readiness probe failed: " + words.format(ip=address)) in operator.events(name)
    fixed = (
        '[{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe","value":{"tcpSocket":{"port":80}}}]'
    )
    operator.kubectl("patch", "deployment", "web", "--type=json", "-p", fixed)
    operator.wait(50)
    assert operator.row("deployment", "web")["READY"] == "1/1"


def test_a_grpc_server_answers_its_probe(operator: Operator) -> None:
    probe = {"readinessProbe": {"grpc": {"port": 80}}, "livenessProbe": {"grpc": {"port": 80}, "periodSeconds": 5}}
    operator.apply(web(probe, image="gcr.io/google-samples/microservices-demo/cartservice:v0.10.2"))
    operator.wait(60)
    name = operator.only_pod("app=web")
    assert operator.row("pod", name)["READY"] == "1/1"
    assert operator.row("pod", name)["RESTARTS"] == "0"


def test_a_readiness_gate_waits_for_whoever_sets_its_condition(operator: Operator) -> None:
    manifest = web({})
    manifest["spec"]["template"]["spec"]["readinessGates"] = [{"conditionType": "acme.io/registered"}]
    operator.apply(manifest)
    operator.wait(20)
    name = operator.only_pod("app=web")
    ready = operator.condition("Ready", "pod", name)
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert ready["message"] == 'corresponding condition of pod readiness gate "acme.io/registered" does not exist.'
    assert operator.row("pod", name, "-o", "wide")["READINESS GATES"] == "0/1"
    patch = json.dumps({"status": {"conditions": [{"type": "acme.io/registered", "status": "True"}]}})
    operator.kubectl("patch", "pod", name, "--subresource=status", "-p", patch)
    operator.wait(5)
    assert operator.condition("Ready", "pod", name)["status"] == "True"
    assert operator.row("deployment", "web")["AVAILABLE"] == "1"
