"""A cluster is left as it was found, whatever was done to it meanwhile, and also if we were killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srearena.cli import cli
from srearena.cluster import Cluster, ClusterError, NodeAccess
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.shared_cluster import Needs, SharedCluster, all_ledgers, open_shared_cluster
from srearena.conductor.shared_cluster.inventory import take_inventory
from srearena.config import Config
from srearena.service.kubernetes import Kubernetes, Obj

Deed = Callable[[Kubernetes], object]
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def shared(theirs: Cluster) -> Iterator[SharedCluster]:
    cluster = shared_cluster(theirs)
    yield cluster
    cluster.close()


def shared_cluster(theirs: Cluster, *namespaces: str, nodes: NodeAccess | None = None) -> SharedCluster:
    cluster = KubernetesCluster(theirs.kubeconfig, nodes=nodes)
    cluster.wait = theirs.wait  # type: ignore[method-assign] - time that passes by itself, only faster
    return open_shared_cluster(cluster, Needs(namespaces or ("shop",)), Config(k8s_host="kubernetes"))


def named(kind: str, version: str, name: str, **rest: object) -> Obj:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}


def hook(name: str) -> Obj:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    webhook = {
        "name": "refuse.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/no"},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    return named("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", name, webhooks=[webhook])


def volume(name: str, claim: str = "") -> Obj:
    spec: Obj = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/srv"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if claim:
        spec["claimRef"] = {"namespace": claim, "name": "data"}
    return named("PersistentVolume", "v1", name, spec=spec)


CRD = named(
    "CustomResourceDefinition",
    "apiextensions.k8s.io/v1",
    "boats.example.com",
    spec={
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
)
ROLE = named("ClusterRole", f"{RBAC}/v1", "visitor", rules=[])
BINDING = named(
    "RoleBinding", f"{RBAC}/v1", "visitor", roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
)
TAINT = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
QUOTA = named("ResourceQuota", "v1", "none", spec={"hard": {"pods": "0"}})

DEEDS: dict[str, Deed] = {
    "names are not resolved": lambda api: api.patch("configmaps", "coredns", {"data": {"Corefile": ""}}, "kube-system"),
    "a node is tainted": lambda api: api.patch("nodes", "worker-1", TAINT),
    "a node is cordoned": lambda api: api.patch("nodes", "worker-2", {"spec": {"unschedulable": True}}),
    "a node is labelled": lambda api: api.patch("nodes", "worker-1", {"metadata": {"labels": {"disk": "old"}}}),
    "a node's zone is lost": lambda api: api.patch(
        "nodes", "worker-2", {"metadata": {"labels": {"kubernetes.io/os": None}}}
    ),
    "a webhook refuses everything": lambda api: api.create(hook("strict")),
    "a definition comes": lambda api: api.create(CRD),
    "a role comes": lambda api: api.create(ROLE),
    "a role changes": lambda api: api.patch("clusterroles", "view", {"metadata": {"labels": {"old": "yes"}}}),
    "a role goes": lambda api: api.delete("clusterroles", "system:node-problem-detector"),
    "a binding comes in the system's namespace": lambda api: api.create(BINDING, "kube-system"),
    "a class of storage is no default": lambda api: api.patch(
        "storageclasses",
        "standard",
        {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "false"}}},
    ),
    "a class of storage goes": lambda api: api.delete("storageclasses", "standard"),
    "a priority comes": lambda api: api.create(
        named("PriorityClass", "scheduling.k8s.io/v1", "urgent", value=1000, globalDefault=True)
    ),
    "a volume comes": lambda api: api.create(volume("leftover")),
    "a volume of ours comes": lambda api: api.create(volume("ours", "shop")),
    "a quota comes in default": lambda api: api.create(QUOTA, "default"),
    "a config map comes in default": lambda api: api.create(named("ConfigMap", "v1", "notes"), "default"),
    "a secret comes in default": lambda api: api.create(named("Secret", "v1", "key"), "default"),
    "a pod comes in default": lambda api: api.create(
        named("Pod", "v1", "shell", spec={"containers": [{"name": "c", "image": "busybox:1.36"}]}), "default"
    ),
    "the name service is scaled down": lambda api: api.scale("deployments", "coredns", 0, "kube-system"),
    "default must be restricted": lambda api: api.patch(
        "namespaces", "default", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    ),
    "the application's namespace comes": lambda api: api.create(named("Namespace", "v1", "shop")),
}


def differences(api: Kubernetes, shared: SharedCluster) -> list[str]:
    return [str(d) for d in shared.ledger.inventory.differences(take_inventory(api))]


@pytest.mark.parametrize("what", DEEDS)
@pytest.mark.daily_cases(8)
def test_one_thing_is_put_right(theirs: Cluster, api: Kubernetes, what: str) -> None:
    shared = shared_cluster(theirs)
    with Kubernetes.of(shared) as ours:
        DEEDS[what](ours)
    assert differences(api, shared), "otherwise this proves nothing"
    shared.close()
    assert differences(api, shared) == []
    assert all_ledgers() == []


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.sets(st.sampled_from(sorted(DEEDS)), min_size=2, max_size=8))
def test_many_things_are_put_right(theirs: Cluster, api: Kubernetes, chosen: set[str]) -> None:
    # What refuses everything else has to come last to be done at all, and what is gone can be changed no more.
    shared = shared_cluster(theirs)
    try:
        with Kubernetes.of(shared) as ours:
            for what in sorted(chosen, key=lambda what: ("refuses" in what, what.endswith("goes"), what)):
                DEEDS[what](ours)
    finally:
        shared.close()
    assert differences(api, shared) == []


def test_what_is_not_ours_stays(theirs: Cluster, api: Kubernetes) -> None:
    shared = shared_cluster(theirs)
    said: list[str] = []
    shared._say = said.append
    api.create(named("Namespace", "v1", "neighbours"))
    api.create(volume("theirs", "neighbours"))
    try:
        shared.close()
        assert api.find("namespaces", "neighbours") is not None
        assert api.find("persistentvolumes", "theirs") is not None
        assert any("neighbours" in line for line in said)
    finally:
        api.delete("persistentvolumes", "theirs")
        api.delete("namespaces", "neighbours")
        theirs.wait(30)


NEIGHBOURS: dict[str, Obj] = {
    "a webhook": {**hook("strict"), "webhooks": []},
    "a definition": CRD,
    "a role": ROLE,
    "a binding": named(
        "ClusterRoleBinding",
        f"{RBAC}/v1",
        "visitor",
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": name} for name in ("shop", "neighbours")],
    ),
    "a priority": named("PriorityClass", "scheduling.k8s.io/v1", "urgent", value=1000),
    "a class of storage": named("StorageClass", "storage.k8s.io/v1", "fast", provisioner="example.com/fast"),
    "a volume": volume("leftover"),
    "a config map": {**named("ConfigMap", "v1", "notes"), "metadata": {"name": "notes", "namespace": "default"}},
}


@pytest.mark.parametrize("what", NEIGHBOURS)
def test_what_a_neighbour_makes_meanwhile_stays_and_is_named(theirs: Cluster, api: Kubernetes, what: str) -> None:
    shared = shared_cluster(theirs)
    said: list[str] = []
    shared._say = said.append
    made = api.create(NEIGHBOURS[what])
    resource, name = api.resource_of(made).name, made["metadata"]["name"]
    place = made["metadata"].get("namespace")
    try:
        shared.close()
        kept = api.find(resource, name, place)
        assert kept is not None and kept["metadata"]["uid"] == made["metadata"]["uid"]
        assert any(
            "may belong to others" in line and f"{resource.partition('.')[0]}/{name}" in line for line in said
        ), said
        assert all_ledgers() == [], "nothing is left to do for us"
    finally:
        api.delete(resource, name, place)
        theirs.wait(5)


def test_a_name_of_ours_that_a_neighbour_takes_over_is_theirs(theirs: Cluster, api: Kubernetes) -> None:
    shared = shared_cluster(theirs)
    with Kubernetes.of(shared) as ours:
        first = ours.create(NEIGHBOURS["a priority"])
        ours.delete("priorityclasses", "urgent")
    second = api.create(NEIGHBOURS["a priority"])
    try:
        shared.close()
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        assert api.get("priorityclasses", "urgent")["metadata"]["uid"] == second["metadata"]["uid"]
    finally:
        api.delete("priorityclasses", "urgent")


def served(namespace: str) -> list[Obj]:
    """Objects that say themselves which namespace they are for."""
    service = {"clientConfig": {"service": {"namespace": namespace, "name": "guard"}}}
    strict = hook("guard")
    strict["webhooks"] = [{**strict["webhooks"][0], **service, "rules": []}]
    release = named("PriorityClass", "scheduling.k8s.io/v1", "chart", value=1)
    release["metadata"]["annotations"] = {"meta.helm.sh/release-namespace": namespace}
    binding = {**NEIGHBOURS["a binding"], "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": namespace}]}
    return [strict, release, binding, volume("claimed", namespace)]


@pytest.mark.parametrize(("namespace", "stay"), [("shop", False), ("neighbours", True)])
def test_what_serves_a_namespace_goes_with_it(theirs: Cluster, api: Kubernetes, namespace: str, stay: bool) -> None:
    """Whoever made it: programs of the application, or an agent that took a way of its own."""
    shared = shared_cluster(theirs)
    made = [(api.resource_of(obj).name, api.create(obj)["metadata"]["name"]) for obj in served(namespace)]
    try:
        shared.close()
        assert {key: api.find(*key) is not None for key in made} == dict.fromkeys(made, stay)
    finally:
        for key in made:
            api.delete(*key)
        theirs.wait(5)


def test_what_is_older_than_the_run_is_never_deleted(theirs: Cluster, api: Kubernetes) -> None:
    """Also if the record of it were lost."""
    shared = shared_cluster(theirs)
    objects = {
        key: obj for key, obj in shared.ledger.inventory.objects.items() if key[0] != "storageclasses.storage.k8s.io"
    }
    assert len(objects) < len(shared.ledger.inventory.objects)
    shared.ledger = shared.ledger.update(inventory=Baseline(objects, shared.ledger.inventory.facts))
    shared.close()
    assert api.find("storageclasses", "standard") is not None


def test_the_record_is_for_its_owner_and_names_no_fault(shared: SharedCluster, api: Kubernetes) -> None:
    path = shared.ledger.path
    assert path.stat().st_mode & 0o77 == 0
    assert path.parent.stat().st_mode & 0o77 == 0
    text = path.read_text()
    secrets = [entry for entry in json.loads(text)["inventory"]["objects"] if entry["resource"] == "secrets"]
    assert all("data" not in entry["object"] for entry in secrets)
    assert "stop_kubelet" not in text


def test_one_run_at_a_time(theirs: Cluster, shared: SharedCluster) -> None:
    with pytest.raises(ClusterError, match=f"run {shared.ledger.run} uses this cluster"):
        shared_cluster(theirs, "other")


class Machines(NodeAccess):
    """Machines that remember what was done to them, and what was written down by then."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str, bool]] = []

    def operations(self) -> tuple[str, ...]:
        return ("stop_kubelet", "restore")

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        self.done.append((operation, node, all_ledgers()[0].machines))


