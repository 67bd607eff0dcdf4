"""An expired certificate at the Ingress: its symptoms, valid repairs, and fake repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.problems.base import Problem
from srearena.conductor.validity.symptoms import alerts
from srearena.service.kubernetes import Obj
from tests.problems.broken_shop import broken, judged, names

NAME = "hotel-example-com"


@pytest.fixture(scope="module")
def expired() -> Iterator[Problem]:
    with broken("expired_tls_hotel_reservation") as problem:
        yield problem


@pytest.fixture
def as_broken(expired: Problem) -> Iterator[Problem]:
    """Restore the Ingress and the Secret after each test."""
    kept = [expired.kubernetes.get(resource, NAME, expired.namespace) for resource in ("secrets", "ingresses")]
    yield expired
    for obj, resource in zip(kept, ("secrets", "ingresses"), strict=True):
        if expired.kubernetes.find(resource, NAME, expired.namespace) is not None:
            expired.kubernetes.delete(resource, NAME, expired.namespace)
        fresh = {key: value for key, value in obj.items() if key != "status"}
        fresh["metadata"] = {"name": NAME, "namespace": expired.namespace}
        expired.kubernetes.apply(fresh)
    expired.cluster.wait(10)


def changed(problem: Problem, change: Callable[[Obj], None]) -> None:
    ingress = problem.kubernetes.get("ingresses", NAME, problem.namespace)
    change(ingress)
    problem.kubernetes.replace(ingress, problem.namespace)
    problem.cluster.wait(10)


def test_visitors_alerts_and_the_controllers_log_tell_of_it(as_broken: Problem) -> None:
    verdict = judged(as_broken)
    assert names(verdict) == {"public-name"} and "certificate that expired at" in verdict.reasons[0]
    telemetry = Telemetry(as_broken.cluster)
    try:
        assert any("HTTPProbeFailure" in alert for alert in alerts(telemetry))
    finally:
        telemetry.close()
    (controller,) = as_broken.kubernetes.list("pods", "ingress-nginx")
    log = as_broken.kubernetes.logs(controller["metadata"]["name"], "ingress-nginx")
    assert 'SSL certificate for server "hotel.example.com" expired' in log


def test_serving_the_name_without_tls_is_a_repair(as_broken: Problem) -> None:
    changed(as_broken, lambda ingress: ingress["spec"].pop("tls"))
    verdict = judged(as_broken)
    assert verdict.passed, verdict.reasons


def _open_to_http(ingress: Obj) -> None:
    ingress["metadata"].setdefault("annotations", {})["nginx.ingress.kubernetes.io/ssl-redirect"] = "false"


def test_opening_http_beside_the_expired_certificate_is_none(as_broken: Problem) -> None:
    changed(as_broken, _open_to_http)
    assert names(judged(as_broken)) == {"public-name"}


@pytest.mark.parametrize("resource", ["secrets", "ingresses"])
def test_taking_away_the_certificate_or_the_door_is_none(as_broken: Problem, resource: str) -> None:
    as_broken.kubernetes.delete(resource, NAME, as_broken.namespace)
    as_broken.cluster.wait(10)
    assert "public-name" in names(judged(as_broken))
