"""Journeys: a healthy application serves them, and leaves in its stores what users wrote; a stand-in does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srearena.service.apps.registry import find_application
from tests.apps.deployed import Deployed, deployed

NAMES = ("hotel_reservation", "social_network", "astronomy_shop", "fleetcast")


@pytest.fixture(scope="module", params=NAMES)
def running(request: pytest.FixtureRequest) -> Iterator[Deployed]:
    application = find_application(request.param)
    with deployed(request.param, models=[application.folder]) as found:
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
