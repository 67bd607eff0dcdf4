"""What is refused at the door: quotas, limit ranges, pod security and webhooks, as a workload's owner sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from srearena.cluster import Cluster
from tests.webhook_server import WebhookServer, bundle_of, deny, patch

from .operator import Operator


@pytest.fixture
def webhook(cluster: Cluster) -> Iterator[WebhookServer]:
    with WebhookServer(cluster) as server:
        yield server


def deployment(resources: dict[str, Any] | None = None, replicas: int = 1, **pod: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "web", "image": "nginx:1.27"}
    if resources:
        container["resources"] = resources
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **pod}},
        },
    }


def refusals(operator: Operator) -> list[str]:
    """What the FailedCreate events of the Deployment's newest ReplicaSet say."""
    sets = operator.get("rs", "-l", "app=web", "--sort-by=.metadata.creationTimestamp")["items"]
    name = sets[-1]["metadata"]["name"]
    failure = operator.condition("ReplicaFailure", "rs", name)
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    events = [event for event in operator.events(name) if event[1] == "FailedCreate"]
    assert {kind for kind, _, _ in events} == {"Warning"}
    texts = [text.removeprefix("(combined from similar events): ") for _, _, text in events]
    assert all(text.startswith('Error creating: pods "web-') for text in texts if "webhook" not in text)
    on_deployment = operator.condition("ReplicaFailure", "deployment", "web")
    assert on_deployment["message"] == failure["message"]
    return texts


# Quota


def test_a_quota_stops_the_replicas_that_exceed_it(operator: Operator) -> None:
    operator.kubectl("create", "quota", "small", "--hard=pods=3,requests.cpu=1")
    operator.apply(deployment({"requests": {"cpu": "300m"}}, replicas=5))
    operator.wait(30)
    assert operator.row("deployment", "web")["READY"] == "3/5"
    texts = refusals(operator)
    assert all(
        text.endswith(
            "is forbidden: exceeded quota: small, requested: pods=1,requests.cpu=300m, "
            "used: pods=3,requests.cpu=900m, limited: pods=3,requests.cpu=1"
        )
        for text in texts
    ), texts
    described = operator.kubectl("describe", "quota", "small")
    assert "pods          3     3" in described
    assert "requests.cpu  900m  1" in described
    operator.kubectl(
        "patch", "quota", "small", "--type=merge", "-p", '{"spec":{"hard":{"pods":"9","requests.cpu":"9"}}}'
    )
    operator.wait(300)
    assert operator.row("deployment", "web")["READY"] == "5/5"
    assert operator.condition("ReplicaFailure", "deployment", "web") == {}


def test_under_a_quota_for_processor_every_pod_must_ask_for_some(operator: Operator) -> None:
    operator.kubectl("create", "quota", "small", "--hard=requests.cpu=1,limits.memory=1Gi")
    operator.apply(deployment())
    operator.wait(20)
    assert refusals(operator)[-1].endswith(
        "is forbidden: failed quota: small: must specify limits.memory for: web; requests.cpu for: web"
    )
    operator.kubectl("set", "resources", "deployment/web", "--requests=cpu=100m", "--limits=memory=128Mi,cpu=200m")
    operator.wait(60)
    assert operator.row("deployment", "web")["READY"] == "1/1"


def test_a_quota_counts_other_objects_too(operator: Operator) -> None:
    operator.kubectl(
        "create", "quota", "few", "--hard=count/configmaps=2,services.nodeports=0,persistentvolumeclaims=0"
    )
    operator.wait(2)
    operator.kubectl("create", "configmap", "one")
    assert (
        'configmaps "two" is forbidden: exceeded quota: few, requested: count/configmaps=1, '
        "used: count/configmaps=2, limited: count/configmaps=2"
    ) in operator.fails("create", "configmap", "two"), "kube-root-ca.crt counts as well"
    assert "exceeded quota: few, requested: services.nodeports=1" in operator.fails(
        "create", "service", "nodeport", "web", "--tcp=80"
    )
    operator.kubectl("delete", "configmap", "one")
    operator.wait(10)
    operator.kubectl("create", "configmap", "two")


