"""The proof: whole episodes on a real Kubernetes, and the cluster is as it was afterwards.

Runs where SREARENA_REAL_KUBECONFIG names the kubeconfig of a real cluster with the images busybox:1.36 and python:3 and
a name service, for example that of `scripts/real-cluster up`. Each fault takes some minutes, since time is real there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from srearena.cluster import NodeAccess
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.conductor.episode.agent_access import NAMESPACE, OnCallAccess, grant
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.checks import FreshPods, FrontendAvailability, Intent, Reachability, Readiness
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.admission import AdmissionWebhookOutage
from srearena.conductor.problems.injected import CONTAINER, RESTORE, InjectedProblem
from srearena.conductor.problems.network import ServiceDnsResolutionFailure
from srearena.conductor.problems.nodes import KubeletCrash
from srearena.conductor.problems.resources import NamespaceMemoryLimit
from srearena.conductor.problems.scheduling import TaintNoToleration
from srearena.conductor.problems.target_port import TargetPort
from srearena.conductor.shared_cluster import Needs, SharedCluster, all_ledgers, open_shared_cluster
from srearena.conductor.shared_cluster.inventory import take_inventory
from srearena.conductor.shared_cluster.telemetry import NAMESPACE as OBSERVE
from srearena.conductor.shared_cluster.telemetry import stack
from srearena.conductor.stages import USUAL
from srearena.conductor.validity.player import run_script
from srearena.config import Config, LogShipper, TelemetryConfig
from srearena.generators.fault.steps import workers
from srearena.generators.fault.testbed import Testbed
from srearena.service.apps import all_applications, find_application
from srearena.service.errors import NotReady
from srearena.service.kubernetes import Kubernetes
from tests.kubernetes_backend.kubectl_work import work
from tests.kubernetes_backend.machines import HolderMachines
from tests.kubernetes_backend.test_frozen_access import SHOP, check_freeze, check_rights
from tests.kubernetes_backend.test_leaving import named
from tests.real_cluster.layout import KUBECONFIG

VARIABLE = "SREARENA_REAL_KUBECONFIG"
TEA_ROOM = str(Path(__file__).parent / "tea_room")
TIMELINE = Timeline(before=15, after=20)
SLOW = Timeline(before=15, after=75)
"""For what the control plane only believes after a while: a node that does not report."""
pytestmark = pytest.mark.timeout(1800)
if not os.environ.get(VARIABLE):
    pytest.skip(f"no real cluster: {VARIABLE} names no kubeconfig", allow_module_level=True)


class WrongAddress(InjectedProblem):
    """A setting of the application itself."""

    family = "env_variable_value"
    level = "application"
    fault = "env_variable_value"
    explanation = "The counter looks for the menu at a port where nothing listens."
    restores = (f"{CONTAINER}/env",)
    remedy = f"{RESTORE}\nkubectl -n {{ns}} rollout status deployment/{{service}} --timeout=60s"


class StoppedKubelets(KubeletCrash):
    """Here somebody can get at the machines, so that a repair can be asked for."""

    runs_on = ("kubernetes",)
    repairable = True


def by_hand(episode: Episode) -> None:
    """What kubectl cannot do: somebody starts the kubelets again."""
    problem = episode.problem
    for node in workers(Testbed.of(problem.namespace, problem.cluster, problem.kubernetes)):
        problem.cluster.nodes.perform("start_kubelet", node)


def by_kubectl(episode: Episode) -> None:
    with tempfile.TemporaryDirectory() as home:
        done = run_script(episode.problem.remedy, episode.kubeconfig, Path(home))
    assert done.returncode == 0, done.stderr


Remedy = Callable[[Episode], None]
FAULTS: dict[str, tuple[Callable[[], InjectedProblem], Remedy]] = {
    "application": (
        lambda: WrongAddress(TEA_ROOM, "counter", variable="MENU_URL", value="http://menu:9999/today"),
        by_kubectl,
    ),
    "virtualization": (lambda: TargetPort(TEA_ROOM, "menu"), by_kubectl),
    "network": (lambda: ServiceDnsResolutionFailure(TEA_ROOM, "menu", victims=("counter",)), by_kubectl),
    "scheduling": (lambda: TaintNoToleration(TEA_ROOM, "menu"), by_kubectl),
    "quota": (lambda: NamespaceMemoryLimit(TEA_ROOM, "menu"), by_kubectl),
    "admission": (lambda: AdmissionWebhookOutage(TEA_ROOM, "menu", victims=("menu", "counter")), by_kubectl),
    "node": (lambda: StoppedKubelets(TEA_ROOM, "counter"), by_hand),
}
NEEDS_MACHINES = ("node",)


def machines() -> NodeAccess | None:
    return HolderMachines() if Path(os.environ[VARIABLE]).resolve() == KUBECONFIG.resolve() else None


def patient(problem: InjectedProblem) -> MitigationOracle:
    """The usual checks with the timeout of people who sit and wait."""
    workloads = {"menu", "counter"} & {*problem.services, *problem.faulty_services}
    checks = [
        Intent(),
        Readiness(timeout=90, hold=15),
        Reachability(),
        FrontendAvailability(window=15, timeout=30),
        FreshPods(tuple(sorted(workloads)), timeout=120),
    ]
    return MitigationOracle(problem, checks=checks)


def answered_by_alias(episode: Episode) -> Verdict:
    """The verdict on an answer that names an object of the agent's own, which has another object as its owner."""
    assert episode.kubeconfig is not None
    namespace = episode.problem.namespace
    with Kubernetes(episode.kubeconfig) as api:
        owner = api.get("configmaps", "kube-root-ca.crt", namespace)["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True, "uid": owner["uid"]}
        template = {"metadata": {"labels": {"app": "alias"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "alias"}}, "template": template}
        alias = named("ReplicaSet", "apps/v1", "alias", spec=spec)
        alias["metadata"]["ownerReferences"] = [{**reference, "name": owner["name"]}]
        api.create(alias, namespace)
        verdict = Verdict.from_answer(episode.problem.oracle_for("localization").evaluate(["alias"]))
        api.delete("replicasets", "alias", namespace)
    return verdict


@pytest.mark.parametrize("level", FAULTS)
def test_a_fault_is_seen_repaired_and_leaves_no_trace(level: str) -> None:
    make, repair = FAULTS[level]
    if level in NEEDS_MACHINES and machines() is None:
        pytest.skip("the machines of this cluster are out of reach")
    problem = make()
    problem.id = f"{problem.family}_tea_room"
    problem.mitigation_oracle = patient(problem)
    timeline = SLOW if level in NEEDS_MACHINES else TIMELINE
    began = monotonic()

    def tell(text: str) -> None:
        print(f"  {monotonic() - began:6.1f} s  {text}", flush=True)

    print(f"\n{level}: {problem.fault}", flush=True)
    config = Config(k8s_host="kubernetes", kubeconfig=os.environ[VARIABLE], telemetry=TelemetryConfig())
    spec = EpisodeSpec(stages=("noop", *USUAL), timeline=timeline, config=config)
    cluster = open_cluster(problem, spec, nodes=machines(), say=tell)
    assert isinstance(cluster.inner, SharedCluster)
    before = cluster.inner.ledger.inventory
    episode = Episode(problem, cluster, spec, say=tell)
    try:
        episode.prepare()
        healthy = [
            c for check in problem.mitigation_oracle.checks if not check.disruptive for c in check.complaints(problem)
        ]
        assert healthy == []
        assert problem.baseline is not None and problem.baseline.facts["frontend"], (
            "nobody was served when all was well"
        )
        tell("healthy: every check is content")
        episode.submit("No")
        assert not answered_by_alias(episode).passed
        broken = judged(problem)
        tell(f"broken: {broken.reasons[0]}")
        assert not broken.passed
        repair(episode)
        tell("repaired")
        mended = judged(problem)
        tell(f"judged: {mended.reasons[0]}")
        assert mended.passed, mended.reasons
    finally:
        episode.close()
    with Kubernetes(os.environ[VARIABLE]) as api:
        left = [str(d) for d in before.differences(take_inventory(api))]
    tell(f"left: {len(before.objects)} objects as before, {len(left)} not")
    assert left == []
    assert all_ledgers() == []


def shared_cluster(*namespaces: str) -> SharedCluster:
    config = Config(k8s_host="kubernetes", telemetry=TelemetryConfig())
    return open_shared_cluster(KubernetesCluster(Path(os.environ[VARIABLE])), Needs(namespaces), config)


def untouched(before: Baseline) -> bool:
    with Kubernetes(os.environ[VARIABLE]) as api:
        return before.differences(take_inventory(api)) == []


@pytest.mark.parametrize("name", [app.name for app in all_applications()] + ["alloy", "filebeat"])
def test_a_real_server_takes_every_manifest(name: str) -> None:
    """A dry run: the server validates each object as if it were applied, with all its admission plug-ins."""
    shipper: LogShipper | None = "alloy" if name == "alloy" else "filebeat" if name == "filebeat" else None
    manifests = stack(shipper) if shipper else find_application(name).manifests
    namespaces = {OBSERVE} if shipper else {*find_application(name).namespaces}
    defined = {m.obj["spec"]["group"] for m in manifests if m.kind == "CustomResourceDefinition"}
    shared = shared_cluster(*namespaces)
    before = shared.ledger.inventory
    try:
        with Kubernetes.of(shared) as api:
            for namespace in namespaces:
                api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            judged = [m for m in manifests if str(m.obj["apiVersion"]).partition("/")[0] not in defined]
            for manifest in judged:
                api.apply(manifest.obj, manifest.namespace or min(namespaces), dry_run=True)
    finally:
        shared.close()
    assert untouched(before)
    print(
        f"\n{name}: the server takes {len(judged)} of {len(manifests)} objects; the rest are of kinds it brings",
        flush=True,
    )


def test_an_application_whose_images_cannot_be_pulled_says_so() -> None:
    app = find_application("social_network")  # of Hotel Reservation, the single-machine cluster can have the images
    shared = shared_cluster(*app.namespaces)
    before = shared.ledger.inventory
    try:
        app.deploy(shared)
        with pytest.raises(NotReady) as refused:
            app.wait_until_ready(shared, timeout=45)
    finally:
        shared.close()
    assert untouched(before)
    lines = str(refused.value).splitlines()
    print("", *lines[:4], f"  ... and {len(lines) - 4} more", sep="\n", flush=True)
    assert "Pull" in str(refused.value)


def test_beside_neighbours(tmp_path: Path) -> None:
    """What the agent makes goes, what others make meanwhile stays and is named."""
    shared = shared_cluster("shop", NAMESPACE)
    before = shared.ledger.inventory
    said: list[str] = []
    shared._say = said.append
    theirs = named("PriorityClass", "scheduling.k8s.io/v1", "neighbours", value=1)
    with Kubernetes(os.environ[VARIABLE]) as api:
        try:
            api.create(theirs)
            with Kubernetes.of(shared) as ours:
                ours.create(named("Namespace", "v1", "shop"))
                path = grant(shared, ours, OnCallAccess(("shop",)), tmp_path)
            work(path, tmp_path)
        finally:
            shared.close()
        left = [str(d) for d in before.differences(take_inventory(api))]
        api.delete("priorityclasses", "neighbours")
    print("", *said, sep="\n", flush=True)
    assert left == ["priorityclasses/neighbours added"]
    assert said[-1] == "not deleted, because it may belong to others: priorityclasses/neighbours added"
    assert untouched(before)


def test_rights_and_the_end_of_the_access(tmp_path: Path) -> None:
    """As on the embedded API server: no way to other accounts, and nothing works after the freeze."""
    shared = shared_cluster("shop", NAMESPACE)
    before = shared.ledger.inventory
    try:
        with Kubernetes.of(shared) as ours:
            ours.create(named("Namespace", "v1", "shop"))
            path = grant(shared, ours, SHOP, tmp_path)
            ours.wait_for(lambda: ours.find("serviceaccounts", "default", "shop"), 30)
            check_rights(ours, path)
            check_freeze(shared, ours, path, tmp_path)
    finally:
        shared.close()
    assert untouched(before)


def judged(problem: InjectedProblem) -> Verdict:
    return Verdict.from_answer(problem.oracle_for("mitigation").evaluate(None))
