"""Aggregated APIs: an extension API server in the cluster, registered, discovered and called with kubectl."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.generators.certificates import Authority
from srearena.service.kubernetes import Kubernetes

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]
GROUP = "wardle.example.com"
API_SERVICE = f"v1alpha1.{GROUP}"
NAMESPACE = "wardle"
START = datetime.fromtimestamp(1_700_000_000, UTC)
AUTHORITY = Authority("Wardle CA", "s", START - timedelta(days=100))


@dataclass
class Wardle:
    cluster: Cluster
    api: Kubernetes
    home: Path

    def kubectl(self, *words: str, stdin: str = "", check: bool = True) -> str:
        """What kubectl prints, errors included."""
        environment = {"KUBECONFIG": str(self.cluster.kubeconfig), "HOME": str(self.home)}
        command = [str(shutil.which("kubectl")), *words]
        done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def register(self, authority: Authority = AUTHORITY) -> None:
        spec = {
            "group": GROUP,
            "version": "v1alpha1",
            "service": {"namespace": NAMESPACE, "name": "sample-api", "port": 7443},
            "caBundle": b64encode(authority.pem.encode()).decode(),
            "groupPriorityMinimum": 2000,
            "versionPriority": 200,
        }
        kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
        self.api.create({**kind, "metadata": {"name": API_SERVICE}, "spec": spec})
        self.cluster.wait(2)

    def availability(self) -> tuple[str, str]:
        condition = self.api.get("apiservices", API_SERVICE)["status"]["conditions"][0]
        return condition["reason"], condition["message"]


def _deployment() -> dict[str, Any]:
    url = "http://127.0.0.1:2379"
    flags = [
        f"--tls-{file}=/certificates/tls.{name}" for file, name in (("cert-file", "crt"), ("private-key-file", "key"))
    ]
    probe = {"httpGet": {"scheme": "HTTPS", "port": 443, "path": "/readyz"}, "periodSeconds": 1}
    server = {
        "name": "sample-apiserver",
        "image": "registry.k8s.io/e2e-test-images/sample-apiserver:1.29.2",
        "args": [f"--etcd-servers={url}", *flags],
        "volumeMounts": [{"name": "certificates", "mountPath": "/certificates"}],
        "readinessProbe": probe,
    }
    etcd = {
        "name": "etcd",
        "image": "registry.k8s.io/etcd:3.6.4-0",
        "command": ["/usr/local/bin/etcd", "--listen-client-urls", url, "--advertise-client-urls", url],
    }
    labels = {"app": "sample-apiserver"}
    volumes = [{"name": "certificates", "secret": {"secretName": "certificates"}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [server, etcd], "volumes": volumes}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "sample-apiserver"}, "spec": spec}


def _bindings() -> list[dict[str, Any]]:
    """What the server needs: to have tokens and access reviewed, to know the front proxy, to see namespaces."""
    rbac = "rbac.authorization.k8s.io"
    head = {"apiVersion": f"{rbac}/v1"}
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}]
    reader = "extension-apiserver-authentication-reader"

    def binding(kind: str, name: str, role_kind: str, role: str, **meta: str) -> dict[str, Any]:
        reference = {"apiGroup": rbac, "kind": role_kind, "name": role}
        return {**head, "kind": kind, "metadata": {"name": name, **meta}, "roleRef": reference, "subjects": subjects}

    return [
        binding("ClusterRoleBinding", "wardle-delegator", "ClusterRole", "system:auth-delegator"),
        {
            **head,
            "kind": "ClusterRole",
            "metadata": {"name": "wardle-namespaces"},
            "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}],
        },
        binding("ClusterRoleBinding", "wardle-namespaces", "ClusterRole", "wardle-namespaces"),
        binding("RoleBinding", "wardle-reader", "Role", reader, namespace="kube-system"),
    ]


@pytest.fixture(scope="module")
def wardle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wardle]:
    with start_embedded(in_process=True, nodes=1, start=START.timestamp()) as cluster, Kubernetes.of(cluster) as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        issued = AUTHORITY.issue(f"sample-api.{NAMESPACE}.svc", START - timedelta(days=1), START + timedelta(days=30))
        files = {"tls.crt": issued.certificate, "tls.key": issued.key}
        data = {name: b64encode(text.encode()).decode() for name, text in files.items()}
        api.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "certificates"}, "data": data}, NAMESPACE
        )
        ports = [{"port": 7443, "targetPort": 443}]
        service = {"selector": {"app": "sample-apiserver"}, "ports": ports}
        api.create(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sample-api"}, "spec": service}, NAMESPACE
        )
        for binding in _bindings():
            api.create(binding, binding["metadata"].get("namespace"))
        api.create(_deployment(), NAMESPACE)
        found = Wardle(cluster, api, tmp_path_factory.mktemp("home"))
        found.register()
        cluster.wait(20)
        yield found


def test_kubectl_works_with_the_resources_of_an_extension_server(wardle: Wardle) -> None:
    kubectl = wardle.kubectl
    assert wardle.availability() == ("Passed", "all checks passed")
    assert "flunders" in kubectl("api-resources", f"--api-group={GROUP}")
    flunder = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Flunder", "metadata": {"name": "a", "labels": {"x": "1"}}}
    text = json.dumps({**flunder, "spec": {"reference": "b"}})
    assert kubectl("create", "-f", "-", stdin=text) == f"flunder.{GROUP}/a created\n"
    assert "AlreadyExists" in kubectl("create", "-f", "-", stdin=text, check=False)
    assert kubectl("get", "flunders").split()[:4] == ["NAME", "CREATED", "AT", "a"]
    assert kubectl("get", "flunders", "-l", "x=2") == "No resources found in default namespace.\n"
    assert kubectl("get", "flunder", "a", "-o", "jsonpath={.spec.referenceType}") == "Flunder"
    kubectl("patch", "flunder", "a", "--type=merge", "-p", '{"metadata":{"labels":{"x":"2"}}}')
    assert kubectl("get", "flunders", "-l", "x=2", "-o", "name") == f"flunder.{GROUP}/a\n"
    unknown = text.replace('"a"', '"c"').replace('"b"}', '"b","referenceType":"Other"}')
    assert "must be Flunder or Fischer" in kubectl("create", "-f", "-", stdin=unknown, check=False)
    fischer = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"}}
    kubectl("create", "-f", "-", stdin=json.dumps({**fischer, "disallowedFlunders": ["banned"]}))
    assert "this name may not be used" in kubectl(
        "create", "-f", "-", stdin=text.replace('"a"', '"banned"'), check=False
    )
    assert kubectl("delete", "flunder", "a", "--wait=false").startswith(f'flunder.{GROUP} "a" deleted')


def test_headers_of_the_front_proxy_count_only_with_its_certificate(wardle: Wardle) -> None:
    wardle.api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "client"},
            "spec": {"containers": [{"name": "main", "image": "curlimages/curl:8.9.1", "command": ["sleep", "9999"]}]},
        },
        "default",
    )
    wardle.cluster.wait(20)
    url = f"https://sample-api.{NAMESPACE}.svc:7443/apis/{GROUP}/v1alpha1/flunders"
    claim = "-H 'X-Remote-User: kubernetes-admin' -H 'X-Remote-Group: system:masters'"
    with wardle.cluster.fast_forward(30):
        answer = wardle.api.exec("client", ["sh", "-c", f"curl -sk {claim} {url}"], "default")
    assert 'User \\"system:anonymous\\" cannot list resource' in answer.output
    token = wardle.kubectl("create", "token", "default", "-n", NAMESPACE).strip()
    with wardle.cluster.fast_forward(30):
        answer = wardle.api.exec(
            "client", ["sh", "-c", f"curl -sk -H 'Authorization: Bearer {token}' {url}"], "default"
        )
    assert f"system:serviceaccount:{NAMESPACE}:default" in answer.output


def test_why_an_extension_server_is_unavailable_is_in_its_condition(wardle: Wardle) -> None:
    api, cluster, path = wardle.api, wardle.cluster, f"/apis/{GROUP}/v1alpha1/flunders"
    api.delete("apiservices", API_SERVICE)
    cluster.wait(1)
    assert "NotFound" in wardle.kubectl("get", "--raw", path, check=False)
    wardle.register(Authority("Another CA", "t", START - timedelta(days=100)))
    reason, message = wardle.availability()
    assert reason == "FailedDiscoveryCheck"
    assert "x509: certificate signed by unknown authority" in message
    assert "unable to handle the request" in wardle.kubectl("get", "--raw", path, check=False)
    api.delete("apiservices", API_SERVICE)
    wardle.register()
    assert wardle.availability()[0] == "Passed"

    # Without the role that lets it know the front proxy, the server cannot start.
    reader = next(binding for binding in _bindings() if binding["kind"] == "RoleBinding")
    api.delete("rolebindings", reader["metadata"]["name"], "kube-system")
    api.scale("deployments", "sample-apiserver", 0, NAMESPACE)
    cluster.wait(45)
    assert wardle.availability()[0] == "MissingEndpoints"
    api.scale("deployments", "sample-apiserver", 1, NAMESPACE)
    cluster.wait(10)
    log = wardle.kubectl("logs", "deployment/sample-apiserver", "-c", "sample-apiserver", "-n", NAMESPACE)
    assert "unable to load configmap based request-header-client-ca-file" in log
    api.create(reader, "kube-system")
    cluster.wait(60)
    assert wardle.availability()[0] == "Passed"
