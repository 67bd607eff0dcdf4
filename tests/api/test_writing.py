"""create, update and delete, with their options and their answers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.clusters import RunningApi

HOME = "/api/v1/namespaces/default/configmaps"


def _create(http: httpx.Client, body: dict[str, Any], path: str = HOME, **parameters: str) -> httpx.Response:
    return http.post(path, json=body, params=parameters)


def test_a_new_object_gets_its_identity_from_the_server(http: httpx.Client) -> None:
    reply = _create(http, {"metadata": {"name": "a", "uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z"}})
    assert reply.status_code == 201
    config_map = reply.json()
    assert (config_map["kind"], config_map["apiVersion"]) == ("ConfigMap", "v1")
    assert config_map["metadata"]["namespace"] == "default"
    assert config_map["metadata"]["uid"] != "mine" and config_map["metadata"]["creationTimestamp"] > "2020"
    assert config_map["metadata"]["resourceVersion"]
    again = _create(http, {"metadata": {"name": "a"}})
    assert again.status_code == 409
    assert again.json()["message"] == 'configmaps "a" already exists'


def test_generated_names_differ(http: httpx.Client) -> None:
    names = {_create(http, {"metadata": {"generateName": "job-"}}).json()["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5 and all(name.startswith("job-") and len(name) == 9 for name in names)


def test_yaml_bodies_are_read_as_kubernetes_reads_them(http: httpx.Client) -> None:
    text = """