def test_machines_that_were_touched_are_restored(theirs: Cluster) -> None:
    machines = Machines()
    shared = shared_cluster(theirs, nodes=machines)
    shared.nodes.perform("stop_kubelet", "worker-1")
    shared.close()
    assert machines.done[0] == ("stop_kubelet", "worker-1", True), "it was on record before it was done"
    assert {(what, node) for what, node, _ in machines.done[1:]} == {
        ("restore", name) for name in ("control-plane", "worker-1", "worker-2")
    }


def test_machines_that_were_not_touched_are_left_alone(theirs: Cluster) -> None:
    machines = Machines()
    shared_cluster(theirs, nodes=machines).close()
    assert machines.done == []


KILLED = """
import sys
from pathlib import Path
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.config import Config, TelemetryConfig
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import shop_problem

problem = shop_problem(ScalePodZero, "store")
config = Config(k8s_host="kubernetes", kubeconfig=sys.argv[1], telemetry=TelemetryConfig())
spec = EpisodeSpec(timeline=Timeline(before=1, after=1), config=config)
episode = Episode(problem, open_cluster(problem, spec), spec)
episode.prepare()
with Kubernetes(sys.argv[1]) as api:
    api.patch("nodes", "worker-1", {"spec": {"unschedulable": True}})
    api.patch("configmaps", "coredns", {"data": {"Corefile": "."}}, "kube-system")
problem.kubernetes.create(
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "ours"}, "value": 1}
)
print("broken", flush=True)
sys.stdin.read()
"""


