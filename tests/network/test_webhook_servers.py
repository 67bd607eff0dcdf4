"""An admission webhook that runs in the cluster: called over its network, trusted by its certificate."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj
from srearena.generators.certificates import Authority
from tests.network.whole_cluster import WholeCluster

START = datetime.fromtimestamp(1_700_000_000, UTC)
AUTHORITY = Authority("Platform CA", "s", START - timedelta(days=100))


_AGNHOST = ("registry.k8s.io/e2e-test-images/agnhost:2.53", "/agnhost webhook")


def with_server(image: str, command: str, **env: str) -> WholeCluster:
    """A cluster whose webhook server is running."""
    whole_cluster = WholeCluster()
    issued = AUTHORITY.issue("policy.default.svc", START - timedelta(days=1), START + timedelta(days=30))
    files = {"tls.crt": issued.certificate, "tls.key": issued.key}
    secret: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "namespace": "default"}}
    whole_cluster.client.create(
        "secrets", {**secret, "data": {k: b64encode(v.encode()).decode() for k, v in files.items()}}
    )
    words = f"{command} --tls-cert-file=/tls/tls.crt --tls-private-key-file=/tls/tls.key --port=8443"
    labels = {"app": "policy"}
    container = {
        "name": "main",
        "image": image,
        "command": words.split(),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
    }
    spec = {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": "tls"}}]}
    meta = {"name": "policy", "namespace": "default", "labels": labels}
    whole_cluster.client.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    whole_cluster.pass_time(30)
    whole_cluster.expose("policy", 443, 8443)
    return whole_cluster


@pytest.fixture
def whole_cluster() -> WholeCluster:
    return with_server(*_AGNHOST)


def review(
    whole_cluster: WholeCluster,
    path: str,
    authority: Authority = AUTHORITY,
    kind: str = "Validating",
    hooks: int = 1,
    **more: Any,
) -> None:
    """Register the webhook for pods with a label."""
    place = {"namespace": "default", "name": "policy", "path": path}
    whole_cluster.client.create(
        f"{kind.lower()}webhookconfigurations.admissionregistration.k8s.io",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": "policy"},
            "webhooks": [
                {
                    "name": f"policy{'-again' * number}.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    **more,
                    "clientConfig": {"service": place, "caBundle": b64encode(authority.pem.encode()).decode()},
                    "objectSelector": {"matchLabels": {"app": "web"}},
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ],
                }
                for number in range(hooks)
            ],
        },
    )
    whole_cluster.deploy("web", "nginx:1.27")


def refusals(whole_cluster: WholeCluster) -> str:
    return "\n".join(
        e["message"] for e in whole_cluster.client.list("events", "default") if e["reason"] == "FailedCreate"
    )


@pytest.mark.parametrize("path", ["/pods", "/always-allow-delay-5s"])
def test_requests_the_webhook_allows_are_admitted(whole_cluster: WholeCluster, path: str) -> None:
    review(whole_cluster, path)
    assert whole_cluster.ready("default", app="web") == 1 and not refusals(whole_cluster)


def test_requests_the_webhook_denies_are_rejected(whole_cluster: WholeCluster) -> None:
    review(whole_cluster, "/always-deny")
    assert whole_cluster.ready("default", app="web") == 0
    assert 'admission webhook "policy.example.com" denied the request' in refusals(whole_cluster)


def test_a_certificate_of_another_authority_is_not_trusted(whole_cluster: WholeCluster) -> None:
    review(whole_cluster, "/pods", Authority("Platform CA", "another", START - timedelta(days=100)))
    assert whole_cluster.ready("default", app="web") == 0
    assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in refusals(whole_cluster)


@pytest.mark.parametrize(("hooks", "let_in"), [(3, True), (4, False)])
def test_failures_that_are_ignored_add_up_to_more_than_a_request_may_take(
    whole_cluster: WholeCluster, hooks: int, let_in: bool
) -> None:
    closed: Obj = {"podSelector": {"matchLabels": {"app": "policy"}}, "policyTypes": ["Ingress"]}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    meta = {"name": "closed", "namespace": "default"}
    whole_cluster.client.create("networkpolicies.networking.k8s.io", {**kind, "metadata": meta, "spec": closed})
    review(whole_cluster, "/pods", kind="Mutating", hooks=hooks, timeoutSeconds=10, failurePolicy="Ignore")
    whole_cluster.pass_time(60)
    assert (whole_cluster.ready("default", app="web") == 1) is let_in
    late = "Timeout: request did not complete within requested timeout - context deadline exceeded"
    assert (late in refusals(whole_cluster)) is not let_in


def test_defaults_of_pods_are_applied() -> None:
    image = "registry.example.com/platform/pod-defaults:1.4.0"
    whole_cluster = with_server(image, "/pod-defaults", DEFAULT_MEMORY_LIMIT="96Mi")
    review(whole_cluster, "/pods", kind="Mutating")
    (pod,) = whole_cluster.pods("default", app="web")
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": "96Mi"}
    deployment = whole_cluster.client.get("deployments.apps", "default", "web")
    assert deployment is not None
    assert not deployment["spec"]["template"]["spec"]["containers"][0].get("resources"), "the workload is as it was"
