"""Who may do what in a new cluster, and the objects its control plane keeps for itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from srearena.cluster.embedded.api.authorization import Attributes, Authorizer
from srearena.cluster.embedded.assembly import Assembly, assemble
from srearena.cluster.embedded.bootstrap.roles import bootstrap_roles
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.embedded.registry.identity import AUTHENTICATED, User, component, service_account

LEASES = "leases.coordination.k8s.io"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Assembly]:
    assembly = assemble(ClusterOptions(start=1_800_000_000.0))
    yield assembly
    assembly.world.clock.close()


def _may(cluster: Assembly, user: User, verb: str, group: str, resource: str, **more: Any) -> bool:
    return Authorizer(cluster.world.store).decide(user, Attributes(verb, group, resource, **more)).allowed


@pytest.mark.parametrize(
    ("user", "verb", "group", "resource", "allowed"),
    [
        (service_account("kube-system", "replicaset-controller"), "create", "", "pods", True),
        (service_account("kube-system", "replicaset-controller"), "create", "", "secrets", False),
        (service_account("kube-system", "deployment-controller"), "create", "apps", "replicasets", True),
        (service_account("kube-system", "deployment-controller"), "delete", "", "pods", False),
        (service_account("kube-system", "generic-garbage-collector"), "delete", "example.com", "things", True),
        (component("kube-scheduler"), "create", "", "pods", False),
        (component("kube-scheduler"), "list", "", "nodes", True),
        (component("kube-controller-manager"), "delete", "", "pods", False),
        (User("system:node:worker-1", ("system:nodes", AUTHENTICATED)), "get", "", "pods", True),
        (User("jane", (AUTHENTICATED,)), "list", "", "pods", False),
    ],
)
def test_components_may_do_what_they_do_and_no_more(
    cluster: Assembly, user: User, verb: str, group: str, resource: str, allowed: bool
) -> None:
    assert _may(cluster, user, verb, group, resource) is allowed


def test_every_binding_refers_to_a_role_that_is_there() -> None:
    objects = list(bootstrap_roles())
    roles = {(o["kind"], o["metadata"].get("namespace", ""), name_of(o)) for o in objects if "roleRef" not in o}
    for bound in objects:
        if reference := bound.get("roleRef"):
            namespace = bound["metadata"].get("namespace", "") if reference["kind"] == "Role" else ""
            assert (reference["kind"], namespace, reference["name"]) in roles


def test_nobody_is_bound_to_the_role_of_nodes(cluster: Assembly) -> None:
    binding = cluster.world.store.get("clusterrolebindings.rbac.authorization.k8s.io", "", "system:node")
    assert binding is not None
    assert "subjects" not in binding


def test_every_flow_schema_has_its_level(cluster: Assembly) -> None:
    store, group = cluster.world.store, "flowcontrol.apiserver.k8s.io"
    levels = {name_of(level) for level in store.objects(f"prioritylevelconfigurations.{group}")}
    for schema in store.objects(f"flowschemas.{group}"):
        assert schema["spec"]["priorityLevelConfiguration"]["name"] in levels
        assert schema["status"]["conditions"][0]["status"] == "False"


def test_each_cluster_ip_is_booked_for_its_service_and_freed_with_it(cluster: Assembly) -> None:
    world = cluster.world
    client = world.component_client("kube-apiserver")
    service: Obj = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "booked", "namespace": "default"},
        "spec": {"ports": [{"port": 80}]},
    }
    created = client.create("services", service)
    world.clock.advance(1)
    address = created["spec"]["clusterIP"]
    booking = world.store.get("ipaddresses.networking.k8s.io", "", address)
    assert booking is not None
    assert booking["spec"]["parentRef"] == {"name": "booked", "namespace": "default", "resource": "services"}
    client.delete("services", created)
    world.clock.advance(1)
    assert world.store.get("ipaddresses.networking.k8s.io", "", address) is None


def test_leaders_keep_their_leases(cluster: Assembly) -> None:
    world = cluster.world
    for wait in (0, 3600):
        world.clock.advance(wait)
        for name in ("kube-controller-manager", "kube-scheduler"):
            lease = world.store.get(LEASES, "kube-system", name)
            assert lease is not None
            age = world.clock.now - parse_time(lease["spec"]["renewTime"])
            assert age < lease["spec"]["leaseDurationSeconds"]


def test_every_controller_has_its_account(cluster: Assembly) -> None:
    accounts = {name_of(o) for o in cluster.world.store.objects("serviceaccounts", "kube-system")}
    bound = {
        subject["name"]
        for binding in cluster.world.store.objects("clusterrolebindings.rbac.authorization.k8s.io")
        for subject in binding.get("subjects") or ()
        if name_of(binding).startswith("system:controller:")
    }
    assert bound - accounts == {"route-controller", "selinux-warning-controller", "service-controller"}


def test_the_cluster_tells_how_it_was_set_up(cluster: Assembly) -> None:
    config_maps = {(o["metadata"]["namespace"], name_of(o)) for o in cluster.world.store.objects("configmaps")}
    assert {
        ("kube-public", "cluster-info"),
        ("kube-system", "extension-apiserver-authentication"),
        ("kube-system", "kube-apiserver-legacy-service-account-token-tracking"),
        ("kube-system", "kubeadm-config"),
        ("kube-system", "kubelet-config"),
    } <= config_maps