def test_a_killed_run_is_cleaned_up(theirs: Cluster, api: Kubernetes, state: Path) -> None:
    before = take_inventory(api)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(theirs.kubeconfig)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "SREARENA_STATE_DIR": str(state)},
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "broken\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stdin.close()
    assert api.find("namespaces", "corner-shop") is not None
    api.create(named("PriorityClass", "scheduling.k8s.io/v1", "theirs", value=1))

    [ledger] = all_ledgers()
    with pytest.raises(ClusterError, match="ended without restoring"):
        shared_cluster(theirs)
    told = CliRunner().invoke(cli, ["cleanup", "--dry-run"], catch_exceptions=False)
    assert "would delete namespace corner-shop" in told.output
    assert "would change back nodes/worker-1" in told.output
    assert "would delete priorityclasses.scheduling.k8s.io/ours" in told.output
    assert "would keep, because it may belong to others, priorityclasses.scheduling.k8s.io/theirs" in told.output
    assert api.find("namespaces", "corner-shop") is not None

    done = CliRunner().invoke(cli, ["cleanup", "--run", ledger.run], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "not deleted, because it may belong to others: priorityclasses/theirs added" in done.output
    api.delete("priorityclasses", "theirs")
    assert before.differences(take_inventory(api)) == []
    assert all_ledgers() == []
    assert "nothing to clean up" in CliRunner().invoke(cli, ["cleanup"]).output


def test_an_unknown_run_is_named() -> None:
    with pytest.raises(ClusterError, match="run 'abc'"):
        CliRunner().invoke(cli, ["cleanup", "--run", "abc"], catch_exceptions=False)