# Limit ranges

LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec:
  limits:
  - type: Container
    default: {cpu: 200m, memory: 128Mi}
    defaultRequest: {cpu: 100m}
    min: {cpu: 50m}
    max: {cpu: "1", memory: 512Mi}
"""


def test_a_limit_range_fills_in_and_refuses(operator: Operator) -> None:
    operator.apply(LIMITS)
    operator.apply(deployment())
    operator.wait(15)
    [pod] = operator.pods("app=web")
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "200m", "memory": "128Mi"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
    }
    assert pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container web; cpu, memory limit for container web"
    )
    operator.kubectl("set", "resources", "deployment/web", "--limits=cpu=2,memory=1Gi", "--requests=cpu=10m")
    operator.wait(20)
    assert refusals(operator)[-1].endswith(
        "is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, "
        "maximum cpu usage per Container is 1, but limit is 2, "
        "maximum memory usage per Container is 512Mi, but limit is 1Gi]"
    )
    assert operator.row("deployment", "web")["READY"] == "1/1", "the old pod stays while the new ones are refused"
    operator.kubectl("set", "resources", "deployment/web", "--limits=cpu=1,memory=512Mi", "--requests=cpu=50m")
    operator.wait(60)
    assert operator.row("deployment", "web")["UP-TO-DATE"] == "1"
    assert operator.condition("ReplicaFailure", "deployment", "web") == {}


# Pod security

VIOLATIONS = (
    'allowPrivilegeEscalation != false (container "web" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "web" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "web" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "web" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)


def test_a_restricted_namespace_warns_of_the_template_and_refuses_the_pods(operator: Operator) -> None:
    level = "pod-security.kubernetes.io"
    operator.kubectl("label", "ns", "default", f"{level}/enforce=restricted", f"{level}/warn=restricted")
    created = operator.run("create", "deployment", "web", "--image=nginx:1.27")
    assert created.code == 0
    [warning] = [line for line in created.err.splitlines() if line.startswith("Warning:")]
    assert warning == 'Warning: would violate PodSecurity "restricted:latest": ' + VIOLATIONS.replace(
        '"web"', '"nginx"'
    )
    operator.kubectl("delete", "deployment", "web")
    operator.apply(deployment())
    operator.wait(20)
    assert refusals(operator)[-1].endswith(f'is forbidden: violates PodSecurity "restricted:latest": {VIOLATIONS}')
    operator.kubectl("label", "ns", "default", f"{level}/enforce=baseline", "--overwrite")
    operator.wait(120)
    assert operator.row("deployment", "web")["READY"] == "1/1"


def test_a_baseline_namespace_refuses_the_privileged(operator: Operator) -> None:
    operator.kubectl("label", "ns", "default", "pod-security.kubernetes.io/enforce=baseline")
    container = {"name": "web", "image": "nginx", "securityContext": {"privileged": True}}
    override = json.dumps({"spec": {"hostNetwork": True, "containers": [container]}})
    refusal = operator.fails("run", "web", "--image=nginx", "--overrides", override)
    assert (
        'pods "web" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true), '
        'privileged (container "web" must not set securityContext.privileged=true)'
    ) in refusal


# Webhooks


def hook(server: WebhookServer, kind: str = "Validating", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [
            {
                "name": "guard.acme.io",
                "clientConfig": server.client_config,
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 1,
                **more,
            }
        ],
    }


def test_a_webhook_that_denies_shows_on_the_replica_set(operator: Operator, webhook: WebhookServer) -> None:
    webhook.answer = deny("images must come from registry.acme.io")
    operator.apply(hook(webhook), deployment())
    operator.wait(30)
    text = (
        'Error creating: admission webhook "guard.acme.io" denied the request: images must come from registry.acme.io'
    )
    assert text in refusals(operator)
    assert operator.pods("app=web") == []
    [request, *_] = webhook.requests
    assert request["operation"] == "CREATE"
    assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert request["namespace"] == "default"
    assert request["userInfo"]["username"] == "system:serviceaccount:kube-system:replicaset-controller"
    assert request["object"]["metadata"]["labels"]["app"] == "web"
    denied = operator.fails("run", "other", "--image=nginx")
    assert denied == (
        'Error from server: admission webhook "guard.acme.io" denied the request: '
        "images must come from registry.acme.io\n"
    )
    operator.kubectl("delete", "validatingwebhookconfiguration", "guard")
    operator.wait(300)
    assert operator.row("deployment", "web")["READY"] == "1/1"


def test_a_webhook_may_change_what_it_is_shown(operator: Operator, webhook: WebhookServer) -> None:
    webhook.answer = patch(
        {"op": "add", "path": "/metadata/labels/injected", "value": "yes"},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:1.28"},
    )
    operator.apply(hook(webhook, "Mutating"))
    operator.kubectl("run", "web", "--image=nginx:1.27")
    operator.wait(15)
    pod = operator.get("pod", "web")
    assert pod["metadata"]["labels"] == {"run": "web", "injected": "yes"}
    assert pod["spec"]["containers"][0]["image"] == "nginx:1.28"
    assert operator.printed_status("web") == "Running"


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_does_not_answer_in_time(operator: Operator, webhook: WebhookServer, policy: str) -> None:
    webhook.delays_replies = True
    operator.apply(hook(webhook, failurePolicy=policy))
    result = operator.run("run", "web", "--image=nginx:1.27")
    if policy == "Ignore":
        assert result.code == 0
        return
    assert result.err == (
        'Error from server (InternalError): Internal error occurred: failed calling webhook "guard.acme.io": '
        f'failed to call webhook: Post "{webhook.url}?timeout=1s": context deadline exceeded\n'
    )
    webhook.delays_replies = False
    operator.kubectl("run", "web", "--image=nginx:1.27")


def test_a_bundle_of_another_authority_is_not_trusted(operator: Operator, webhook: WebhookServer) -> None:
    strange = {**webhook.client_config, "caBundle": bundle_of("other")}
    operator.apply(hook(webhook, clientConfig=strange))
    assert operator.fails("run", "web", "--image=nginx:1.27") == (
        'Error from server (InternalError): Internal error occurred: failed calling webhook "guard.acme.io": '
        f'failed to call webhook: Post "{webhook.url}?timeout=1s": '
        "tls: failed to verify certificate: x509: certificate signed by unknown authority\n"
    )
    operator.apply(hook(webhook))
    operator.kubectl("run", "web", "--image=nginx:1.27")


def test_a_webhook_whose_service_is_gone_stops_every_new_pod(operator: Operator, webhook: WebhookServer) -> None:
    service = {"name": "guard", "namespace": "default", "path": "/check"}
    operator.apply(hook(webhook, clientConfig={"service": service, "caBundle": webhook.client_config["caBundle"]}))
    operator.apply(deployment())
    operator.wait(20)
    failed = (
        'Error creating: Internal error occurred: failed calling webhook "guard.acme.io": failed to call webhook: '
        'Post "https://guard.default.svc:443/check?timeout=1s": '
    )
    assert refusals(operator)[-1] == failed + 'service "guard" not found'
    operator.kubectl("create", "service", "clusterip", "guard", "--tcp=443:8443")
    operator.wait(120)
    address = operator.path("{.spec.clusterIP}", "service", "guard")
    assert refusals(operator)[-1] == failed + f"dial tcp {address}:443: connect: connection refused"
    webhooks = '{"webhooks":[{"name":"guard.acme.io","failurePolicy":"Ignore"}]}'
    operator.kubectl("patch", "validatingwebhookconfiguration", "guard", "-p", webhooks)
    operator.wait(300)
    assert operator.row("deployment", "web")["READY"] == "1/1"


def test_dry_run_needs_a_webhook_without_side_effects(operator: Operator, webhook: WebhookServer) -> None:
    operator.apply(hook(webhook, sideEffects="NoneOnDryRun"))
    operator.kubectl("run", "web", "--image=nginx", "--dry-run=server")
    assert webhook.requests[0]["dryRun"] is True
    assert operator.run("get", "pod", "web").code != 0
