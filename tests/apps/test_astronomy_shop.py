"""The Astronomy Shop on an embedded cluster: everything comes up, and its flags are what flagd serves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apps.deployed import Deployed, deployed, is_ready

NAMESPACE = "astronomy-shop"


@pytest.fixture(scope="module")
def shop() -> Iterator[Deployed]:
    with deployed("astronomy-shop") as running:
        yield running


def flag(shop: Deployed, name: str) -> dict[str, Any]:
    reply = shop.api.request_service("flagd", 8016, f"/ofrep/v1/evaluate/flags/{name}", NAMESPACE, method="POST")
    return {"status": reply.status, **json.loads(reply.text)}


def set_default(shop: Deployed, name: str, variant: str) -> None:
    """Edit the ConfigMap as an operator would."""
    config = shop.api.get("configmaps", "flagd-config", NAMESPACE)
    flags = json.loads(config["data"]["demo.flagd.json"])
    flags["flags"][name]["defaultVariant"] = variant
    change = {"data": {"demo.flagd.json": json.dumps(flags)}}
    shop.api.patch("configmaps", "flagd-config", change, NAMESPACE)


def restart_flagd(shop: Deployed) -> None:
    shop.api.restart("deployments", "flagd", NAMESPACE)
    shop.wait(30)


def test_everything_is_up_and_nothing_has_restarted(shop: Deployed) -> None:
    shop.wait(120)
    pods = shop.pods(NAMESPACE)
    assert len(pods) == 28
    assert all(is_ready(pod) for pod in pods.values())
    restarts = {name: sum(c["restartCount"] for c in pod["status"]["containerStatuses"]) for name, pod in pods.items()}
    assert not any(restarts.values()), restarts


def test_a_flag_changes_with_a_new_pod_and_not_before(shop: Deployed) -> None:
    assert flag(shop, "adFailure") == {
        "status": 200,
        "value": False,
        "key": "adFailure",
        "reason": "STATIC",
        "variant": "off",
    }
    set_default(shop, "adFailure", "on")
    shop.wait(180)
    assert flag(shop, "adFailure")["value"] is False, "the init container has copied the flags"
    restart_flagd(shop)
    assert flag(shop, "adFailure")["value"] is True
    set_default(shop, "adFailure", "off")
    restart_flagd(shop)
    assert flag(shop, "adFailure")["value"] is False


def test_the_page_of_flags_changes_them_at_once(shop: Deployed) -> None:
    flags = json.loads(shop.api.request_service("flagd", 4000, "/feature/api/read", NAMESPACE).text)
    flags["flags"]["paymentFailure"]["defaultVariant"] = "50%"
    body = json.dumps({"data": flags}).encode()
    reply = shop.api.request_service("flagd", 4000, "/feature/api/write", NAMESPACE, method="POST", body=body)
    assert reply.status == 200
    assert flag(shop, "paymentFailure")["value"] == 0.5
    restart_flagd(shop)
    assert flag(shop, "paymentFailure")["value"] == 0


def test_an_unknown_flag_is_not_found(shop: Deployed) -> None:
    assert flag(shop, "noSuchFlag") == {
        "status": 404,
        "key": "noSuchFlag",
        "errorCode": "FLAG_NOT_FOUND",
        "errorDetails": "flag `noSuchFlag` does not exist",
    }


def test_broken_flags_are_complained_about_and_serve_nothing(shop: Deployed) -> None:
    good = shop.api.get("configmaps", "flagd-config", NAMESPACE)["data"]["demo.flagd.json"]
    shop.api.patch("configmaps", "flagd-config", {"data": {"demo.flagd.json": good[:-10]}}, NAMESPACE)
    restart_flagd(shop)
    last = json.loads(shop.log(NAMESPACE, "opentelemetry.io/name=flagd", "flagd").splitlines()[-1])
    assert (last["level"], last["msg"].partition(": ")[0]) == ("error", "set state")
    assert flag(shop, "adFailure")["status"] == 404
    shop.api.patch("configmaps", "flagd-config", {"data": {"demo.flagd.json": good}}, NAMESPACE)
    restart_flagd(shop)
    assert flag(shop, "adFailure")["status"] == 200


def test_flagd_does_not_start_without_its_file(shop: Deployed) -> None:
    path = "/spec/template/spec/containers/0/command"
    good = shop.api.get("deployments", "flagd", NAMESPACE)["spec"]["template"]["spec"]["containers"][0]["command"]
    bad = [*good[:-1], "file:./etc/flagd/missing.json"]
    shop.api.patch("deployments", "flagd", [{"op": "replace", "path": path, "value": bad}], NAMESPACE)
    shop.wait(30)
    assert "no such file or directory" in shop.log(NAMESPACE, "opentelemetry.io/name=flagd", "flagd")
    shop.api.patch("deployments", "flagd", [{"op": "replace", "path": path, "value": good}], NAMESPACE)
    shop.wait(60)
    assert flag(shop, "adFailure")["status"] == 200


def psql(shop: Deployed, user: str, statement: str) -> str:
    (pod,) = shop.pods(NAMESPACE, "opentelemetry.io/name=postgresql")
    command = ["psql", "-U", user, "-d", "otel", "-tA", "-c", statement]
    done = shop.api.exec(pod, command, NAMESPACE)
    return f"{done.output}{done.errors}".strip()


def test_the_database_begins_with_products_and_reviews(shop: Deployed) -> None:
    assert psql(shop, "root", "SELECT count(*) FROM catalog.products") == "10"
    assert psql(shop, "root", "SELECT count(*) FROM reviews.productreviews") == "50"
    assert psql(shop, "otelu", "SELECT id FROM catalog.products WHERE id = 'OLJCESPC7Z'") == "OLJCESPC7Z"
    assert "permission denied" in psql(shop, "otelu", "DELETE FROM catalog.products")


def test_cart_waits_for_its_store(shop: Deployed) -> None:
    shop.api.scale("deployments", "valkey-cart", 0, NAMESPACE)
    shop.wait(10)
    shop.api.restart("deployments", "cart", NAMESPACE)
    shop.wait(60)
    newest = max(
        shop.pods(NAMESPACE, "opentelemetry.io/name=cart").values(),
        key=lambda pod: pod["metadata"]["creationTimestamp"],
    )
    assert newest["status"]["phase"] == "Pending"
    shop.api.scale("deployments", "valkey-cart", 1, NAMESPACE)
    shop.wait(60)
    assert all(is_ready(pod) for pod in shop.pods(NAMESPACE, "opentelemetry.io/name=cart").values())
