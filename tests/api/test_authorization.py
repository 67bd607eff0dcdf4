"""What a user may do: RBAC as operators meet it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from srearena.cluster.embedded.registry.identity import User
from tests.clusters import RunningApi

RBAC = "/apis/rbac.authorization.k8s.io/v1"
BOB = User("bob", ("devs",))


def _role(http: httpx.Client, name: str, *rules: dict[str, Any], cluster: bool = False, **more: Any) -> None:
    path = f"{RBAC}/clusterroles" if cluster else f"{RBAC}/namespaces/default/roles"
    http.post(
        path, json={"metadata": {"name": name, **more.pop("metadata", {})}, "rules": rules, **more}
    ).raise_for_status()


def _bind(http: httpx.Client, role: str, *, cluster: bool = False, kind: str = "", subject: Any = None) -> None:
    subject = subject or {"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}
    kind = kind or ("ClusterRole" if cluster else "Role")
    path = f"{RBAC}/clusterrolebindings" if cluster else f"{RBAC}/namespaces/default/rolebindings"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    body = {"metadata": {"name": f"{role}-binding"}, "roleRef": reference, "subjects": [subject]}
    http.post(path, json=body).raise_for_status()


def _rule(verbs: str, resources: str, groups: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": groups.split() or [""], **more}


HERE = 'in the namespace "default"'
EVERYWHERE = "at the cluster scope"


def _cannot(verb: str, resource: str, where: str, group: str = "") -> str:
    return f'User "bob" cannot {verb} resource "{resource}" in API group "{group}" {where}'


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/api/v1/namespaces/default/pods", f"pods is forbidden: {_cannot('list', 'pods', HERE)}"),
        ("GET", "/api/v1/pods", f"pods is forbidden: {_cannot('list', 'pods', EVERYWHERE)}"),
        ("GET", "/api/v1/pods?watch=true", f"pods is forbidden: {_cannot('watch', 'pods', EVERYWHERE)}"),
        ("GET", "/api/v1/namespaces/default/pods/x", f'pods "x" is forbidden: {_cannot("get", "pods", HERE)}'),
        ("GET", "/api/v1/namespaces/default/pods/x/log", f'pods "x" is forbidden: {_cannot("get", "pods/log", HERE)}'),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/default/deployments/x/scale",
            f'deployments.apps "x" is forbidden: {_cannot("patch", "deployments/scale", HERE, "apps")}',
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/default/deployments",
            f"deployments.apps is forbidden: {_cannot('deletecollection', 'deployments', HERE, 'apps')}",
        ),
        ("GET", "/api/v1/nodes/x", f'nodes "x" is forbidden: {_cannot("get", "nodes", EVERYWHERE)}'),
        (
            "GET",
            "/apis/no.such/v1/things",
            f"things.no.such is forbidden: {_cannot('list', 'things', EVERYWHERE, 'no.such')}",
        ),
        ("GET", "/metrics", 'forbidden: User "bob" cannot get path "/metrics"'),
    ],
)
def test_refusals_are_worded_as_the_real_server_words_them(
    api: RunningApi, method: str, path: str, message: str
) -> None:
    with api.http(BOB) as client:
        reply = client.request(method, path)
    assert reply.status_code == 403
    status = reply.json()
    assert status["message"] == message
    assert status["reason"] == "Forbidden"


def test_a_role_opens_exactly_what_it_names(api: RunningApi, http: httpx.Client) -> None:
    _role(http, "reader", _rule("get list", "configmaps"), _rule("update", "configmaps", resourceNames=["mine"]))
    _bind(http, "reader")
    http.post("/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "mine"}}).raise_for_status()
    with api.http(BOB) as client:
        home = "/api/v1/namespaces/default/configmaps"
        assert client.get(home).status_code == 200
        assert client.get(f"{home}/mine").status_code == 200
        assert client.put(f"{home}/mine", json={"metadata": {"name": "mine"}}).status_code == 200
        assert client.put(f"{home}/other", json={"metadata": {"name": "other"}}).status_code == 403
        assert client.post(home, json={"metadata": {"name": "new"}}).status_code == 403
        assert client.get("/api/v1/namespaces/kube-system/configmaps").status_code == 403
        assert client.get("/api/v1/namespaces/default/secrets").status_code == 403


def test_listing_one_name_is_allowed_to_who_may_have_only_that_one(api: RunningApi, http: httpx.Client) -> None:
    _role(http, "narrow", _rule("list", "configmaps", resourceNames=["mine"]))
    _bind(http, "narrow")
    with api.http(BOB) as client:
        home = "/api/v1/namespaces/default/configmaps"
        assert client.get(f"{home}?fieldSelector=metadata.name%3Dmine").status_code == 200
        assert client.get(f"{home}?fieldSelector=metadata.name%3Dother").status_code == 403
        assert client.get(home).status_code == 403


def test_subresources_must_be_named_themselves(api: RunningApi, http: httpx.Client) -> None:
    _role(http, "scaler", _rule("get", "deployments", "apps"), _rule("get", "*/scale", "*"))
    _bind(http, "scaler")
    with api.http(BOB) as client:
        home = "/apis/apps/v1/namespaces/default/deployments/x"
        assert client.get(f"{home}/scale").status_code == 404
        assert client.get(f"{home}/status").status_code == 403
        assert client.get(home).status_code == 404


def test_groups_service_accounts_and_cluster_roles_in_one_namespace(api: RunningApi, http: httpx.Client) -> None:
    _role(http, "pods-everywhere", _rule("list", "pods"), cluster=True)
    group = {"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}
    _bind(http, "pods-everywhere", kind="ClusterRole", subject=group)
    with api.http(BOB) as client:
        assert client.get("/api/v1/namespaces/default/pods").status_code == 200
        assert client.get("/api/v1/pods").status_code == 403
    account = User("system:serviceaccount:default:robot", ("system:serviceaccounts",))
    _bind(
        http,
        "pods-everywhere",
        cluster=True,
        subject={"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
    )
    with api.http(account) as client:
        assert client.get("/api/v1/pods").status_code == 200


def test_taking_a_binding_away_closes_the_door_at_once(api: RunningApi, http: httpx.Client) -> None:
    _role(http, "reader", _rule("list", "pods"))
    _bind(http, "reader")
    with api.http(BOB) as client:
        assert client.get("/api/v1/namespaces/default/pods").status_code == 200
        http.delete(f"{RBAC}/namespaces/default/rolebindings/reader-binding").raise_for_status()
        assert client.get("/api/v1/namespaces/default/pods").status_code == 403


def test_a_binding_to_a_missing_role_is_told_in_the_refusal(api: RunningApi, http: httpx.Client) -> None:
    _bind(http, "ghost")
    with api.http(BOB) as client:
        message = client.get("/api/v1/namespaces/default/pods").json()["message"]
    assert message.endswith(': RBAC: role.rbac.authorization.k8s.io "ghost" not found')


def test_an_aggregated_role_grants_what_it_selects(api: RunningApi, http: httpx.Client) -> None:
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"part-of": "view"}}]}
    _role(http, "view", cluster=True, aggregationRule=aggregation)
    _bind(http, "view", cluster=True)
    with api.http(BOB) as client:
        assert client.get("/api/v1/pods").status_code == 403
        _role(http, "view-pods", _rule("list", "pods"), cluster=True, metadata={"labels": {"part-of": "view"}})
        assert client.get("/api/v1/pods").status_code == 200


def test_paths_outside_the_api(api: RunningApi, http: httpx.Client) -> None:
    _role(http, "probe", {"verbs": ["get"], "nonResourceURLs": ["/version", "/readyz*"]}, cluster=True)
    _bind(http, "probe", cluster=True)
    with api.http(BOB) as client:
        assert client.get("/version").status_code == 200
        assert client.get("/readyz/ping").status_code == 200
        assert client.get("/livez").status_code == 403


def test_nobody_grants_more_than_they_hold(api: RunningApi, http: httpx.Client) -> None:
    _role(
        http,
        "admin-ish",
        _rule("get create update patch", "roles rolebindings", "rbac.authorization.k8s.io"),
        _rule("get", "pods"),
    )
    _bind(http, "admin-ish")
    _role(http, "secret-reader", _rule("get list", "secrets"))
    with api.http(BOB) as client:
        roles, bindings = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
        role = {"metadata": {"name": "held"}, "rules": [_rule("get", "pods")]}
        assert client.post(roles, json=role).status_code == 201
        more = {"metadata": {"name": "more"}, "rules": [_rule("get list", "secrets"), _rule("get", "pods")]}
        reply = client.post(roles, json=more)
        assert reply.status_code == 403
        assert reply.json()["message"] == (
            'roles.rbac.authorization.k8s.io "more" is forbidden: user "bob" (groups=["devs" "system:authenticated"]) '
            "is attempting to grant RBAC permissions not currently held:\n"
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
        )
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "secret-reader"}
        reply = client.post(bindings, json={"metadata": {"name": "grab"}, "roleRef": reference, "subjects": []})
        assert reply.status_code == 403
        patch = [{"op": "add", "path": "/rules/-", "value": _rule("delete", "pods")}]
        reply = client.patch(f"{roles}/held", json=patch, headers={"content-type": "application/json-patch+json"})
        assert reply.status_code == 403
        labels = {"metadata": {"labels": {"a": "b"}}}
        reply = client.patch(
            f"{roles}/secret-reader", json=labels, headers={"content-type": "application/merge-patch+json"}
        )
        assert reply.status_code == 200, "changing nothing about the rules needs no rights of their own"


def _ask(client: httpx.Client, kind: str, spec: dict[str, Any], **metadata: Any) -> httpx.Response:
    plural = f"{kind.lower()}s"
    namespace = f"namespaces/{metadata['namespace']}/" if metadata else ""
    body = {"kind": kind, "apiVersion": "authorization.k8s.io/v1", "metadata": metadata, "spec": spec}
    return client.post(f"/apis/authorization.k8s.io/v1/{namespace}{plural}", json=body)


def test_access_reviews_agree_with_what_happens(api: RunningApi, http: httpx.Client) -> None:
    _role(http, "reader", _rule("get", "pods"))
    _bind(http, "reader")
    wanted = {"verb": "get", "resource": "pods", "namespace": "default"}
    status = _ask(http, "SubjectAccessReview", {"user": "bob", "resourceAttributes": wanted}).json()["status"]
    assert status == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "reader-binding/default" of Role "reader" to User "bob"',
    }
    wanted["verb"] = "delete"
    status = _ask(http, "SubjectAccessReview", {"user": "bob", "resourceAttributes": wanted}).json()["status"]
    assert status == {"allowed": False}
    local = _ask(http, "LocalSubjectAccessReview", {"user": "bob", "resourceAttributes": wanted}, namespace="default")
    assert local.status_code == 201
    assert _ask(http, "SelfSubjectAccessReview", {"resourceAttributes": wanted}).json()["status"]["allowed"]
    assert _ask(http, "SubjectAccessReview", {"resourceAttributes": wanted}).status_code == 422
    assert _ask(http, "SelfSubjectAccessReview", {}).status_code == 422
    rules = _ask(http, "SelfSubjectRulesReview", {"namespace": "default"}).json()["status"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in rules["resourceRules"]


@pytest.mark.kubectl
def test_kubectl_auth_can_i(api: RunningApi) -> None:
    assert api.kubectl("auth", "can-i", "delete", "nodes").stdout.strip() == "yes"
    listed = api.kubectl("auth", "can-i", "--list").stdout
    assert "*.*" in listed
