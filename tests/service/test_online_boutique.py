"""Online Boutique with its model: what depends on what, seen from the frontend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.apps import Application, find_application
from srearena.service.frontend import ProbeResult, SampleRequest
from srearena.service.kubernetes import Kubernetes

FORM = {"content-type": "application/x-www-form-urlencoded"}
CARD = "credit_card_number=4432801561520454&credit_card_expiration_month=1&credit_card_expiration_year=2039"
ORDER = SampleRequest("/cart/checkout", "POST", CARD, FORM, contains="Your order is complete!")
HOME = SampleRequest("/", contains="Hot Products")


class Shop:
    def __init__(self, application: Application, cluster: Cluster, api: Kubernetes) -> None:
        self.application, self.cluster, self.api = application, cluster, api

    def visit(self, request: SampleRequest) -> ProbeResult:
        assert self.application.frontend is not None
        return self.application.frontend.probe(self.api, "online-boutique", request)

    def scale(self, name: str, replicas: int) -> None:
        self.api.scale("deploy", name, replicas, "online-boutique")
        self.cluster.wait(60)

    def log(self, name: str) -> str:
        pods = self.api.list("pods", "online-boutique", labels=f"app={name}")
        return self.api.logs(pods[0]["metadata"]["name"], "online-boutique")


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    application = find_application("online-boutique")
    with (
        start_embedded(in_process=True, speed=0, models=[application.folder]) as cluster,
        Kubernetes.of(cluster) as api,
    ):
        application.deploy(cluster)
        application.wait_until_ready(cluster)
        cluster.wait(120)
        yield Shop(application, cluster, api)


def test_a_healthy_shop_answers_every_sample_and_takes_orders(shop: Shop) -> None:
    door = shop.application.frontend
    assert door is not None
    assert [visit.status for visit in door.probe_all(shop.api, "online-boutique")] == [200, 200, 200, 200]
    assert shop.visit(ORDER).ok
    restarts = [
        s["restartCount"] for p in shop.api.list("pods", "online-boutique") for s in p["status"]["containerStatuses"]
    ]
    assert set(restarts) == {0}


def test_its_own_visitors_leave_their_traces_in_the_logs(shop: Shop) -> None:
    assert '"message":"request complete"' in shop.log("frontend")
    assert "GetCartAsync called with userId=" in shop.log("cartservice")


def test_without_its_store_the_cart_fails_and_what_needs_no_cart_does_not(shop: Shop) -> None:
    shop.scale("redis-cart", 0)
    broken = shop.visit(HOME)
    assert (
        broken.status == 500 and "could not retrieve cart" in broken.text and "Can't access cart storage" in broken.text
    )
    assert shop.visit(SampleRequest("/setCurrency", "POST", "currency_code=EUR", FORM, status=302)).ok
    shop.scale("redis-cart", 1)
    assert shop.visit(HOME).ok


def test_advertisements_are_not_missed(shop: Shop) -> None:
    shop.scale("adservice", 0)
    assert shop.visit(HOME).ok
    assert "failed to retrieve ads" in shop.log("frontend")
    shop.scale("adservice", 1)


def test_no_payment_no_order(shop: Shop) -> None:
    shop.scale("paymentservice", 0)
    assert shop.visit(HOME).ok
    failed = shop.visit(ORDER)
    assert failed.status == 500 and "failed to charge card" in failed.text
    shop.scale("paymentservice", 1)
    assert shop.visit(ORDER).ok


def test_orders_go_through_without_a_confirmation(shop: Shop) -> None:
    shop.scale("emailservice", 0)
    assert shop.visit(ORDER).ok
    shop.scale("emailservice", 1)


def test_a_missing_address_stops_the_frontend_before_it_starts(shop: Shop) -> None:
    # No surge: the old pod goes first, so that the Service has nothing to fall back to.
    spec = {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
    container = {"name": "server", "env": [{"name": "CART_SERVICE_ADDR", "$patch": "delete"}]}
    change = {"spec": {**spec, "template": {"spec": {"containers": [container]}}}}
    shop.api.patch("deploy", "frontend", change, "online-boutique")
    shop.cluster.wait(60)
    assert 'environment variable "CART_SERVICE_ADDR" not set' in shop.log("frontend")
    assert shop.visit(HOME).status == 503
    shop.application.deploy(shop.cluster)
    shop.application.wait_until_ready(shop.cluster)
    assert shop.visit(HOME).ok
