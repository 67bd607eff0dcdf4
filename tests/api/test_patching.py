"""patch: JSON patch, merge patch, strategic merge patch and what is none of them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

HOME = "/apis/apps/v1/namespaces/default/deployments"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
def deployment(http: httpx.Client) -> str:
    labels = {"app": "web"}
    body = {
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "a", "image": "nginx:1.27"}, {"name": "b", "image": "redis:7"}]},
            },
        },
    }
    http.post(HOME, json=body).raise_for_status()
    return f"{HOME}/web"


def _patch(http: httpx.Client, path: str, kind: str, change: Any) -> httpx.Response:
    return http.patch(path, json=change, headers={"content-type": kind})


def _containers(reply: httpx.Response) -> list[tuple[str, str]]:
    assert reply.status_code == 200, reply.text
    return [(c["name"], c["image"]) for c in reply.json()["spec"]["template"]["spec"]["containers"]]


def test_strategic_patches_merge_lists_by_their_key(http: httpx.Client, deployment: str) -> None:
    change = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "redis:8"}]}}}}
    assert dict(_containers(_patch(http, deployment, STRATEGIC, change))) == {"a": "nginx:1.27", "b": "redis:8"}
    drop = {"spec": {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}}
    assert _containers(_patch(http, deployment, STRATEGIC, drop)) == [("b", "redis:8")]


def test_merge_patches_replace_lists(http: httpx.Client, deployment: str) -> None:
    change = {"spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c", "image": "busybox:1.36"}]}}}}
    reply = _patch(http, deployment, MERGE, change)
    assert _containers(reply) == [("c", "busybox:1.36")] and reply.json()["spec"]["replicas"] == 3


def test_json_patches_test_before_they_change(http: httpx.Client, deployment: str) -> None:
    change = [
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": 4},
    ]
    assert _patch(http, deployment, JSON_PATCH, change).json()["spec"]["replicas"] == 4
    again = _patch(http, deployment, JSON_PATCH, change)
    assert again.status_code == 422
    assert again.json()["message"] == "the server rejected our request due to an error in our request"


def test_a_patch_can_insist_on_a_version(http: httpx.Client, deployment: str) -> None:
    old = http.get(deployment).json()["metadata"]["resourceVersion"]
    assert _patch(http, deployment, MERGE, {"spec": {"replicas": 2}}).status_code == 200
    late = _patch(http, deployment, MERGE, {"metadata": {"resourceVersion": old}, "spec": {"replicas": 5}})
    assert late.status_code == 409


def test_a_patch_of_the_status_leaves_the_rest_alone(http: httpx.Client, deployment: str) -> None:
    change = {"spec": {"replicas": 9}, "status": {"replicas": 7}}
    reply = _patch(http, f"{deployment}/status", MERGE, change).json()
    assert reply["status"]["replicas"] == 7 and reply["spec"]["replicas"] == 1
    reply = _patch(http, deployment, MERGE, change).json()
    assert reply["status"]["replicas"] == 7 and reply["spec"]["replicas"] == 9


def test_identity_cannot_be_patched(http: httpx.Client, deployment: str) -> None:
    assert _patch(http, deployment, MERGE, {"metadata": {"name": "other"}}).status_code == 400
    assert _patch(http, deployment, MERGE, {"kind": "DaemonSet"}).status_code == 400
    assert _patch(http, deployment, MERGE, {"metadata": None}).status_code == 400
    before = http.get(deployment).json()["metadata"]["uid"]
    assert _patch(http, deployment, MERGE, {"metadata": {"uid": "x"}}).status_code == 409
    assert http.get(deployment).json()["metadata"]["uid"] == before


@pytest.mark.parametrize(
    "kind", ["application/json", "text/plain", "application/cbor", "", "application/apply-patch+cbor"]
)
def test_other_media_types_are_named_back(http: httpx.Client, deployment: str, kind: str) -> None:
    reply = http.patch(deployment, content=b"{}", headers={"content-type": kind})
    assert reply.status_code == 415
    assert reply.json()["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, "
        "application/apply-patch+yaml"
    )


@pytest.mark.parametrize("change", [None, 1, "x", [], [1], [{"op": "fly"}], [{"op": "add", "path": "/spec/replicas"}]])
@pytest.mark.parametrize("kind", [JSON_PATCH, MERGE, STRATEGIC])
def test_a_patch_that_is_none_changes_nothing(http: httpx.Client, deployment: str, kind: str, change: Any) -> None:
    before = http.get(deployment).json()
    reply = _patch(http, deployment, kind, change)
    assert reply.status_code in (200, 400, 422), reply.text
    assert http.get(deployment).json() == before


def test_patching_what_is_not_there(http: httpx.Client) -> None:
    assert _patch(http, f"{HOME}/ghost", MERGE, {}).status_code == 404
