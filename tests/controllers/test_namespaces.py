"""Namespaces: what each is given, and how one ends."""

from __future__ import annotations

from base64 import b64decode

from srearena.cluster.embedded.objects import annotations_of, uid_of
from tests.controllers.bench import Bench, template, workload


def test_every_namespace_gets_an_account_and_the_certificate() -> None:
    bench = Bench()
    bench.world.root_certificate = "-----BEGIN CERTIFICATE-----\n"
    bench.create("namespaces", {"metadata": {"name": "shop"}})
    bench.advance(1)
    assert bench.get("serviceaccounts", "shop/default") is not None
    published = bench.the("configmaps", "shop/kube-root-ca.crt")
    assert published["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----\n"}
    assert annotations_of(published)["kubernetes.io/description"].startswith("Contains a CA bundle that can be used")
    bench.delete("serviceaccounts", "shop/default")
    bench.edit("configmaps", "shop/kube-root-ca.crt", lambda obj: obj.update(data={"ca.crt": "forged"}))
    bench.advance(1)
    assert bench.get("serviceaccounts", "shop/default") is not None
    assert bench.the("configmaps", "shop/kube-root-ca.crt")["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----\n"}


def test_deleting_a_namespace_empties_it_pods_first(bench: Bench) -> None:
    bench.create("namespaces", {"metadata": {"name": "shop"}})
    bench.advance(1)
    body = workload(replicas=2)
    body["metadata"]["namespace"] = "shop"
    bench.create("deployments.apps", body)
    bench.advance(5)
    bench.delete("namespaces", "shop")
    assert bench.the("namespaces", "shop")["status"]["phase"] == "Terminating"
    bench.advance(5.5)
    assert bench.get("configmaps", "shop/kube-root-ca.crt") is not None  # pods are waited for
    found = bench.condition("namespaces", "shop", "NamespaceContentRemaining")
    assert found == ("True", "SomeResourcesRemain", "Some resources are remaining: pods. has 2 resource instances")
    bench.advance(20)
    assert bench.get("namespaces", "shop") is None
    assert [r for r in bench.world.store.resources() if bench.list(r, "shop")] == []


def test_a_finalizer_keeps_a_namespace_terminating_and_says_so(bench: Bench) -> None:
    bench.create("namespaces", {"metadata": {"name": "shop"}})
    bench.create("configmaps", {"metadata": {"name": "held", "namespace": "shop", "finalizers": ["example.com/hold"]}})
    bench.advance(1)
    bench.delete("namespaces", "shop")
    bench.advance(60)
    namespace = bench.the("namespaces", "shop")
    conditions = {c["type"]: (c["status"], c["reason"], c["message"]) for c in namespace["status"]["conditions"]}
    assert conditions == {
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
    bench.edit("configmaps", "shop/held", lambda obj: obj["metadata"].update(finalizers=[]))
    bench.advance(20)
    assert bench.get("namespaces", "shop") is None


def test_nothing_new_is_made_in_a_namespace_that_ends(bench: Bench) -> None:
    bench.create("namespaces", {"metadata": {"name": "shop"}})
    bench.create("configmaps", {"metadata": {"name": "held", "namespace": "shop", "finalizers": ["example.com/hold"]}})
    body = workload(replicas=1)
    body["metadata"]["namespace"] = "shop"
    bench.create("deployments.apps", body)
    bench.advance(5)
    bench.delete("namespaces", "shop")
    bench.advance(60)
    assert bench.list("pods", "shop") == []
    assert bench.list("serviceaccounts", "shop") == []


def test_a_token_secret_is_filled_and_goes_with_its_account(bench: Bench) -> None:
    account = bench.create("serviceaccounts", {"metadata": {"name": "robot"}})
    secret = {
        "metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    }
    bench.create("secrets", secret)
    bench.advance(1)
    filled = bench.the("secrets", "robot-token")
    assert annotations_of(filled)["kubernetes.io/service-account.uid"] == uid_of(account)
    assert b64decode(filled["data"]["namespace"]) == b"default"
    assert b64decode(filled["data"]["token"]).count(b".") == 2
    assert "ca.crt" in filled["data"]
    bench.delete("serviceaccounts", "robot")
    bench.advance(1)
    assert bench.get("secrets", "robot-token") is None


def test_aggregated_roles_collect_rules(bench: Bench) -> None:
    roles = "clusterroles.rbac.authorization.k8s.io"
    selectors = [{"matchLabels": {"to": "viewer"}}]
    bench.create(
        roles, {"metadata": {"name": "viewer"}, "rules": [], "aggregationRule": {"clusterRoleSelectors": selectors}}
    )
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    bench.create(roles, {"metadata": {"name": "part", "labels": {"to": "viewer"}}, "rules": [rule]})
    bench.advance(1)
    assert bench.the(roles, "viewer")["rules"] == [rule]
    bench.delete(roles, "part")
    bench.advance(1)
    assert not bench.the(roles, "viewer").get("rules")


def test_ephemeral_volumes_get_claims_that_go_with_the_pod(bench: Bench) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
    pod = bench.create("pods", {"metadata": {"name": "user"}, "spec": template(volumes=volumes)["spec"]})
    bench.advance(2)
    scratch_claim = bench.the("persistentvolumeclaims", "user-scratch")
    assert scratch_claim["metadata"]["ownerReferences"][0]["uid"] == uid_of(pod)
    bench.delete("pods", "user")
    bench.advance(5)
    assert bench.get("persistentvolumeclaims", "user-scratch") is None
