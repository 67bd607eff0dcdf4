"""Probes: when they ask, what they say, and what follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from signal import Signals

import pytest

from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.reachability import GrpcHealth
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.objects import Obj
from tests.kubelet.harness import Lab

PORTS = [{"name": "http", "containerPort": 80}]
BUSYBOX = "busybox:1.36"


def listener(lab: Lab, name: str = "web") -> Listener:
    sandbox = lab.nodes.sandbox("default", name)
    assert sandbox is not None
    found = sandbox.namespace.find(sandbox.address, 80)
    assert found is not None
    return found


def answering(
    status: int, delay: float = 0.0, lab: Lab | None = None
) -> Callable[[HttpRequest], Awaitable[HttpResponse]]:
    async def answer(request: HttpRequest) -> HttpResponse:
        if lab is not None:
            await lab.clock.sleep(delay)
        return HttpResponse(status)

    return answer


def http(**more: object) -> Obj:
    return {"httpGet": {"path": "/health", "port": "http"}, **more}


def test_a_pod_is_ready_when_its_probe_says_so(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(initialDelaySeconds=15, periodSeconds=5))
    lab.pass_time(10)
    assert lab.status()["phase"] == "Running"
    assert not lab.is_ready()
    assert lab.container()["started"] is True
    lab.pass_time(15)
    assert lab.is_ready()


def test_a_ready_pod_costs_no_event_and_no_write(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(), livenessProbe=http())
    lab.pass_time(10)
    before = lab.pod()["metadata"]["resourceVersion"]
    lab.pass_time(3600)
    assert lab.pod()["metadata"]["resourceVersion"] == before
    assert not lab.events(reason="Unhealthy")


def test_readiness_follows_the_answers(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(periodSeconds=5, failureThreshold=3))
    lab.pass_time(10)
    assert lab.is_ready()
    good = listener(lab).http
    listener(lab).http = answering(503)  # type: ignore[assignment]
    lab.pass_time(9)
    assert lab.is_ready()
    lab.pass_time(7)
    assert not lab.is_ready()
    assert lab.container()["ready"] is False
    assert lab.container()["restartCount"] == 0
    assert lab.messages(reason="Unhealthy") == ["Readiness probe failed: HTTP probe failed with statuscode: 503"]
    listener(lab).http = good
    lab.pass_time(6)
    assert lab.is_ready()


def test_a_slow_answer_is_no_answer(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(periodSeconds=5, timeoutSeconds=1))
    lab.pass_time(10)
    listener(lab).http = answering(200, 3.0, lab)  # type: ignore[assignment]
    lab.pass_time(20)
    assert not lab.is_ready()
    address = lab.status()["podIP"]
    assert lab.messages(reason="Unhealthy") == [
        f'Readiness probe failed: Get "http://{address}:80/health": '
        "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    ]


def test_an_answer_that_takes_a_while_but_comes_in_time_is_good(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(periodSeconds=5, timeoutSeconds=2))
    lab.pass_time(10)
    listener(lab).http = answering(200, 1.5, lab)  # type: ignore[assignment]
    lab.pass_time(60)
    assert lab.is_ready()
    assert not lab.events(reason="Unhealthy")


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        (
            {"httpGet": {"port": 8080, "path": "/x"}},
            'Get "http://{ip}:8080/x": dial tcp {ip}:8080: connect: connection refused',
        ),
        ({"tcpSocket": {"port": 8080}}, "dial tcp {ip}:8080: connect: connection refused"),
        (
            {"grpc": {"port": 8080}},
            'timeout: failed to connect service "{ip}:8080" within 1s: context deadline exceeded',
        ),
        ({"exec": {"command": ["sh", "-c", "echo not yet; exit 1"]}}, "not yet\n"),
        (
            {"httpGet": {"port": 80, "scheme": "HTTPS"}},
            'Get "https://{ip}:80/": http: server gave HTTP response to HTTPS client',
        ),
    ],
)
def test_the_words_of_failure(lab: Lab, probe: Obj, words: str) -> None:
    lab.run(ports=PORTS, readinessProbe=probe)
    lab.pass_time(15)
    address = lab.status()["podIP"]
    assert lab.messages(reason="Unhealthy")[0] == "Readiness probe failed: " + words.format(ip=address)


def test_a_failing_liveness_probe_restarts_the_container(lab: Lab) -> None:
    lab.run(ports=PORTS, livenessProbe=http(periodSeconds=10, failureThreshold=3))
    lab.pass_time(15)
    listener(lab).http = answering(500)  # type: ignore[assignment]
    lab.pass_time(35)
    assert lab.container()["restartCount"] == 1
    assert lab.events(reason="Unhealthy")[0]["count"] == 3
    assert lab.messages(reason="Killing") == ["Container main failed liveness probe, will be restarted"]
    # The new container answers again, so it stays.
    lab.pass_time(120)
    assert lab.container()["restartCount"] == 1
    assert lab.is_ready()


def test_liveness_waits_for_startup(lab: Lab) -> None:
    script = "sleep 40; touch /tmp/up; sleep 9999"
    lab.run(
        image=BUSYBOX,
        command=["sh", "-c", script],
        startupProbe={"exec": {"command": ["cat", "/tmp/up"]}, "periodSeconds": 5, "failureThreshold": 20},
        livenessProbe={"exec": {"command": ["cat", "/tmp/up"]}, "periodSeconds": 1, "failureThreshold": 1},
    )
    lab.pass_time(30)
    assert lab.container()["started"] is False
    assert not lab.is_ready()
    lab.pass_time(30)
    assert lab.container()["started"] is True
    assert lab.is_ready()
    assert lab.container()["restartCount"] == 0
    assert all(message.startswith("Startup probe failed") for message in lab.messages(reason="Unhealthy"))


def test_a_container_that_never_starts_up_is_restarted(lab: Lab) -> None:
    lab.run(ports=PORTS, startupProbe={"tcpSocket": {"port": 9999}, "periodSeconds": 5, "failureThreshold": 2})
    lab.pass_time(30)
    assert lab.container()["restartCount"] >= 1
    assert lab.messages(reason="Killing") == ["Container main failed startup probe, will be restarted"]


def test_an_exec_probe_that_hangs_times_out(lab: Lab) -> None:
    lab.run(
        image=BUSYBOX,
        command=["sleep", "9999"],
        readinessProbe={"exec": {"command": ["sleep", "60"]}, "timeoutSeconds": 2, "periodSeconds": 5},
    )
    lab.pass_time(20)
    assert not lab.is_ready()
    assert lab.messages(reason="Unhealthy") == [
        'Readiness probe failed: command timed out: "sleep 60" timed out after 2s'
    ]


def test_a_probe_with_a_command_that_does_not_exist_is_an_error(lab: Lab) -> None:
    lab.run(image=BUSYBOX, command=["sleep", "9999"], livenessProbe={"exec": {"command": ["nonsense"]}})
    lab.pass_time(120)
    message = lab.messages(reason="Unhealthy")[0]
    assert message.startswith("Liveness probe errored and resulted in unknown state: rpc error: code = Unknown desc = ")
    assert message.endswith('exec: "nonsense": executable file not found in $PATH')
    # Nobody knows whether the container lives, so it is left alone.
    assert lab.container()["restartCount"] == 0


def test_grpc_health_is_asked_by_service(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe={"grpc": {"port": 80, "service": "shop"}, "periodSeconds": 5})
    lab.pass_time(10)
    requests: list[str] = []

    async def sick(service: str) -> GrpcHealth:
        requests.append(service)
        return GrpcHealth.NOT_SERVING

    listener(lab).grpc_health = sick
    lab.pass_time(20)
    assert set(requests) == {"shop"}
    assert not lab.is_ready()
    assert lab.messages(reason="Unhealthy")[-1] == (
        'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
    )


def test_a_stopped_process_answers_nobody(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(periodSeconds=5))
    lab.pass_time(10)
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None and record.container.main is not None
    record.container.main.raise_signal(Signals.SIGSTOP, from_outside=True)
    lab.pass_time(25)
    assert not lab.is_ready()
    record.container.main.raise_signal(Signals.SIGCONT, from_outside=True)
    lab.pass_time(10)
    assert lab.is_ready()


def redirecting(place: str, to: str = "/health") -> Callable[[HttpRequest], Awaitable[HttpResponse]]:
    async def answer(request: HttpRequest) -> HttpResponse:
        if request.path == to:
            return HttpResponse(302, b"over there", {"Location": place})
        return HttpResponse(200 if request.path == "/fine" else 404)

    return answer


def test_a_redirect_on_the_same_host_is_followed(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(periodSeconds=5, failureThreshold=1))
    lab.pass_time(10)
    listener(lab).http = redirecting("/fine")  # type: ignore[assignment]
    lab.pass_time(10)
    assert lab.is_ready()
    listener(lab).http = redirecting("/missing")  # type: ignore[assignment]
    lab.pass_time(6)
    assert not lab.is_ready()
    assert lab.messages(reason="Unhealthy") == ["Readiness probe failed: HTTP probe failed with statuscode: 404"]
    listener(lab).http = redirecting("/health")  # type: ignore[assignment]
    lab.pass_time(6)
    assert lab.messages(reason="Unhealthy")[-1].endswith("stopped after 10 redirects")


def test_a_redirect_to_another_host_is_well_with_a_warning(lab: Lab) -> None:
    lab.run(ports=PORTS, readinessProbe=http(periodSeconds=5))
    lab.pass_time(10)
    listener(lab).http = redirecting("http://example.com/")  # type: ignore[assignment]
    lab.pass_time(6)
    assert lab.is_ready()
    text = "Readiness probe warning: Probe terminated redirects, Response body: over there"
    assert lab.messages(reason="ProbeWarning") == [text]


def test_a_probe_of_a_port_without_that_name_cannot_be_asked(lab: Lab) -> None:
    lab.run(readinessProbe={"tcpSocket": {"port": "nope"}})
    lab.pass_time(15)
    assert not lab.is_ready()
    text = 'probe errored and resulted in unknown state: strconv.Atoi: parsing "nope": invalid syntax'
    assert lab.messages(reason="Unhealthy") == [f"Readiness {text}"]


def test_failures_in_a_row_are_counted_across_restarts(lab: Lab) -> None:
    command = ["sh", "-c", "sleep 15; exit 1"]
    lab.run(
        image=BUSYBOX,
        command=command,
        livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 10, "failureThreshold": 3},
    )
    lab.pass_time(60)
    assert "Container main failed liveness probe, will be restarted" in lab.messages(reason="Killing")
