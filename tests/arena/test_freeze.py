"""From the end of its part on an agent has no access, and what others change then does not win a mitigation."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator

import httpx
import pytest

from srearena.conductor.episode.episode import Episode
from srearena.conductor.oracles.checks import FrontendAvailability, Intent, Readiness
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.target_port import TargetPort
from srearena.service.errors import ApiRefused
from srearena.service.kubeconfig import read_kubeconfig
from srearena.service.kubernetes import Kubernetes, Obj
from tests.arena.episodes import call, prepared_episode, shop_problem

SHOP = "corner-shop"
REPAIR = [{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8080}]


@pytest.fixture
def episode() -> Iterator[Episode]:
    problem = shop_problem(TargetPort)
    problem.mitigation_oracle = MitigationOracle(
        problem, checks=[Intent(), Readiness(hold=5), FrontendAvailability(window=10, timeout=120)]
    )
    with prepared_episode(problem, stages=("mitigation",)) as episode:
        yield episode


def agent(episode: Episode) -> Kubernetes:
    assert episode.kubeconfig is not None
    return Kubernetes(episode.kubeconfig)


def repair(api: Kubernetes) -> None:
    api.patch("services", "api", REPAIR, SHOP)


def test_after_the_last_submission_nothing_can_be_done(episode: Episode) -> None:
    with agent(episode) as api:
        api.list("pods", SHOP)  # the connection stays open
        assert episode.submit(None) == "The episode is over."
        with pytest.raises(ApiRefused, match="Unauthorized"):
            repair(api)
    assert "the episode is over" in episode.act(call('kubectl("get pods")'))
    assert "the episode is over" in episode.act(call("submit()"))
    ending = episode.grade()
    assert ending.outcome == "fail"


@pytest.mark.parametrize("own", [True, False], ids=["own account", "another account"])
def test_open_streams_of_the_agent_are_cut(episode: Episode, own: bool) -> None:
    assert episode.kubeconfig is not None
    access = read_kubeconfig(episode.kubeconfig)
    headers = access.headers if own else {"Authorization": f"Bearer {token_of_another_account(episode)}"}
    ended = threading.Event()
    began = threading.Event()

    def watch() -> None:
        tls = access.tls if isinstance(access.tls, ssl.SSLContext) else True
        url = f"{access.server}/api/v1/namespaces/{SHOP}/pods?watch=1"
        try:
            with httpx.stream("GET", url, headers=headers, verify=tls, timeout=60, trust_env=False) as response:
                for _ in response.iter_lines():
                    began.set()
        except httpx.HTTPError:
            pass
        ended.set()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    assert began.wait(20)
    episode.submit(None)
    assert ended.wait(20)
    tls = access.tls if isinstance(access.tls, ssl.SSLContext) else True
    url = f"{access.server}/api/v1/namespaces/{SHOP}/pods"
    assert httpx.get(url, headers=headers, verify=tls, trust_env=False).status_code == 401


def token_of_another_account(episode: Episode) -> str:
    """An account that the agent has made, with a token that it can read."""
    annotations = {"kubernetes.io/service-account.name": "helper"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "helper", "annotations": annotations},
    }
    with agent(episode) as api:
        for obj in (ACCOUNT, role(("", "pods", "list"), ("", "pods", "watch")), binding("helper"), secret):
            api.create(obj, SHOP)
        token = api.wait_for(lambda: (api.get("secrets", "helper", SHOP).get("data") or {}).get("token"), 20)
    return base64.b64decode(token).decode()


def test_a_limit_ends_the_access_too(episode: Episode) -> None:
    episode.usage.steps = 10_000
    assert not episode.within_limits()
    with agent(episode) as api, pytest.raises(ApiRefused):
        repair(api)


ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "helper"}}


def binding(role: str) -> Obj:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "helper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "helper", "namespace": SHOP}],
    }


def role(*rules: tuple[str, str, str]) -> Obj:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "helper"},
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for group, resource, verb in rules],
    }


def test_an_actor_that_the_agent_left_in_the_cluster_does_not_win(episode: Episode) -> None:
    patch = json.dumps(REPAIR)
    script = f"""
    sleep 40
    curl -sS --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt -X PATCH \\
      -H "Authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)" \\
      -H 'Content-Type: application/json-patch+json' -d '{patch}' \\
      'https://kubernetes.default.svc/api/v1/namespaces/{SHOP}/services/api?fieldManager=helper'
    sleep 600"""
    container = {"name": "curl", "image": "curlimages/curl:8.5.0", "command": ["sh", "-c", script]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper"},
        "spec": {"serviceAccountName": "helper", "containers": [container]},
    }
    with agent(episode) as api:
        for obj in (ACCOUNT, role(("", "services", "patch")), binding("helper"), pod):
            api.create(obj, SHOP)
    episode.cluster.wait(5)
    episode.submit(None)
    ending = episode.grade()
    service = episode.problem.kubernetes.get("services", "api", SHOP)
    assert service["spec"]["ports"][0]["targetPort"] == 8080, "the actor has not acted"
    assert ending.outcome == "fail"
    verdict = episode.records[-1].verdict
    assert verdict is not None
    assert "services/api in corner-shop was changed after the submission by helper" in str(verdict.reasons)


def test_bindings_that_open_sessions_end_with_the_agent(episode: Episode) -> None:
    with agent(episode) as api:
        for obj in (ACCOUNT, role(("", "pods/exec", "create")), binding("helper")):
            api.create(obj, SHOP)
    episode.submit(None)
    assert episode.problem.kubernetes.find("rolebindings", "helper", SHOP) is None


class Staffed(TargetPort):
    """The application has a role and a binding of its own."""

    def set_up(self) -> None:
        for obj in (role(("", "pods", "get")), binding("helper")):
            self.kubernetes.create(obj, SHOP)


def test_a_known_binding_ends_where_its_role_was_changed_without_a_trace() -> None:
    change = {"rules": role(("", "pods/exec", "create"))["rules"], "metadata": {"managedFields": [{}]}}
    with prepared_episode(shop_problem(Staffed), stages=("mitigation",)) as episode:
        with agent(episode) as api:
            api.patch("roles", "helper", change, SHOP, kind="merge")
        episode.submit(None)
        assert episode.problem.kubernetes.find("rolebindings", "helper", SHOP) is None
    with prepared_episode(shop_problem(Staffed), stages=("mitigation",)) as episode:
        episode.submit(None)
        assert episode.problem.kubernetes.find("rolebindings", "helper", SHOP) is not None


def test_the_time_to_mitigate_is_the_recovery_and_not_the_claim(episode: Episode) -> None:
    episode.cluster.wait(30)
    with agent(episode) as api:
        repair(api)
    episode.cluster.wait(300)
    episode.submit(None)
    assert episode.grade().outcome == "pass", episode.ending
    document = episode.records[-1].as_document()
    assert document["virtual_seconds"] >= 330
    assert 30 <= document["recovery"]["seconds"] <= 120
    assert document["recovery"]["resolution_seconds"] in (1.0, 15.0)


def test_what_was_under_way_at_the_submission_may_complete(episode: Episode) -> None:
    with agent(episode) as api:
        repair(api)
        api.restart("deployments", "api", SHOP)
    episode.submit(None)
    assert episode.grade().outcome == "pass", episode.ending
    recovery = episode.records[-1].recovery
    assert recovery is not None and recovery.source == "readiness"


def test_a_change_that_is_taken_back_in_time_is_seen(episode: Episode) -> None:
    with agent(episode) as api:
        repair(api)
    with Kubernetes(episode.cluster.kubeconfig) as somebody:
        episode.submit(None)
        episode.cluster.wait(2)
        for value in ("later", "earlier"):
            somebody.patch("configmaps", "api-site", {"data": {"note": value}}, SHOP, manager="helper")
        somebody.patch("configmaps", "api-site", {"data": {"note": None}}, SHOP, manager="helper")
        assert episode.grade().outcome == "fail"
    assert "configmaps/api-site in corner-shop was changed and changed back" in str(episode.ending)
