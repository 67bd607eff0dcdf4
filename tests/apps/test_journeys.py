"""Journeys: a healthy application serves them, and leaves in its stores what users wrote; a stand-in does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from random import Random

import pytest

from benchmarks.questions.engineer import Engineer
from benchmarks.twenty_questions import ask, questions_for
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.service.apps.registry import find_application
from tests.apps.deployed import Deployed, deployed
from tests.apps.hostile_bytes import hostile_bytes
from tests.selection import rotation_seed

NAMES = (
    "hotel_reservation",
    "social_network",
    "astronomy_shop",
    "fleetcast",
    "online_boutique",
    "blueprint_hotel_reservation",
    "train_ticket",
)


@pytest.fixture(scope="module", params=NAMES)
def running(request: pytest.FixtureRequest) -> Iterator[Deployed]:
    application = find_application(request.param)
    with deployed(request.param, models=[application.folder]) as found:
        found.wait(60)  # programs that began before their database start again
        yield found


def _complaints(running: Deployed) -> dict[str, list[str]]:
    application = running.application
    assert application is not None and application.frontend is not None
    return {
        journey.name: journey.play(running.api, application.frontend, application.namespace)
        for journey in application.journeys
    }


def test_a_healthy_application_serves_its_journeys_again_and_again(running: Deployed) -> None:
    for _ in range(3):
        results = _complaints(running)
        assert results and not any(results.values()), results


def test_a_careful_engineer_has_no_doubts(running: Deployed, request: pytest.FixtureRequest) -> None:
    """Two applications, by turns; for all of them, an hour at three seeds: `python -m benchmarks.twenty_questions`."""
    name = request.node.callspec.params["running"]
    if (NAMES.index(name) - rotation_seed()) % len(NAMES) > 1:
        return
    minutes = 4
    application = running.application
    assert application is not None
    application.start_workload(running.cluster)
    running.wait(60 * minutes + 90)
    with closing(Engineer(running.cluster, running.api, application, minutes)) as engineer:
        assert ask(engineer, questions_for(name)) == {}


def test_a_server_that_says_ok_serves_no_journey(running: Deployed) -> None:
    """Last in this module: it replaces the frontend."""
    application = running.application
    assert application is not None and application.frontend is not None
    service = application.frontend.service
    page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}, "data": {}}
    page["data"] = {"default.conf": 'server { listen 8088; location / { return 200 "ok"; } }'}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stand-in", "labels": {"app": "stand-in"}},
        "spec": {
            "containers": [
                {
                    "name": "nginx",
                    "image": "nginx:1.27",
                    "volumeMounts": [{"name": "page", "mountPath": "/etc/nginx/conf.d"}],
                }
            ],
            "volumes": [{"name": "page", "configMap": {"name": "page"}}],
        },
    }
    running.api.create(page, application.namespace)
    running.api.create(pod, application.namespace)
    running.wait(30)
    found = running.api.get("services", service, application.namespace)
    selector = dict.fromkeys(found["spec"]["selector"])
    ports = [{**port, "targetPort": 8088} for port in found["spec"]["ports"]]
    patch = {"spec": {"selector": {**selector, "app": "stand-in"}, "ports": ports}}
    running.api.patch("services", service, patch, application.namespace)
    running.wait(5)
    reply = running.api.request_service(service, application.frontend.port, "/", application.namespace)
    assert (reply.status, reply.text) == (200, "ok")
    results = _complaints(running)
    assert all(results.values()), results


def test_hostile_clients_cause_no_error_of_the_simulator(running: Deployed) -> None:
    """Whatever comes in at any port of any program. It is the last test with this cluster: some programs may exit."""
    random = Random(7)
    host = running.cluster._thread.host  # type: ignore[attr-defined]
    received: list[bytes] = []

    async def talk(connection: Connection) -> None:
        with suppress(OSError):
            await connection.write(hostile_bytes(random))
            received.append(await connection.read())
        connection.close()

    async def attack() -> int:
        listeners = {
            (listener.owner.name, listener.port): listener
            for machine in host.assembly.network.fabric.hosts.pods.values()
            for listener in machine.sockets.listeners()
            if listener.protocol == "TCP"
        }
        for listener in listeners.values():
            for port in range(20_000, 20_030):
                connection = listener.connect(("10.244.9.9", port), (listener.namespace.address, listener.port))
                listener.namespace.clock.spawn(talk(connection))
        return len(listeners)

    attacked = running.cluster._thread.call(attack())  # type: ignore[attr-defined]
    running.wait(30)
    assert attacked > 15 and sum(map(bool, received)) > 10 * attacked
    assert running.cluster.internal_errors() == []
