"""The manifests themselves: complete, consistent, and made of images that the registries hold."""

from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import pytest
import yaml

from srearena.cluster.embedded.image_references import parse_reference
from srearena.cluster.embedded.machine.images.catalogue import Catalogue
from srearena.service.apps.registry import find_application

NAMES = ("astronomy-shop", "train-ticket", "fleetcast")


def objects(name: str, kind: str) -> dict[str, dict[str, Any]]:
    return {m.name: m.obj for m in find_application(name).manifests if m.kind == kind}


@pytest.mark.parametrize("name", NAMES)
def test_every_image_can_be_pulled(name: str) -> None:
    catalogue = Catalogue()
    images = find_application(name).images()
    assert images
    for image in images:
        catalogue.find(parse_reference(image))


@pytest.mark.parametrize("name", NAMES)
def test_every_object_is_valid_to_the_letter(name: str) -> None:
    """Against the published schemas, unknown fields refused."""
    known = [m for m in find_application(name).manifests if m.kind not in ("TidbCluster", "CustomResourceDefinition")]
    assert known
    wrong: dict[str, str] = {}
    for manifest in known:
        try:
            kubernetes_validate.validate(manifest.obj, "1.34", strict=True)
        except kubernetes_validate.ValidationError as problem:
            wrong[f"{manifest.kind}/{manifest.name}"] = problem.message
    assert wrong == {}


@pytest.mark.parametrize("name", NAMES)
def test_every_service_selects_pods_and_every_reference_is_there(name: str) -> None:
    application = find_application(name)
    templates = [
        (m.namespace, m.obj["spec"]["template"])
        for m in application.manifests
        if m.kind in ("Deployment", "StatefulSet", "DaemonSet")
    ]
    for manifest in application.manifests:
        if manifest.kind != "Service":
            continue
        wanted = {k: v for k, v in manifest.obj["spec"]["selector"].items() if k != "role"}
        assert any(
            space == manifest.namespace and wanted.items() <= template["metadata"]["labels"].items()
            for space, template in templates
        ), f"{manifest.name} selects nothing"
    present = {(m.kind, m.name) for m in application.manifests}
    for _, template in templates:
        for volume in template["spec"].get("volumes", ()):
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in present
        for container in template["spec"]["containers"]:
            for source in container.get("envFrom", ()):
                kind = "Secret" if "secretRef" in source else "ConfigMap"
                assert (kind, next(iter(source.values()))["name"]) in present


def test_the_shop_has_all_flags_and_all_are_off() -> None:
    flags = json.loads(objects("astronomy-shop", "ConfigMap")["flagd-config"]["data"]["demo.flagd.json"])["flags"]
    assert len(flags) == 15
    assert {flag["defaultVariant"] for flag in flags.values()} == {"off"}
    assert flags["paymentFailure"]["variants"]["90%"] == 0.95
    assert flags["imageSlowLoad"]["variants"]["10sec"] == 10000


def test_the_shop_limits_memory_and_nothing_else_and_probes_nothing() -> None:
    for name, obj in objects("astronomy-shop", "Deployment").items():
        container = obj["spec"]["template"]["spec"]["containers"][0]
        if name in ("grafana", "jaeger"):
            continue
        assert set(container.get("resources", {"limits": {"memory": ""}})) == {"limits"}, name
        assert set(container.get("resources", {"limits": {"memory": ""}})["limits"]) == {"memory"}, name
        assert not any(probe in container for probe in ("livenessProbe", "readinessProbe", "startupProbe")), name


def test_train_ticket_has_all_services_with_their_secrets() -> None:
    deployments = {name: obj for name, obj in objects("train-ticket", "Deployment").items() if name.startswith("ts-")}
    services = {name for name in objects("train-ticket", "Service") if name.startswith("ts-")}
    assert len(deployments) == 46
    assert set(deployments) - services == {"ts-food-delivery-service", "ts-wait-order-service"}
    secrets = [name for name in objects("train-ticket", "Secret") if name.startswith("ts-")]
    assert len(secrets) == 27
    voucher = objects("train-ticket", "Secret")["ts-voucher-mysql"]["stringData"]
    assert voucher["VOUCHER_MYSQL_HOST"] == "tsdb-mysql-leader"
    gateway = objects("train-ticket", "Service")["ts-gateway-service"]["spec"]
    assert (gateway["type"], gateway["ports"][0]["nodePort"]) == ("NodePort", 30467)


def test_train_ticket_has_twenty_two_opaque_flags() -> None:
    flags = yaml.safe_load(objects("train-ticket", "ConfigMap")["flagd-config"]["data"]["flags.yaml"])["flags"]
    assert list(flags) == [f"tt-feat-{number:02d}" for number in range(1, 23)]
    assert all("description" not in flag for flag in flags.values())


def test_the_load_of_train_ticket_is_a_valid_program() -> None:
    text = objects("train-ticket", "ConfigMap")["locustfile-config"]["data"]["locustfile.py"]
    compile(text, "locustfile.py", "exec")
    assert text.count("@task(") == 4
