"""The agent cannot widen its rights: no account that it can act as may do more than itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.conductor.episode.agent_access import ACCOUNT, NAMESPACE, OnCallAccess, access_to, grant
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.validity.rights import Account, Right, Rights
from srearena.service.apps import all_applications
from srearena.service.apps.base import Application
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Kubernetes, Obj
from tests.arena.episodes import prepared_episode
from tests.arena.test_validity import everything
from tests.selection import all_problems

AGENT = Account(NAMESPACE, ACCOUNT)
RBAC = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
ACTORS = ("nightly_rebalance_oom_hotel_reservation", "cumulative_admission_webhook_timeout_hotel_reservation")
"""Problems that add accounts and webhooks outside the application; `scripts/test --all-problems` takes all problems."""
APPLICATIONS = {app.name: app for app in all_applications()}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True) as cluster:
        yield cluster


def install(api: Kubernetes, app: Application) -> None:
    """The accounts and rights of an application, without what runs."""
    for namespace in app.namespaces:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for manifest in app.manifests:
        if manifest.kind in RBAC:
            api.apply(manifest.obj, manifest.namespace or app.namespace)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.daily_cases(4)
def test_no_reachable_account_may_do_more(cluster: Cluster, name: str, read_only: bool, tmp_path: Path) -> None:
    app = APPLICATIONS[name]
    with Kubernetes.of(cluster) as api:
        install(api, app)
        grant(cluster, api, OnCallAccess(app.namespaces, ("default",), read_only), tmp_path)
        rights = Rights(api)
        assert rights.excess(AGENT) == []
        outside = {account.namespace for account in rights.reachable(AGENT)} - {*app.namespaces, NAMESPACE}
        assert outside == set()


@pytest.mark.parametrize("name", everything() if all_problems() else ACTORS)
def test_nor_after_the_set_up_and_the_fault_of_a_problem(name: str) -> None:
    with prepared_episode(ProblemRegistry().get_problem(name)) as episode:
        assert Rights(episode.problem.kubernetes).excess(AGENT) == []


@pytest.mark.parametrize(
    ("role", "reached"),
    [
        ([("create", "", "pods")], True),
        ([("patch", "apps", "daemonsets")], True),
        ([("create", "batch", "cronjobs")], True),
        ([("create", "", "pods/exec")], True),
        ([("list", "", "secrets")], True),
        ([("create", "", "serviceaccounts/token")], True),
        ([("patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations")], True),
        ([("delete", "", "pods"), ("delete", "batch", "cronjobs"), ("patch", "apps", "deployments/scale")], False),
    ],
)
def test_the_walk_finds_every_way_to_an_account(
    cluster: Cluster, role: list[tuple[str, str, str]], reached: bool
) -> None:
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for verb, group, resource in role]
    rbac = "rbac.authorization.k8s.io"
    objects: list[Obj] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "someone", "namespace": "default"}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "someone"}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "someone"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "someone"},
            "subjects": [{"kind": "ServiceAccount", "name": "someone", "namespace": "default"}],
        },
    ]
    with Kubernetes.of(cluster) as api:
        for obj in objects:
            api.apply(obj)
        rights = Rights(api)
        strong = Account("kube-system", "clusterrole-aggregation-controller")
        assert (strong in rights.reachable(Account("default", "someone"))) == reached
        excess = [line for line in rights.excess(Account("default", "someone")) if line.startswith(f"{strong}:")]
        assert bool(excess) == reached


def test_rights_cover_what_they_include() -> None:
    assert Right("*", "*", "*").covers(Right("get", "apps", "deployments", "shop"))
    assert not Right("get", "", "pods", "shop").covers(Right("get", "", "pods"))
    assert not Right("get", "", "configmaps", "shop", "coredns").covers(Right("get", "", "configmaps", "shop"))
    assert Right("get", "url", "/healthz*").covers(Right("get", "url", "/healthz/etcd"))


def test_a_read_only_identity_only_reads(cluster: Cluster, tmp_path: Path) -> None:
    app = APPLICATIONS["Hotel Reservation"]
    with Kubernetes.of(cluster) as api:
        install(api, app)
        path = grant(cluster, api, OnCallAccess(app.namespaces, read_only=True), tmp_path)
        assert {right.verb for right in Rights(api).of(AGENT) if right.group != "authorization.k8s.io"} <= {
            "get",
            "list",
            "watch",
            "create",  # reviews of its own rights, as every account
        }
        with Kubernetes(path) as mine:
            mine.list("pods")
            with pytest.raises(ApiRefused):
                mine.list("secrets", app.namespace)
            with pytest.raises(ApiRefused):
                mine.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, app.namespace)
            with pytest.raises(ApiRefused):
                mine.delete("pods", "x", app.namespace, missing_ok=False)


def test_every_remedy_outside_the_application_is_among_the_rights() -> None:
    """What reference remedies change in kube-system is named here, so that a new one is noticed."""
    registry = ProblemRegistry()
    lines = {
        line.strip()
        for name in registry.get_problem_ids()
        for line in registry.get_problem(name).remedy.splitlines()
        if "kube-system" in line and " get " not in line and "rollout status" not in line
    }
    assert lines == {
        "kubectl -n kube-system delete cronjob vpa-updater",
        "kubectl -n kube-system delete pods -l k8s-app=kube-dns",
        "kubectl -n kube-system delete pods -l k8s-app=kube-proxy",
    }
    assert access_to(registry.get_problem("noop")).others == ()
