"""Server-side apply over the wire."""

from __future__ import annotations

from typing import Any

import httpx
import yaml

from tests.clusters import RunningApi

HOME = "/api/v1/namespaces/default/configmaps"


def _apply(http: httpx.Client, body: dict[str, Any], path: str = f"{HOME}/a", **parameters: str) -> httpx.Response:
    parameters = {"fieldManager": "me", **parameters}
    headers = {"content-type": "application/apply-patch+yaml"}
    return http.patch(path, content=yaml.safe_dump(body), headers=headers, params=parameters)


def _config(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def test_keys_that_stand_twice_are_refused_or_warned_of(http: httpx.Client) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: '1'\n  x: '2'\n"
    headers = {"content-type": "application/apply-patch+yaml"}
    parameters = {"fieldManager": "me", "fieldValidation": "Strict"}
    reply = http.patch(f"{HOME}/a", content=body, headers=headers, params=parameters)
    assert reply.status_code == 400
    assert reply.json()["message"] == (
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 6: key "x" already set in map'
    )
    reply = http.patch(f"{HOME}/a", content=body, headers=headers, params={**parameters, "fieldValidation": "Warn"})
    assert reply.status_code == 201 and "already set in map" in reply.headers["warning"]


def test_flow_style_that_is_no_json_is_yaml(http: httpx.Client) -> None:
    body = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",}, "data": {"x": "1"},}'
    headers = {"content-type": "application/apply-patch+yaml"}
    assert http.patch(f"{HOME}/a", content=body, headers=headers, params={"fieldManager": "me"}).status_code == 201
    refused = http.patch(f"{HOME}/a", content='{"kind": ]', headers=headers, params={"fieldManager": "me"})
    assert "error converting YAML to JSON: yaml: " in refused.json()["message"]


def test_applying_creates_then_changes_then_gives_up(http: httpx.Client) -> None:
    first = _apply(http, _config(x="1", y="1"))
    assert first.status_code == 201
    entry = first.json()["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"]) == ("me", "Apply")
    assert entry["fieldsV1"] == {"f:data": {"f:x": {}, "f:y": {}}}
    again = _apply(http, _config(x="1", y="1"))
    assert again.status_code == 200
    assert again.json()["metadata"]["resourceVersion"] == first.json()["metadata"]["resourceVersion"]
    assert _apply(http, _config(x="2")).json()["data"] == {"x": "2"}


def test_what_others_own_is_a_conflict_unless_forced(http: httpx.Client) -> None:
    _apply(http, _config(x="1")).raise_for_status()
    conflict = _apply(http, _config(x="2"), fieldManager="other")
    assert conflict.status_code == 409
    status = conflict.json()
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "me": .data.x'
    assert status["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    forced = _apply(http, _config(x="2"), fieldManager="other", force="true")
    assert forced.json()["data"] == {"x": "2"}


def test_options_of_an_apply_are_checked(http: httpx.Client) -> None:
    headers = {"content-type": "application/apply-patch+yaml"}
    nameless = http.patch(f"{HOME}/a", content=yaml.safe_dump(_config(x="1")), headers=headers)
    assert nameless.status_code == 422
    assert "fieldManager: Required value: is required for apply patch" in nameless.json()["message"]
    merge = http.patch(f"{HOME}/a?force=true", json={}, headers={"content-type": "application/merge-patch+json"})
    assert merge.status_code == 422
    assert "may not be specified for non-apply patch" in merge.json()["message"]
    assert _apply(http, {**_config(), "metadata": {"name": "b"}}).status_code == 400
    assert _apply(http, {**_config(), "kind": "Secret"}).status_code == 400
    assert _apply(http, {**_config(), "metadata": {"name": "a", "uid": "x"}}).status_code == 409
    assert http.get(f"{HOME}/a").status_code == 404


def test_applying_a_status_owns_the_status(http: httpx.Client) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "nginx:1.27"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    http.post(path, json={"metadata": {"name": "web"}, "spec": spec}).raise_for_status()
    config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 3}}
    done = _apply(http, config, f"{path}/web/status").json()
    assert done["status"]["replicas"] == 3
    mine = [entry for entry in done["metadata"]["managedFields"] if entry["manager"] == "me"]
    assert mine[0]["subresource"] == "status"
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 6},
    }
    refused = _apply(http, scale, f"{path}/web/scale", fieldManager="scaler")
    assert refused.status_code == 409
    done = _apply(http, scale, f"{path}/web/scale", fieldManager="scaler", force="true")
    assert done.json()["spec"] == {"replicas": 6}
    assert http.get(f"{path}/web").json()["spec"]["replicas"] == 6


def test_kubectl_apply_on_both_sides(api: RunningApi, http: httpx.Client) -> None:
    manifest = yaml.safe_dump(_config(x="1"))
    assert "serverside-applied" in api.kubectl("apply", "--server-side", "-f", "-", stdin=manifest).stdout
    http.put(f"{HOME}/a", json={"metadata": {"name": "a"}, "data": {"x": "9"}}, headers={"user-agent": "rogue/1.0"})
    refused = api.kubectl("apply", "--server-side", "-f", "-", stdin=manifest, check=False)
    assert refused.returncode and 'conflict with "rogue" using v1: .data.x' in refused.stderr
    api.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)
    assert http.get(f"{HOME}/a").json()["data"] == {"x": "1"}
    plain = yaml.safe_dump({**_config(x="1", z="2"), "metadata": {"name": "b"}})
    assert "created" in api.kubectl("apply", "-f", "-", stdin=plain).stdout
    assert "unchanged" in api.kubectl("apply", "-f", "-", stdin=plain).stdout
    changed = yaml.safe_dump({**_config(x="3"), "metadata": {"name": "b"}})
    assert api.kubectl("diff", "-f", "-", stdin=changed, check=False).returncode == 1
    assert "configured" in api.kubectl("apply", "-f", "-", stdin=changed).stdout
    assert http.get(f"{HOME}/b").json()["data"] == {"x": "3"}
    assert api.kubectl("diff", "-f", "-", stdin=changed).stdout == ""
