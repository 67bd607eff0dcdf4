"""Programs in pods that use the Kubernetes API: over the pod's network, as the pod's service account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apps.deployed import Deployed, empty_cluster

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def lab() -> Iterator[Deployed]:
    with empty_cluster() as running:
        yield running


def allow(lab: Deployed, account: str, *rules: dict[str, Any]) -> None:
    metadata = {"name": account, "namespace": "default"}
    lab.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    lab.api.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)})
    lab.api.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        }
    )


def rule(group: str, resources: list[str], *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def script(text: str, account: str = "default", image: str = "bitnami/kubectl:latest") -> dict[str, Any]:
    """A pod template that runs a script."""
    container = {"name": "main", "image": image, "command": ["sh", "-c", text]}
    return {"serviceAccountName": account, "restartPolicy": "Never", "containers": [container]}


def run(lab: Deployed, text: str, account: str = "default", image: str = "bitnami/kubectl:latest") -> str:
    spec = script(text, account, image)
    lab.api.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "default"}, "spec": spec}
    )
    lab.wait(60)
    return lab.api.logs("job", "default")


def deployment(lab: Deployed, name: str = "web") -> None:
    labels = {"app": name}
    container = {"name": "main", "image": "nginx:1.27", "resources": {"limits": {"memory": "128Mi"}}}
    lab.api.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
    )
    lab.wait(20)


def test_a_pod_may_do_what_its_account_may(lab: Deployed) -> None:
    deployment(lab)
    allow(lab, "actor", rule("apps", ["deployments", "deployments/scale"], "get", "list", "patch"))
    output = run(
        lab,
        """
        kubectl get deployments -o name
        kubectl scale deployment/web --replicas=3
        kubectl label deployment web tier=front
        kubectl annotate deployment web example.com/note=hello
        kubectl patch deployment web -p '{"spec":{"minReadySeconds":1}}'
        kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.labels.tier}{"\\n"}'
        kubectl rollout restart deployment/web
        kubectl delete deployment web
        """,
        "actor",
    )
    assert output.splitlines() == [
        "deployment.apps/web",
        "deployment.apps/web scaled",
        "deployment.apps/web labeled",
        "deployment.apps/web annotated",
        "deployment.apps/web patched",
        "3 front",
        "deployment.apps/web restarted",
        'Error from server (Forbidden): deployments.apps "web" is forbidden: User '
        '"system:serviceaccount:default:actor" cannot delete resource "deployments" in API group "apps" in the '
        'namespace "default"',
    ]
    assert lab.api.get("deployments", "web", "default")["status"]["replicas"] == 3


def test_objects_are_applied_listed_and_deleted(lab: Deployed) -> None:
    allow(lab, "actor", rule("", ["configmaps"], "*"))
    output = run(
        lab,
        """
        manifest='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made","labels":{"by":"job"}},"data":{"a":"b"}}'
        echo "$manifest" | kubectl apply -f -
        echo "$manifest" | kubectl apply -f -
        kubectl get configmaps -l by=job
        kubectl get cm -l by=job -o jsonpath='{range .items[*]}{.metadata.name}={.data.a}{"\\n"}{end}'
        kubectl delete configmap made
        kubectl get configmap made
        kubectl get gadgets
        """,
        "actor",
    )
    lines = output.splitlines()
    assert lines[:2] == ["configmap/made created", "configmap/made unchanged"]
    assert [line.split()[:2] for line in lines[2:4]] == [["NAME", "DATA"], ["made", "1"]]
    assert lines[4:] == [
        "made=b",
        'configmap "made" deleted from default namespace',
        'Error from server (NotFound): configmaps "made" not found',
        'error: the server doesn\'t have a resource type "gadgets"',
    ]


def test_a_nightly_job_takes_memory_away_again_and_again(lab: Deployed) -> None:
    deployment(lab)
    allow(lab, "updater", rule("apps", ["deployments"], "get", "patch"))
    patch = '{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"limits":{"memory":"4Mi"}}}]}}}}'
    job = {"template": {"spec": script(f"kubectl patch deployment web -p '{patch}'", "updater")}}
    lab.api.create(
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "updater", "namespace": "default"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}},
        }
    )

    def limit() -> str:
        found = lab.api.get("deployments", "web", "default")["spec"]["template"]["spec"]["containers"][0]
        return str(found["resources"]["limits"]["memory"])

    lab.wait(90)
    assert limit() == "4Mi"
    states = [pod["status"]["containerStatuses"][0] for pod in lab.pods("default", "app=web").values()]
    assert any(state["lastState"].get("terminated", {}).get("reason") == "OOMKilled" for state in states)
    healed = [{"name": "main", "resources": {"limits": {"memory": "128Mi"}}}]
    lab.api.patch("deployments", "web", {"spec": {"template": {"spec": {"containers": healed}}}}, "default")
    lab.wait(90)
    assert limit() == "4Mi", "the actor is still there"


def test_a_controller_in_a_pod_clears_finalizers_while_it_may(lab: Deployed) -> None:
    going = "{.items[?(@.metadata.deletionTimestamp)].metadata.name}"
    loop = f"""
    while true; do
      for name in $(kubectl get configmaps -l guarded=yes -o jsonpath='{going}'); do
        kubectl patch configmap "$name" --type=merge -p '{{"metadata":{{"finalizers":null}}}}'
      done
      sleep 5
    done
    """
    allow(lab, "guard", rule("", ["configmaps"], "get", "list"))
    metadata = {"name": "guard", "namespace": "default"}
    lab.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": script(loop, "guard")})
    guarded = {"name": "thing", "namespace": "default", "labels": {"guarded": "yes"}, "finalizers": ["acme.io/guard"]}
    lab.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": guarded})
    lab.api.delete("configmaps", "thing", "default")
    lab.wait(60)
    assert lab.api.get("configmaps", "thing", "default")["metadata"]["deletionTimestamp"]
    assert 'cannot patch resource "configmaps"' in lab.api.logs("guard", "default")
    lab.api.patch("roles", "guard", {"rules": [rule("", ["configmaps"], "get", "list", "patch")]}, "default")
    lab.wait(20)
    assert lab.api.find("configmaps", "thing", "default") is None


def test_a_policy_against_all_egress_cuts_a_pod_off_the_api(lab: Deployed) -> None:
    policy = {"podSelector": {}, "policyTypes": ["Egress"], "egress": []}
    metadata = {"name": "none", "namespace": "default"}
    lab.api.create(
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": policy}
    )
    assert "Unable to connect to the server: dial tcp 10.96.0.1:443: i/o timeout" in run(lab, "kubectl get pods")


def test_a_pod_without_a_token_has_no_way_in(lab: Deployed) -> None:
    spec = {**script("kubectl get pods"), "automountServiceAccountToken": False}
    lab.api.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "default"}, "spec": spec}
    )
    lab.wait(20)
    assert "localhost:8080 was refused" in lab.api.logs("job", "default")


def test_curl_reaches_the_api_and_trusts_it(lab: Deployed) -> None:
    output = run(
        lab,
        """
        account=/var/run/secrets/kubernetes.io/serviceaccount
        token="Authorization: Bearer $(cat $account/token)"
        curl -sS --cacert $account/ca.crt -H "$token" https://kubernetes.default.svc/api/v1/namespaces/default/pods
        curl -sS -k https://kubernetes.default.svc/api/v1/namespaces/default/pods
        """,
        image="curlimages/curl:8.10.1",
    )
    assert 'cannot list resource \\"pods\\"' in output
    assert '"message":"Unauthorized"' in output


def test_the_api_servers_own_pod_stays_well(lab: Deployed) -> None:
    lab.wait(300)
    (pod,) = lab.pods("kube-system", "component=kube-apiserver").values()
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_the_same_seed_gives_the_same_operator() -> None:
    from tests.apps.deployed import deployed

    logs = []
    for _ in range(2):
        with deployed("fleetcast", seed=11, secret="a fixed secret for this test") as fleet:
            fleet.wait(60)
            logs.append(fleet.log("tidb-operator", "app.kubernetes.io/component=controller-manager"))
    assert logs[0] == logs[1]
    assert logs[0]
