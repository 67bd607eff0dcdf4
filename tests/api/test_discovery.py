"""What a client learns of the server before it asks for anything: groups, versions, resources, schemas, health."""

from __future__ import annotations

import httpx
import pytest

from tests.clusters import RunningApi

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList,application/json"


def test_the_version_is_one_of_1_34(http: httpx.Client) -> None:
    version = http.get("/version").json()
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "34", "v1.34.0")
    assert version["platform"] == "linux/amd64"


def test_plain_discovery_names_every_resource_with_its_subresources(http: httpx.Client) -> None:
    assert http.get("/api").json()["versions"] == ["v1"]
    groups = {group["name"]: group for group in http.get("/apis").json()["groups"]}
    assert groups["autoscaling"]["preferredVersion"]["version"] == "v2"
    core = {row["name"]: row for row in http.get("/api/v1").json()["resources"]}
    assert core["pods"]["shortNames"] == ["po"] and core["pods"]["categories"] == ["all"]
    assert core["pods/eviction"]["group"] == "policy" and core["pods/eviction"]["kind"] == "Eviction"
    assert core["nodes"]["namespaced"] is False
    apps = {row["name"]: row for row in http.get("/apis/apps/v1").json()["resources"]}
    assert apps["deployments/scale"]["group"] == "autoscaling"
    assert http.get("/apis/apps").json()["kind"] == "APIGroup"
    for path in ("/apis/nope", "/apis/apps/v2", "/api/v2"):
        assert http.get(path).status_code == 404


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_says_the_same_in_one_document(http: httpx.Client, version: str) -> None:
    reply = http.get("/apis", headers={"accept": AGGREGATED.format(version)})
    assert (
        reply.headers["content-type"] == f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    )
    document = reply.json()
    assert document["kind"] == "APIGroupDiscoveryList"
    plain = [group["name"] for group in http.get("/apis").json()["groups"]]
    assert [item["metadata"]["name"] for item in document["items"]] == plain
    apps = next(item for item in document["items"] if item["metadata"]["name"] == "apps")
    deployments = next(row for row in apps["versions"][0]["resources"] if row["resource"] == "deployments")
    assert {sub["subresource"] for sub in deployments["subresources"]} == {"scale", "status"}
    again = http.get("/apis", headers={"accept": AGGREGATED.format(version), "if-none-match": reply.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_a_browser_gets_plain_discovery(http: httpx.Client) -> None:
    assert http.get("/apis", headers={"accept": "*/*"}).json()["kind"] == "APIGroupList"


def test_health_in_brief_and_in_words(http: httpx.Client) -> None:
    for probe in ("healthz", "livez", "readyz"):
        assert http.get(f"/{probe}").text == "ok"
        assert http.get(f"/{probe}/ping").text == "ok"
        words = http.get(f"/{probe}?verbose").text
        assert words.startswith("[+]ping ok\n") and words.endswith(f"{probe} check passed\n")
    assert http.get("/readyz/nothing").status_code == 404


def test_the_root_lists_paths_that_exist(http: httpx.Client) -> None:
    paths = http.get("/").json()["paths"]
    assert "/apis/apps/v1" in paths
    for path in paths:
        assert http.get(path).status_code == 200, path


def test_every_document_of_openapi_v3_resolves_its_references(http: httpx.Client) -> None:
    index = http.get("/openapi/v3").json()["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/metrics.k8s.io/v1beta1"} <= set(index)
    for entry in index.values():
        reply = http.get(entry["serverRelativeURL"])
        document = reply.json()
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert _references(document) <= known
        assert document["paths"]
        unchanged = http.get(entry["serverRelativeURL"], headers={"if-none-match": reply.headers["etag"]})
        assert unchanged.status_code == 304


def _references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(_references(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(value) for value in node))
    return set()


def test_openapi_v3_keeps_kinds_and_patch_keys(http: httpx.Client) -> None:
    document = http.get("/openapi/v3/apis/apps/v1").json()
    schemas = document["components"]["schemas"]
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert kind in schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name" and containers["type"] == "array"
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-action"] == "patch" and patch["x-kubernetes-group-version-kind"] == kind
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


def test_openapi_v2_is_served_as_json(http: httpx.Client) -> None:
    document = http.get("/openapi/v2").json()
    assert document["swagger"] == "2.0"
    assert "io.k8s.api.core.v1.Pod" in document["definitions"]
    assert "/api/v1/namespaces/{namespace}/pods" in document["paths"]
    known = {f"#/definitions/{name}" for name in document["definitions"]}
    assert _references(document) <= known


def test_a_path_that_is_not_served_is_not_found(http: httpx.Client) -> None:
    for path in ("/nothing", "/apis/none.example.com/v1/things"):
        reply = http.get(path)
        assert (reply.status_code, reply.text) == (404, "404 page not found\n")
    for path in ("/api/v1/nothings", "/apis/apps/v1/pods", "/api/v1/namespaces/default/nodes/x", "/api/v2/pods"):
        reply = http.get(path)
        assert (reply.status_code, reply.json()["reason"]) == (404, "NotFound")
        assert reply.json()["message"] == "the server could not find the requested resource"
    for method, path in (("POST", "/api/v1/pods"), ("DELETE", "/version")):
        reply = http.request(method, path)
        assert (reply.status_code, reply.json()["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.kubectl
def test_kubectl_explains_and_lists_resources(api: RunningApi) -> None:
    assert "FIELD: strategy <DeploymentStrategy>" in api.kubectl("explain", "deployment.spec.strategy").stdout
    assert "containerPort\t<integer> -required-" in api.kubectl("explain", "pods.spec.containers.ports").stdout
    listed = api.kubectl("api-resources", "--namespaced=false", "-o", "name").stdout.split()
    assert {"nodes", "clusterroles.rbac.authorization.k8s.io"} <= set(listed)
    assert "autoscaling/v2" in api.kubectl("api-versions").stdout
    assert "Server Version: v1.34.0" in api.kubectl("version").stdout
