"""kubectl's commands without kubectl: the same output for what is read, the same effect of what is written."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from srearena.cluster import Cluster, start_embedded
from srearena.conductor.actions.api_kubectl import ApiKubectl
from srearena.conductor.actions.kubectl_process import KubectlProcess
from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import SHOP

NAMESPACE = "corner-shop"
QUERIES = (
    "-n corner-shop get deployments,statefulsets,daemonsets -o jsonpath='{range .items[*]}{.kind}|{.metadata.name}|"
    "{.spec.replicas}|{.status.availableReplicas}|{.spec.template.metadata.labels}|"
    "{.spec.template.spec.containers[*].ports[*].containerPort}|"
    '{.metadata.annotations.deployment\\.kubernetes\\.io/revision}{"\\n"}{end}\'',
    "-n corner-shop get services -o jsonpath='{range .items[*]}{.metadata.name}|{.spec.selector}|{.spec.ports}{end}'",
    "-n corner-shop get endpointslices -o jsonpath='{range .items[*]}"
    '{.metadata.labels.kubernetes\\.io/service-name}|{.endpoints[*].conditions.ready}{"\\n"}{end}\'',
    "-n corner-shop get pods -o jsonpath='{range .items[*]}{.metadata.name}|{.metadata.ownerReferences[0].name}|"
    "{.status.containerStatuses[*].ready}|{.status.containerStatuses[*].restartCount}{end}'",
    "-n corner-shop get events --field-selector type=Warning -o jsonpath='{range .items[*]}"
    "{.involvedObject.kind}|{.involvedObject.name}|{.reason}|{.message}{end}'",
    "-n corner-shop get networkpolicies -o jsonpath='{.items[*].metadata.name}'",
)
"""As agents ask: one line for many objects."""
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True, speed=0) as cluster:
        app = Application(Path(SHOP) / "metadata.json")
        app.deploy(cluster)
        app.wait_until_ready(cluster)
        yield cluster


@pytest.fixture
def kubectl(cluster: Cluster) -> Iterator[ApiKubectl]:
    substitute = ApiKubectl(cluster.kubeconfig)
    yield substitute
    substitute.close()


@pytest.mark.kubectl
@needs_kubectl
@pytest.mark.parametrize(
    "line",
    [
        *QUERIES,
        "get pods -n corner-shop",
        "get pods -n corner-shop -o wide",
        "get deploy,svc -n corner-shop",
        "get deployments -A --no-headers",
        "get deployment/api -n corner-shop -o jsonpath={.spec.replicas}",
        "get pods -n corner-shop -l app=api -o name",
        "get service api -n corner-shop -o yaml",
        "get service api -n corner-shop -o json",
        "get nodes -o jsonpath='{.items[0].metadata.name} {.items[*].spec.podCIDR}'",
        "get pods -n nowhere",
    ],
)
def test_what_is_read_is_printed_as_by_kubectl(cluster: Cluster, kubectl: ApiKubectl, line: str) -> None:
    words = shlex.split(line)
    real = subprocess.run(
        ["kubectl", f"--kubeconfig={cluster.kubeconfig}", *words], capture_output=True, text=True, check=True
    )
    status, text = kubectl.run(words)
    if "yaml" in words:  # the same document, which Go's library writes in another style
        assert (status, yaml.safe_load(text)) == (0, yaml.safe_load(real.stdout))
    else:
        assert (status, text) == (0, real.stdout + real.stderr)


def test_what_is_written_takes_effect(cluster: Cluster, kubectl: ApiKubectl) -> None:
    with Kubernetes.of(cluster) as api:

        def run(line: str, stdin: str = "") -> str:
            status, text = kubectl.run(shlex.split(line), stdin)
            assert status == 0, text
            return text

        assert run("scale deployment api --replicas=2 -n corner-shop") == "deployment.apps/api scaled\n"
        assert api.get("deployments", "api", NAMESPACE)["spec"]["replicas"] == 2
        patch = '[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 9999}]'
        assert run(f"-n corner-shop patch service api --type=json -p '{patch}'") == "service/api patched\n"
        assert api.get("services", "api", NAMESPACE)["spec"]["ports"][0]["targetPort"] == 9999
        run("delete service api -n corner-shop")
        assert api.find("services", "api", NAMESPACE) is None
        assert run("expose deployment api --port=80 --target-port=8080 -n corner-shop") == "service/api exposed\n"
        assert api.get("services", "api", NAMESPACE)["spec"]["ports"][0]["port"] == 80
        image = '{"spec": {"template": {"metadata": {"annotations": {"changed": "yes"}}}}}'
        run(f"patch deployment api -n corner-shop -p '{image}'")
        cluster.wait(10)
        assert run("rollout undo deployment/api -n corner-shop") == "deployment.apps/api rolled back\n"
        template = api.get("deployments", "api", NAMESPACE)["spec"]["template"]
        assert "changed" not in (template["metadata"].get("annotations") or {})
        assert len(run("rollout restart deployment -n corner-shop").splitlines()) == 3
        assert run("label namespace corner-shop tier=shop") == "namespace/corner-shop labeled\n"
        assert run("label namespace corner-shop tier-") == "namespace/corner-shop unlabeled\n"
        assert "tier" not in api.get("namespaces", NAMESPACE)["metadata"]["labels"]
        taints = {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}}
        api.patch("nodes", "worker-1", taints)
        assert run("taint nodes --all a=b:NoSchedule-") == "node/worker-1 untainted\n"
        assert not api.get("nodes", "worker-1")["spec"].get("taints")
        manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {a: b}\n---\n"
        run("apply -n corner-shop -f -", manifest)
        assert api.get("configmaps", "made", NAMESPACE)["data"] == {"a": "b"}
        (pod, *_) = api.list("pods", NAMESPACE, labels="app=web")
        assert run(f"logs {pod['metadata']['name']} -n corner-shop --tail=1").count("\n") <= 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("describe pods", "`kubectl describe` does not work without it"),
        ("get pods -o custom-columns=A:.b", "does not work without it"),
        ("get podz", "the cluster serves no resource 'podz'"),
        ("get pod none -n corner-shop", 'pods "none" not found'),
        ("delete pods", "name the objects"),
        ("get pods -o jsonpath={.items[", "jsonpath"),
        ("patch service api -p [1", "error:"),
        ("scale deployment api --replicas=many", "error: ValueError"),
        ("logs -f web", "does not work without it"),
        ("rollout undo daemonset/none", "only Deployments"),
    ],
)
def test_mistakes_and_what_is_missing_are_described(kubectl: ApiKubectl, line: str, problem: str) -> None:
    status, text = kubectl.run(shlex.split(line))
    assert status == 1 and problem in text


def test_it_stands_in_where_kubectl_is_not_installed(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    process = KubectlProcess(cluster.kubeconfig)
    try:
        assert process.run(["get", "namespace", "corner-shop", "-o", "name"]) == (0, "namespace/corner-shop\n")
    finally:
        process.close()
