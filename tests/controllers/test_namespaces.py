"""Namespaces: what each is given, and how one ends."""

from __future__ import annotations

from base64 import b64decode

from srearena.cluster.embedded.objects import annotations_of, uid_of
from tests.controllers.stage import Stage, template, workload


def test_every_namespace_gets_an_account_and_the_certificate() -> None:
    stage = Stage()
    stage.world.root_certificate = "-----BEGIN CERTIFICATE-----\n"
    stage.create("namespaces", {"metadata": {"name": "shop"}})
    stage.advance(1)
    assert stage.get("serviceaccounts", "shop/default") is not None
    published = stage.the("configmaps", "shop/kube-root-ca.crt")
    assert published["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----\n"}
    assert annotations_of(published)["kubernetes.io/description"].startswith("Contains a CA bundle that can be used")
    stage.delete("serviceaccounts", "shop/default")
    stage.edit("configmaps", "shop/kube-root-ca.crt", lambda obj: obj.update(data={"ca.crt": "forged"}))
    stage.advance(1)
    assert stage.get("serviceaccounts", "shop/default") is not None
    assert stage.the("configmaps", "shop/kube-root-ca.crt")["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----\n"}


def test_deleting_a_namespace_empties_it_pods_first(stage: Stage) -> None:
    stage.create("namespaces", {"metadata": {"name": "shop"}})
    stage.advance(1)
    body = workload(replicas=2)
    body["metadata"]["namespace"] = "shop"
    stage.create("deployments.apps", body)
    stage.advance(5)
    stage.delete("namespaces", "shop")
    assert stage.the("namespaces", "shop")["status"]["phase"] == "Terminating"
    stage.advance(5.5)
    assert stage.get("configmaps", "shop/kube-root-ca.crt") is not None  # pods are waited for
    found = stage.condition("namespaces", "shop", "NamespaceContentRemaining")
    assert found == ("True", "SomeResourcesRemain", "Some resources are remaining: pods. has 2 resource instances")
    stage.advance(20)
    assert stage.get("namespaces", "shop") is None
    assert [r for r in stage.world.store.resources() if stage.list(r, "shop")] == []


def test_a_finalizer_keeps_a_namespace_terminating_and_says_so(stage: Stage) -> None:
    stage.create("namespaces", {"metadata": {"name": "shop"}})
    stage.create("configmaps", {"metadata": {"name": "held", "namespace": "shop", "finalizers": ["example.com/hold"]}})
    stage.advance(1)
    stage.delete("namespaces", "shop")
    stage.advance(60)
    namespace = stage.the("namespaces", "shop")
    told = {c["type"]: (c["status"], c["reason"], c["message"]) for c in namespace["status"]["conditions"]}
    assert told == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ),
    }
    stage.edit("configmaps", "shop/held", lambda obj: obj["metadata"].update(finalizers=[]))
    stage.advance(20)
    assert stage.get("namespaces", "shop") is None


def test_nothing_new_is_made_in_a_namespace_that_ends(stage: Stage) -> None:
    stage.create("namespaces", {"metadata": {"name": "shop"}})
    stage.create("configmaps", {"metadata": {"name": "held", "namespace": "shop", "finalizers": ["example.com/hold"]}})
    body = workload(replicas=1)
    body["metadata"]["namespace"] = "shop"
    stage.create("deployments.apps", body)
    stage.advance(5)
    stage.delete("namespaces", "shop")
    stage.advance(60)
    assert stage.list("pods", "shop") == []
    assert stage.list("serviceaccounts", "shop") == []


def test_a_token_secret_is_filled_and_goes_with_its_account(stage: Stage) -> None:
    account = stage.create("serviceaccounts", {"metadata": {"name": "robot"}})
    secret = {
        "metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    }
    stage.create("secrets", secret)
    stage.advance(1)
    filled = stage.the("secrets", "robot-token")
    assert annotations_of(filled)["kubernetes.io/service-account.uid"] == uid_of(account)
    assert b64decode(filled["data"]["namespace"]) == b"default"
    assert b64decode(filled["data"]["token"]).count(b".") == 2
    assert "ca.crt" in filled["data"]
    stage.delete("serviceaccounts", "robot")
    stage.advance(1)
    assert stage.get("secrets", "robot-token") is None


def test_aggregated_roles_collect_rules(stage: Stage) -> None:
    roles = "clusterroles.rbac.authorization.k8s.io"
    selectors = [{"matchLabels": {"to": "viewer"}}]
    stage.create(
        roles, {"metadata": {"name": "viewer"}, "rules": [], "aggregationRule": {"clusterRoleSelectors": selectors}}
    )
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    stage.create(roles, {"metadata": {"name": "part", "labels": {"to": "viewer"}}, "rules": [rule]})
    stage.advance(1)
    assert stage.the(roles, "viewer")["rules"] == [rule]
    stage.delete(roles, "part")
    stage.advance(1)
    assert not stage.the(roles, "viewer").get("rules")


def test_ephemeral_volumes_get_claims_that_go_with_the_pod(stage: Stage) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
    pod = stage.create("pods", {"metadata": {"name": "user"}, "spec": template(volumes=volumes)["spec"]})
    stage.advance(2)
    made = stage.the("persistentvolumeclaims", "user-scratch")
    assert made["metadata"]["ownerReferences"][0]["uid"] == uid_of(pod)
    stage.delete("pods", "user")
    stage.advance(5)
    assert stage.get("persistentvolumeclaims", "user-scratch") is None