apiVersion: v1
kind: ConfigMap
metadata: {name: y, annotations: {day: 2024-01-02, time: 1:30}}
data: {a: "1"}
"""
    reply = http.post(HOME, content=text, headers={"content-type": "application/yaml"})
    assert reply.status_code == 201, reply.text
    assert reply.json()["metadata"]["annotations"] == {"day": "2024-01-02", "time": "1:30"}


def test_a_dry_run_answers_and_changes_nothing(http: httpx.Client) -> None:
    assert _create(http, {"metadata": {"name": "a"}}, dryRun="All").status_code == 201
    assert http.get(f"{HOME}/a").status_code == 404
    config_map = _create(http, {"metadata": {"name": "a"}, "data": {"k": "1"}}).json()
    reply = http.put(f"{HOME}/a?dryRun=All", json={**config_map, "data": {"k": "2"}})
    assert reply.json()["data"] == {"k": "2"}
    assert http.delete(f"{HOME}/a?dryRun=All").status_code == 200
    assert http.get(f"{HOME}/a").json()["data"] == {"k": "1"}
    refused = _create(http, {"metadata": {"name": "b"}}, dryRun="Some")
    assert refused.status_code == 422
    assert "Unsupported value" in refused.json()["message"]


def test_an_update_of_an_old_version_conflicts(http: httpx.Client) -> None:
    config_map = _create(http, {"metadata": {"name": "a"}}).json()
    assert http.put(f"{HOME}/a", json={**config_map, "data": {"k": "1"}}).status_code == 200
    late = http.put(f"{HOME}/a", json={**config_map, "data": {"k": "2"}})
    assert late.status_code == 409
    assert late.json()["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert http.put(f"{HOME}/a", json={"metadata": {"name": "a"}, "data": {"k": "3"}}).status_code == 200
    other = http.put(f"{HOME}/a", json={"metadata": {"name": "a", "uid": "somebody-else"}})
    assert other.status_code == 409 and "UID in precondition" in other.json()["message"]


def test_an_update_that_changes_nothing_is_no_new_version(http: httpx.Client) -> None:
    config_map = _create(http, {"metadata": {"name": "a"}, "data": {"k": "1"}}).json()
    assert (
        http.put(f"{HOME}/a", json=config_map).json()["metadata"]["resourceVersion"]
        == config_map["metadata"]["resourceVersion"]
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"metadata": {}}, "name must be provided"),
        ({"metadata": {"name": "b"}}, "the name of the object (b) does not match the name on the URL (a)"),
        (
            {"metadata": {"name": "a", "namespace": "kube-system"}},
            "the namespace of the object (kube-system) does not match the namespace on the request (default)",
        ),
        (
            {"apiVersion": "v2", "metadata": {"name": "a"}},
            "the API version in the data (v2) does not match the expected API version (v1)",
        ),
        ({"kind": "Secret", "metadata": {"name": "a"}}, "cannot be handled as a ConfigMap"),
        ({"metadata": [1]}, "cannot be handled as a ConfigMap"),
        ([1], "couldn't get version/kind"),
        (None, "couldn't get version/kind"),
    ],
)
def test_an_object_that_does_not_fit_its_path_is_refused(http: httpx.Client, body: Any, text: str) -> None:
    _create(http, {"metadata": {"name": "a"}}).raise_for_status()
    reply = http.put(f"{HOME}/a", json=body)
    assert reply.status_code == 400
    assert text in reply.json()["message"]


def test_some_resources_are_created_by_updating_them(http: httpx.Client) -> None:
    assert http.put(f"{HOME}/new", json={"metadata": {"name": "new"}}).status_code == 404
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    assert http.put(f"{leases}/l", json=lease).status_code == 201
    assert http.put(f"{leases}/l", json=lease).status_code == 200


def test_what_a_deletion_answers(http: httpx.Client) -> None:
    config_map = _create(http, {"metadata": {"name": "a"}}).json()
    assert http.delete(f"{HOME}/a").json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": config_map["metadata"]["uid"]},
    }
    assert http.delete(f"{HOME}/a").status_code == 404
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    _create(http, {"metadata": {"name": "a"}}, accounts).raise_for_status()
    assert http.delete(f"{accounts}/a").json()["kind"] == "ServiceAccount"


def test_a_finalizer_holds_an_object_back(http: httpx.Client) -> None:
    _create(http, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}).raise_for_status()
    terminating = http.delete(f"{HOME}/a").json()
    assert terminating["kind"] == "ConfigMap" and terminating["metadata"]["deletionTimestamp"]
    merge = {"content-type": "application/merge-patch+json"}
    http.patch(f"{HOME}/a", json={"metadata": {"finalizers": None}}, headers=merge).raise_for_status()
    assert http.get(f"{HOME}/a").status_code == 404


def test_delete_options_come_in_the_body_or_the_query(http: httpx.Client) -> None:
    config_map = _create(http, {"metadata": {"name": "a"}}).json()
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    reply = http.request("DELETE", f"{HOME}/a", json=wrong)
    assert reply.status_code == 409 and "the UID in the precondition (other) does not match" in reply.json()["message"]
    reply = http.request("DELETE", f"{HOME}/a", json={"propagationPolicy": "Sideways"})
    assert reply.status_code == 422
    assert http.delete(f"{HOME}/a?propagationPolicy=Foreground").json()["metadata"]["finalizers"] == [
        "foregroundDeletion"
    ]
    right = {"preconditions": {"uid": config_map["metadata"]["uid"]}, "dryRun": ["All"]}
    assert http.request("DELETE", f"{HOME}/a", json=right).status_code == 200
    assert http.get(f"{HOME}/a").status_code == 200
    assert http.request("DELETE", f"{HOME}/a", json={"gracePeriodSeconds": "soon"}).status_code == 400


def test_deleting_a_collection_takes_what_matches(http: httpx.Client) -> None:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        _create(http, {"metadata": {"name": name, "labels": {"app": app}}}).raise_for_status()
    gone = http.delete(f"{HOME}?labelSelector=app%3Dweb").json()
    assert gone["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in gone["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in http.get(HOME).json()["items"]] == ["c"]


def test_kubectl_sends_protobuf_for_what_it_creates(api: RunningApi, http: httpx.Client) -> None:
    api.kubectl("create", "configmap", "c", "--from-literal=a=1")
    assert http.get(f"{HOME}/c").json()["data"] == {"a": "1"}
    api.kubectl("create", "secret", "generic", "s", "--from-literal=password=hunter2")
    assert http.get("/api/v1/namespaces/default/secrets/s").json()["data"] == {"password": "aHVudGVyMg=="}
    api.kubectl("create", "deployment", "d", "--image=nginx:1.27", "--replicas=0", "--port=80")
    spec = http.get("/apis/apps/v1/namespaces/default/deployments/d").json()["spec"]
    assert spec["replicas"] == 0
    assert spec["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    api.kubectl("create", "quota", "q", "--hard=cpu=1500m,pods=3")
    assert http.get("/api/v1/namespaces/default/resourcequotas/q").json()["spec"]["hard"] == {
        "cpu": "1500m",
        "pods": "3",
    }
    api.kubectl("create", "poddisruptionbudget", "p", "--selector=app=web", "--min-available=50%")
    budget = http.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/p").json()["spec"]
    assert budget == {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
    api.kubectl("create", "ingress", "i", "--rule=example.com/path*=svc:80")
    rule = http.get("/apis/networking.k8s.io/v1/namespaces/default/ingresses/i").json()["spec"]["rules"][0]
    assert rule["host"] == "example.com" and rule["http"]["paths"][0]["pathType"] == "Prefix"
    api.kubectl("create", "cronjob", "j", "--image=busybox:1.36", "--schedule=*/5 * * * *", "--", "date")
    job = http.get("/apis/batch/v1/namespaces/default/cronjobs/j").json()["spec"]
    assert job["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"] == ["date"]
    api.kubectl("create", "priorityclass", "zero", "--value=0", "--description=nothing special")
    assert http.get("/apis/scheduling.k8s.io/v1/priorityclasses/zero").json()["value"] == 0
