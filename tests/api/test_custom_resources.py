"""Custom resources on the wire: as any other, with what their definition says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from srearena.cluster.embedded.controllers.custom_resources import CustomResourceController
from tests.clusters import RunningApi, bare_world, running

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOME = "/apis/example.com/v1/namespaces/default/widgets"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "description": "How big it is."},
                "color": {"type": "string", "default": "red"},
                "replicas": {"type": "integer"},
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
            "shortNames": ["wd"],
            "categories": ["all"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }
        ],
    },
}


@pytest.fixture
def api() -> Iterator[RunningApi]:
    world = bare_world()
    CustomResourceController(world).start()
    with running(world) as served, served.http() as client:
        client.post(DEFINITIONS, json=DEFINITION).raise_for_status()
        served.advance(2)
        yield served


def _widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def test_a_definition_makes_a_served_resource_and_takes_it_away(api: RunningApi, http: httpx.Client) -> None:
    names = {row["name"] for row in http.get("/apis/example.com/v1").json()["resources"]}
    assert names == {"widgets", "widgets/status", "widgets/scale"}
    assert http.post(HOME, json=_widget("a", size=3)).json()["spec"] == {"size": 3, "color": "red"}
    assert http.get(HOME).json()["kind"] == "WidgetList"
    assert http.get(HOME, headers={"accept": "application/vnd.kubernetes.protobuf"}).status_code == 406
    http.delete(f"{DEFINITIONS}/widgets.example.com").raise_for_status()
    api.advance(10)
    assert http.get(HOME).status_code == 404
    assert http.get("/apis/example.com/v1").status_code == 404


def test_defaults_are_filled_in_when_older_objects_are_read(api: RunningApi, http: httpx.Client) -> None:
    http.post(HOME, json=_widget("a", size=3)).raise_for_status()
    definition = http.get(f"{DEFINITIONS}/widgets.example.com").json()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["shape"] = {"type": "string", "default": "round"}
    http.put(f"{DEFINITIONS}/widgets.example.com", json=definition).raise_for_status()
    api.advance(2)
    assert http.get(f"{HOME}/a").json()["spec"]["shape"] == "round"
    assert http.get(HOME).json()["items"][0]["spec"]["shape"] == "round"
    stored = api.call(lambda: api.world.store.get("widgets.example.com", "default", "a"))
    assert "shape" not in stored["spec"]


def test_version_2_of_openapi_says_nothing_of_kinds_that_keep_unknown_fields(
    api: RunningApi, http: httpx.Client
) -> None:
    definition = http.get(f"{DEFINITIONS}/widgets.example.com").json()
    described = http.get("/openapi/v2").json()["definitions"]["com.example.v1.Widget"]
    assert described["properties"]["apiVersion"]["description"].startswith("APIVersion defines the versioned schema")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = definition["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"] = schema
    del version["selectableFields"]
    http.put(f"{DEFINITIONS}/widgets.example.com", json=definition).raise_for_status()
    api.advance(2)
    kind = {"group": "example.com", "version": "v1", "kind": "Widget"}
    described = http.get("/openapi/v2").json()["definitions"]["com.example.v1.Widget"]
    assert described == {"type": "object", "x-kubernetes-group-version-kind": [kind]}


def test_objects_outlive_a_change_of_the_version_to_store(api: RunningApi, http: httpx.Client) -> None:
    http.post(HOME, json=_widget("a", size=3)).raise_for_status()
    definition = http.get(f"{DEFINITIONS}/widgets.example.com").json()
    first = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [{**first, "storage": False}, {**first, "name": "v2"}]
    http.put(f"{DEFINITIONS}/widgets.example.com", json=definition).raise_for_status()
    api.advance(2)
    newer = HOME.replace("/v1/", "/v2/")
    assert http.get(newer).json()["items"][0]["apiVersion"] == "example.com/v2"
    change = {"content-type": "application/merge-patch+json"}
    patched = http.patch(f"{newer}/a", content='{"spec":{"size":4}}', headers=change)
    assert (patched.status_code, patched.json()["apiVersion"]) == (200, "example.com/v2")


def test_its_schema_is_enforced(http: httpx.Client) -> None:
    reply = http.post(HOME, json=_widget("a", size=0))
    assert reply.status_code == 422
    assert (
        "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1" in reply.json()["message"]
    )
    assert http.post(HOME, json=_widget("a")).status_code == 422
    assert http.post(HOME, json=_widget("a", size="big")).status_code == 422
    pruned = http.post(HOME, json=_widget("a", size=1, shape="round"))
    assert pruned.status_code == 201 and "shape" not in pruned.json()["spec"]
    assert pruned.headers["warning"] == '299 - "unknown field \\"spec.shape\\""'
    strict = http.post(f"{HOME}?fieldValidation=Strict", json=_widget("b", size=1, shape="round"))
    assert strict.status_code == 400
    assert 'strict decoding error: unknown field "spec.shape"' in strict.json()["message"]


def test_patches_but_not_strategic_ones(http: httpx.Client) -> None:
    http.post(HOME, json=_widget("a", size=1)).raise_for_status()
    kind = "application/strategic-merge-patch+json"
    reply = http.patch(f"{HOME}/a", json={}, headers={"content-type": kind})
    assert reply.status_code == 415
    assert reply.json()["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    merge = {"content-type": "application/merge-patch+json"}
    assert http.patch(f"{HOME}/a", json={"spec": {"size": 2}}, headers=merge).json()["metadata"]["generation"] == 2
    assert http.patch(f"{HOME}/a", json={"spec": {"size": -2}}, headers=merge).status_code == 422
    apply = {"content-type": "application/apply-patch+yaml"}
    config = yaml.safe_dump(_widget("b", size=7))
    assert http.patch(f"{HOME}/b?fieldManager=me", content=config, headers=apply).status_code == 201


def test_status_and_scale(http: httpx.Client) -> None:
    http.post(HOME, json={**_widget("a", size=1, replicas=2), "status": {"replicas": 9}}).raise_for_status()
    assert "status" not in http.get(f"{HOME}/a").json(), "a status is not created with the object"
    merge = {"content-type": "application/merge-patch+json"}
    change = {"spec": {"size": 5}, "status": {"replicas": 1, "selector": "app=a"}}
    changed = http.patch(f"{HOME}/a/status", json=change, headers=merge).json()
    assert changed["spec"]["size"] == 1 and changed["status"]["replicas"] == 1
    scale = http.get(f"{HOME}/a/scale").json()
    assert scale["spec"] == {"replicas": 2} and scale["status"] == {"replicas": 1, "selector": "app=a"}
    http.patch(f"{HOME}/a/scale", json={"spec": {"replicas": 6}}, headers=merge).raise_for_status()
    assert http.get(f"{HOME}/a").json()["spec"]["replicas"] == 6


def test_columns_and_selectable_fields(http: httpx.Client) -> None:
    http.post(HOME, json=_widget("a", size=1, color="blue")).raise_for_status()
    http.post(HOME, json=_widget("b", size=2)).raise_for_status()
    table = http.get(HOME, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert [row["cells"] for row in table["rows"]] == [["a", 1], ["b", 2]]
    blue = http.get(f"{HOME}?fieldSelector=spec.color%3Dblue").json()["items"]
    assert [item["metadata"]["name"] for item in blue] == ["a"]
    assert http.get(f"{HOME}?fieldSelector=spec.size%3D1").status_code == 400


def test_kubectl_with_custom_resources(api: RunningApi) -> None:
    manifest = yaml.safe_dump(_widget("w", size=4, replicas=1))
    assert "created" in api.kubectl("apply", "-f", "-", stdin=manifest).stdout
    changed = yaml.safe_dump(_widget("w", size=5, replicas=1))
    assert "configured" in api.kubectl("apply", "-f", "-", stdin=changed).stdout
    assert api.kubectl("get", "wd", "--no-headers").stdout.split() == ["w", "5"]
    assert "How big it is." in api.kubectl("explain", "widget.spec.size").stdout
    api.kubectl("scale", "widget", "w", "--replicas=3")
    assert api.kubectl("get", "widget", "w", "-o", "jsonpath={.spec.replicas}").stdout == "3"
    assert (
        "serverside-applied"
        in api.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest).stdout
    )
    wrong = api.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_widget("x", size=0)), check=False)
    assert wrong.returncode and "should be greater than or equal to 1" in wrong.stderr
    assert 'widget.example.com "w" deleted' in api.kubectl("delete", "widget", "--all").stdout
