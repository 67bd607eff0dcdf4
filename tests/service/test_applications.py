"""The applications in a cluster: what they consist of, that they come up, and that nothing of them stays."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.apps import Application, find_application
from srearena.service.errors import ApplicationError, ManifestError, NotReady
from srearena.service.kubernetes import Kubernetes
from srearena.service.manifests import pod_template

from .stand_ins import standing_in_for

Obj = dict[str, Any]
KINDS = {
    "hotel-reservation": {"Deployment": 19, "Service": 20, "PersistentVolumeClaim": 6, "ConfigMap": 2},
    "social-network": {"Deployment": 27, "Service": 27, "ConfigMap": 27},
    # The claims are ours: without them a rollout of everything loses the data.
    "blueprint-hotel-reservation": {"Deployment": 18, "Service": 18, "ConfigMap": 9, "PersistentVolumeClaim": 6},
    "online-boutique": {"Deployment": 12, "Service": 12, "ServiceAccount": 11},
}


@pytest.fixture(params=sorted(KINDS))
def application(request: pytest.FixtureRequest) -> Iterator[Application]:
    found = find_application(request.param)
    with standing_in_for([found]):
        yield found


def objects(application: Application, kind: str) -> dict[str, Obj]:
    return {m.name: m.obj for m in application.manifests if m.kind == kind}


def test_it_consists_of_what_the_real_one_does(application: Application) -> None:
    assert Counter(m.kind for m in application.manifests) == KINDS[application.namespace]


def test_every_reference_inside_it_leads_somewhere(application: Application) -> None:
    """Selectors find pods, target ports are declared or known, mounted config maps and claims exist."""
    workloads = objects(application, "Deployment")
    names = {kind: set(objects(application, kind)) for kind in ("ConfigMap", "PersistentVolumeClaim", "ServiceAccount")}
    labels = [w["spec"]["template"]["metadata"]["labels"] for w in workloads.values()]
    for name, service in objects(application, "Service").items():
        selector = service["spec"]["selector"]
        assert any(selector.items() <= own.items() for own in labels), name
    for name, workload in workloads.items():
        pod = pod_template(workload)
        assert pod is not None
        assert pod.get("serviceAccountName", "default") in {*names["ServiceAccount"], "default"}, name
        volumes = {v["name"] for v in pod.get("volumes", ())}
        for volume in pod.get("volumes", ()):
            if "configMap" in volume:
                assert volume["configMap"]["name"] in names["ConfigMap"], name
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in names["PersistentVolumeClaim"], name
        for container in [*pod["containers"], *pod.get("initContainers", ())]:
            assert {m["name"] for m in container.get("volumeMounts", ())} <= volumes, name
            for source in container.get("envFrom", ()):
                assert source["configMapRef"]["name"] in names["ConfigMap"], name
            for variable in container.get("env", ()):
                host, _, port = str(variable.get("value", "")).partition(":")
                if port.isdigit() and host in workloads:
                    service = objects(application, "Service")[host]
                    assert int(port) in [p["port"] for p in service["spec"]["ports"]], variable


def test_it_comes_up_and_leaves_nothing_behind(application: Application, cluster: Cluster) -> None:
    with Kubernetes.of(cluster) as api:
        before = world(api)
        application.deploy(cluster)
        application.wait_until_ready(cluster)
        pods = api.list("pods", application.namespace)
        assert len(pods) == KINDS[application.namespace]["Deployment"]
        assert application.frontend is not None
        door = api.get("services", application.frontend.service, application.namespace)
        assert application.frontend.port in [p["port"] for p in door["spec"]["ports"]]
        application.start_workload(cluster)
        cluster.wait(10)
        application.delete(cluster)
        assert world(api) == before


def world(api: Kubernetes) -> set[tuple[str, str, str]]:
    """Everything that is there, but for what comes and goes by itself."""
    passing = {
        "events",
        "leases.coordination.k8s.io",
        "componentstatuses",
        "pods.metrics.k8s.io",
        "nodes.metrics.k8s.io",
    }
    return {
        (row.name, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        for row in api.resources()
        if "list" in row.verbs and row.name not in passing and row.group != "events.k8s.io"
        for obj in api.list(row.name)
    }


def test_deploying_again_changes_nothing(cluster: Cluster) -> None:
    application = find_application("online-boutique")
    with standing_in_for([application]), Kubernetes.of(cluster) as api:
        application.deploy(cluster)
        application.wait_until_ready(cluster)
        before = {o["metadata"]["name"]: o["metadata"]["generation"] for o in api.list("deploy", "online-boutique")}
        application.deploy(cluster)
        after = {o["metadata"]["name"]: o["metadata"]["generation"] for o in api.list("deploy", "online-boutique")}
        assert before == after


def test_several_run_side_by_side(cluster: Cluster) -> None:
    both = [find_application("hotel-reservation"), find_application("online-boutique")]
    with standing_in_for(both), Kubernetes.of(cluster) as api:
        for application in both:
            application.deploy(cluster)
        for application in both:
            application.wait_until_ready(cluster)
        both[0].delete(cluster)
        assert api.find("namespaces", "hotel-reservation") is None
        assert both[1].not_ready(api) == []


def test_the_social_network_clones_its_scripts_over_its_own_network(cluster: Cluster) -> None:
    application = find_application("social-network")
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "no-way-out"},
        "spec": {"podSelector": {}, "policyTypes": ["Egress"]},
    }
    with standing_in_for([application]), Kubernetes.of(cluster) as api:
        application.deploy(cluster)
        application.wait_until_ready(cluster)
        secret = api.get("secrets", "mongodb-tls", "social-network")
        assert set(secret["data"]) == {"tls.pem", "ca.crt"}
        api.apply(policy, "social-network")
        api.restart("deploy", "nginx-thrift", "social-network")
        cluster.wait(120)
        new = [
            p["metadata"]["name"]
            for p in api.list("pods", "social-network", labels="service=nginx-thrift")
            if p["status"]["phase"] == "Pending"
        ]
        output = api.logs(new[0], "social-network", container="alpine-container")
        assert "Could not resolve host: github.com" in output


def test_the_hotels_databases_are_set_up_by_scripts_of_ours() -> None:
    manifests = find_application("hotel-reservation").manifests
    scripts = {m.name: m.obj["data"] for m in manifests if m.kind == "ConfigMap"}
    assert set(scripts["mongo-geo-script"]) == {"k8s-geo-mongo.sh"}
    assert set(scripts["mongo-rate-script"]) == {"k8s-rate-mongo.sh"}
    for data in scripts.values():
        for text in data.values():
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.mark.kubectl
def test_people_may_apply_the_manifests_with_kubectl(application: Application, cluster: Cluster) -> None:
    from srearena.service.kubectl import KubeCtl

    with KubeCtl(cluster.kubeconfig, application.namespace) as kubectl:
        kubectl.run("create", "namespace", application.namespace)
        output = kubectl.run("apply", "-R", "-f", str(application.folder / "manifests"))
        assert output.count(" created") == sum(KINDS[application.namespace].values())
        assert len(kubectl.get_json("deploy")["items"]) == KINDS[application.namespace]["Deployment"]
        assert "frontend" in kubectl.exec_command("kubectl get svc") or application.namespace == "social-network"


def make(folder: Path, manifests: dict[str, str], **metadata: Any) -> Application:
    (folder / "manifests").mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps({"Name": "Toy", "Namespace": "toy", **metadata}))
    for name, text in manifests.items():
        (folder / "manifests" / name).write_text(text)
    return Application(folder / "metadata.json")


def deployment(image: str, name: str = "web", **container: Any) -> str:
    labels = {"app": name}
    spec = {"containers": [{"name": "main", "image": image, **container}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )


def test_a_manifest_that_the_server_refuses_starts_nothing(tmp_path: Path, cluster: Cluster) -> None:
    bad = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 99999}]}\n"
    application = make(tmp_path / "toy", {"a.json": deployment("nginx"), "b.yaml": "# a service\n" + bad})
    with pytest.raises(ManifestError, match=r"b\.yaml:2: Service web was rejected: .*99999") as caught:
        application.deploy(cluster)
    assert "\n" not in str(caught.value)
    cluster.wait(30)
    with Kubernetes.of(cluster) as api:
        assert api.find("namespaces", "toy") is None


def test_a_kind_that_the_cluster_does_not_serve_is_named(tmp_path: Path, cluster: Cluster) -> None:
    application = make(tmp_path / "toy", {"a.yaml": "apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: w}\n"})
    with pytest.raises(ManifestError, match=r"a\.yaml:1: Widget w was rejected: the cluster serves no resource"):
        application.deploy(cluster)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (deployment("nginx:9.99"), r"deployment web: 0 of 1 pods available \(web-.*: main: .*9\.99"),
        (deployment("busybox:1.36", command=["sh", "-c", "exit 4"]), r"crashed \d times, Error \(exit code 4\)"),
        (deployment("nginx:1.27", resources={"requests": {"cpu": "1000"}}), "Unschedulable: 0/4 nodes are available"),
        (
            deployment("nginx:1.27", readinessProbe={"httpGet": {"path": "/none", "port": 80}}),
            "main runs but is not ready",
        ),
        (
            deployment("nginx:1.27", envFrom=[{"configMapRef": {"name": "gone"}}]),
            r'CreateContainerConfigError: configmap "gone" not found',
        ),
    ],
)
def test_what_is_not_ready_is_listed_with_its_reason(tmp_path: Path, cluster: Cluster, text: str, output: str) -> None:
    application = make(tmp_path / "toy", {"a.json": text, "b.json": deployment("nginx:1.27", "fine")})
    application.deploy(cluster)
    with pytest.raises(NotReady, match=output) as caught:
        application.wait_until_ready(cluster, timeout=120)
    assert str(caught.value).startswith("Toy is not ready after 120 s:") and "fine" not in str(caught.value)


def test_an_application_with_its_own_kind_and_roles_goes_without_a_trace(tmp_path: Path, cluster: Cluster) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.acme.io}
spec:
  group: acme.io
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: toy}\nrules: []\n"
    widget = "apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: w, namespace: toy-two}\n"
    files = {"1.yaml": widget, "2.yaml": definition, "3.yaml": role, "4.json": deployment("nginx:1.27")}
    application = make(tmp_path / "toy", files)
    assert application.namespaces == ("toy", "toy-two")
    with Kubernetes.of(cluster) as api:
        before = world(api)
        application.deploy(cluster)
        application.wait_until_ready(cluster)
        assert api.get("widgets", "w", "toy-two")
        application.delete(cluster)
        api.resource("pods")
    with Kubernetes.of(cluster) as api:
        assert world(api) == before


def test_nothing_to_deploy_is_said(tmp_path: Path, cluster: Cluster) -> None:
    application = make(tmp_path / "toy", {})
    with pytest.raises(ApplicationError, match=r"Toy has neither manifests in .* nor a Helm Config"):
        application.deploy(cluster)


def test_the_same_seed_deploys_the_same_pods() -> None:
    def names() -> set[str]:
        with start_embedded(in_process=True, speed=0, start=1_767_225_600, seed=5) as cluster:
            application = find_application("online-boutique")
            with standing_in_for([application]):
                application.deploy(cluster)
                application.wait_until_ready(cluster)
            with Kubernetes.of(cluster) as api:
                return {f"{p['metadata']['name']} {p['status']['podIP']}" for p in api.list("pods", "online-boutique")}

    assert names() == names()
