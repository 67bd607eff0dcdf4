"""scale, eviction, binding, tokens and other parts of objects with a path of their own."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.clusters import RunningApi

APPS = "/apis/apps/v1/namespaces/default"
PODS = "/api/v1/namespaces/default/pods"


def _deployment(http: httpx.Client) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "nginx:1.27"}]}}
    body = {
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }
    http.post(f"{APPS}/deployments", json=body).raise_for_status()


def test_scale_shows_and_changes_the_number_of_replicas(http: httpx.Client) -> None:
    _deployment(http)
    path = f"{APPS}/deployments/web/scale"
    scale = http.get(path).json()
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2} and scale["status"]["selector"] == "app=web"
    scale["spec"]["replicas"] = 5
    assert http.put(path, json=scale).json()["spec"] == {"replicas": 5}
    assert http.put(path, json=scale).status_code == 409, "the version is an old one by now"
    merge = {"content-type": "application/merge-patch+json"}
    assert http.patch(path, json={"spec": {"replicas": 0}}, headers=merge).json()["spec"] == {}
    assert http.get(f"{APPS}/deployments/web").json()["spec"]["replicas"] == 0
    reply = http.patch(path, json={"spec": {"replicas": -1}}, headers=merge)
    assert reply.status_code == 422
    assert reply.json()["message"] == (
        'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )
    assert http.patch(path, json={"spec": {"replicas": "many"}}, headers=merge).status_code == 422


@pytest.mark.kubectl
def test_kubectl_scales_with_a_precondition(api: RunningApi, http: httpx.Client) -> None:
    _deployment(http)
    api.kubectl("scale", "deployment/web", "--replicas=4", "--current-replicas=2")
    assert http.get(f"{APPS}/deployments/web").json()["spec"]["replicas"] == 4
    assert api.kubectl("scale", "deployment/web", "--replicas=6", "--current-replicas=2", check=False).returncode


def _pod(http: httpx.Client, name: str = "p", **labels: str) -> dict[str, Any]:
    body = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "a", "image": "nginx:1.27"}]},
    }
    reply = http.post(PODS, json=body)
    reply.raise_for_status()
    return reply.json()


def test_binding_gives_a_pod_its_node_once(http: httpx.Client) -> None:
    pod = _pod(http)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    wrong = {**binding, "metadata": {"name": "p", "uid": "other"}}
    assert http.post(f"{PODS}/p/binding", json=wrong).status_code == 409
    assert http.post(f"{PODS}/p/binding", json={**binding, "target": {}}).status_code == 422
    assert http.post(f"{PODS}/p/binding", json=binding).json()["status"] == "Success"
    assert http.get(f"{PODS}/p").json()["spec"]["nodeName"] == "n1"
    again = http.post("/api/v1/namespaces/default/bindings", json=binding)
    assert again.status_code == 409
    assert again.json()["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )
    assert http.get(f"{PODS}/p").json()["metadata"]["uid"] == pod["metadata"]["uid"]


def _running_pod(api: RunningApi, http: httpx.Client, name: str, *, ready: bool = True) -> None:
    _pod(http, name, app="web")
    merge = {"content-type": "application/merge-patch+json"}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"status": {"phase": "Running", "conditions": conditions}}
    http.patch(f"{PODS}/{name}/status", json=status, headers=merge).raise_for_status()


def _budget(http: httpx.Client, name: str = "b", **status: Any) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    created_object = http.post(path, json={"metadata": {"name": name}, "spec": spec}).json()
    full = {
        "observedGeneration": created_object["metadata"]["generation"],
        "disruptionsAllowed": 0,
        "currentHealthy": 2,
        "desiredHealthy": 2,
        "expectedPods": 2,
        **status,
    }
    http.put(f"{path}/{name}/status", json={**created_object, "status": full}).raise_for_status()


def _evict(http: httpx.Client, name: str, **more: Any) -> httpx.Response:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return http.post(f"{PODS}/{name}/eviction", json=body)


def test_an_eviction_without_budget_deletes(api: RunningApi, http: httpx.Client) -> None:
    _running_pod(api, http, "p")
    reply = _evict(http, "p", deleteOptions={"gracePeriodSeconds": 0})
    assert (reply.status_code, reply.json()["status"]) == (201, "Success")
    assert http.get(f"{PODS}/p").status_code == 404
    assert _evict(http, "p").status_code == 404


def test_a_budget_without_room_refuses_with_its_numbers(api: RunningApi, http: httpx.Client) -> None:
    _running_pod(api, http, "p")
    _budget(http)
    reply = _evict(http, "p")
    assert reply.status_code == 429
    status = reply.json()
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert status["reason"] == "TooManyRequests"
    assert status["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
        }
    ]
    assert http.get(f"{PODS}/p").status_code == 200


def test_a_budget_with_room_is_charged(api: RunningApi, http: httpx.Client) -> None:
    _running_pod(api, http, "p")
    _running_pod(api, http, "q")
    _budget(http, disruptionsAllowed=1, currentHealthy=3)
    assert _evict(http, "p").status_code == 201
    budget = http.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b").json()["status"]
    assert budget["disruptionsAllowed"] == 0 and list(budget["disruptedPods"]) == ["p"]
    assert _evict(http, "q").status_code == 429
    condition = http.get(f"{PODS}/p")
    assert condition.status_code == 404 or any(
        c["type"] == "DisruptionTarget" for c in condition.json()["status"]["conditions"]
    )


def test_budgets_that_cannot_be_judged(api: RunningApi, http: httpx.Client) -> None:
    _running_pod(api, http, "p")
    _budget(http, observedGeneration=0, disruptionsAllowed=1)
    reply = _evict(http, "p")
    assert reply.status_code == 429 and reply.headers["retry-after"] == "10"
    _budget(http, "c", disruptionsAllowed=1)
    reply = _evict(http, "p")
    assert reply.status_code == 500
    assert "more than one PodDisruptionBudget" in reply.json()["message"]


def test_a_pod_that_serves_nobody_may_leave_where_nobody_is_missed(api: RunningApi, http: httpx.Client) -> None:
    _running_pod(api, http, "sick", ready=False)
    _budget(http, currentHealthy=2)
    assert _evict(http, "sick").status_code == 201


def test_token_requests_are_checked(http: httpx.Client) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    http.post(accounts, json={"metadata": {"name": "robot"}}).raise_for_status()
    path = f"{accounts}/robot/token"
    granted = http.post(path, json={"spec": {"expirationSeconds": 3600}}).json()
    assert granted["kind"] == "TokenRequest" and granted["status"]["token"].count(".") == 2
    short = http.post(path, json={"spec": {"expirationSeconds": 10}})
    assert short.status_code == 422 and "less than 10 minutes" in short.json()["message"]
    assert http.post(path, json={"spec": {"boundObjectRef": {"kind": "Pod", "name": "ghost"}}}).status_code == 404
    assert http.post(path, json={"spec": {"boundObjectRef": {"kind": "Tree", "name": "x"}}}).status_code == 400
    assert http.post(f"{accounts}/ghost/token", json={}).status_code == 404


@pytest.mark.kubectl
def test_a_certificate_is_approved_by_kubectl(api: RunningApi, http: httpx.Client) -> None:
    import base64

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ada")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = request.public_bytes(serialization.Encoding.PEM)
    body = {
        "metadata": {"name": "ada"},
        "spec": {
            "request": base64.b64encode(pem).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    }
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    http.post(path, json=body).raise_for_status()
    api.kubectl("certificate", "approve", "ada")
    conditions = http.get(f"{path}/ada").json()["status"]["conditions"]
    assert [(c["type"], c["status"]) for c in conditions] == [("Approved", "True")]


def test_finalizing_a_namespace_lets_it_go(http: httpx.Client) -> None:
    path = "/api/v1/namespaces"
    http.post(path, json={"metadata": {"name": "brief"}}).raise_for_status()
    terminating = http.delete(f"{path}/brief").json()
    assert terminating["status"]["phase"] == "Terminating"
    terminating["spec"]["finalizers"] = []
    assert http.put(f"{path}/brief/finalize", json=terminating).status_code == 200
    assert http.get(f"{path}/brief").status_code == 404


def test_a_resize_neither_reorders_nor_adds_containers(http: httpx.Client) -> None:
    resources = {"requests": {"cpu": "10m"}}
    containers = [{"name": name, "image": "busybox", "resources": resources} for name in ("one", "two")]
    pods = "/api/v1/namespaces/default/pods"
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sized"}, "spec": {"containers": containers}}
    assert http.post(pods, json=body).status_code == 201
    headers = {"content-type": "application/strategic-merge-patch+json"}
    order = [{"name": "two"}, {"name": "one"}]
    for spec, why in (
        ({"$setElementOrder/containers": order}, "containers may not be renamed or reordered on resize"),
        ({"containers": [{"name": "three", "image": "busybox"}]}, "containers may not be added or removed on resize"),
    ):
        reply = http.patch(f"{pods}/sized/resize", json={"spec": spec}, headers=headers)
        assert reply.status_code == 422 and why in reply.json()["message"]
    bigger = {"containers": [{"name": "two", "resources": {"requests": {"cpu": "20m"}}}]}
    reply = http.patch(f"{pods}/sized/resize", json={"spec": bigger}, headers=headers)
    assert [one["resources"]["requests"]["cpu"] for one in reply.json()["spec"]["containers"]] == ["10m", "20m"]
