"""Objects that do not want to go: finalizers, dependents, namespaces, grace periods."""

from __future__ import annotations

from .operator import Operator


def test_a_finalizer_keeps_an_object_terminating_until_it_is_taken_off(operator: Operator) -> None:
    operator.kubectl("create", "configmap", "kept")
    operator.kubectl("patch", "configmap", "kept", "-p", '{"metadata":{"finalizers":["acme.io/backup"]}}')
    assert "timed out waiting for the condition" in operator.fails("delete", "configmap", "kept", "--timeout=1s")
    found = operator.get("configmap", "kept")
    assert found["metadata"]["deletionTimestamp"]
    assert found["metadata"]["finalizers"] == ["acme.io/backup"]
    refusal = operator.fails("patch", "configmap", "kept", "-p", '{"metadata":{"finalizers":["acme.io/more"]}}')
    assert (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"acme.io/more"}'
    ) in refusal
    operator.kubectl("patch", "configmap", "kept", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "NotFound" in operator.fails("get", "configmap", "kept")


def test_a_pod_with_a_finalizer_ends_but_stays(operator: Operator) -> None:
    operator.kubectl("run", "web", "--image=nginx:1.27")
    operator.kubectl("patch", "pod", "web", "-p", '{"metadata":{"finalizers":["acme.io/drain"]}}')
    operator.wait(10)
    operator.kubectl("delete", "pod", "web", "--wait=false")
    operator.wait(60)
    assert operator.printed_status("web") == "Completed", "its containers are gone all the same"
    terminating = operator.get("pod", "web")
    assert terminating["status"]["phase"] == "Succeeded"
    assert terminating["metadata"]["deletionTimestamp"]
    operator.kubectl("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    operator.wait(1)
    assert operator.run("get", "pod", "web").code != 0


def test_a_namespace_takes_everything_with_it(operator: Operator) -> None:
    operator.kubectl("create", "namespace", "shop")
    operator.kubectl("create", "deployment", "web", "-n", "shop", "--image=nginx:1.27", "--replicas=2")
    operator.kubectl("create", "configmap", "settings", "-n", "shop", "--from-literal=a=b")
    operator.wait(20)
    operator.kubectl("delete", "namespace", "shop", "--wait=false")
    operator.wait(1)
    assert operator.row("namespace", "shop")["STATUS"] == "Terminating"
    refusal = operator.fails("create", "configmap", "late", "-n", "shop")
    assert (
        'configmaps "late" is forbidden: unable to create new content in namespace shop because it is being terminated'
    ) in refusal
    operator.wait(90)
    assert "NotFound" in operator.fails("get", "namespace", "shop")
    assert operator.get("pods", "-n", "shop")["items"] == []


def test_a_namespace_says_what_holds_it_up(operator: Operator) -> None:
    operator.kubectl("create", "namespace", "shop")
    operator.kubectl("create", "configmap", "kept", "-n", "shop")
    finalizer = '{"metadata":{"finalizers":["acme.io/backup"]}}'
    operator.kubectl("patch", "configmap", "kept", "-n", "shop", "-p", finalizer)
    operator.kubectl("delete", "namespace", "shop", "--wait=false")
    operator.wait(60)
    remaining = operator.condition("NamespaceContentRemaining", "namespace", "shop")
    assert (remaining["status"], remaining["reason"]) == ("True", "SomeResourcesRemain")
    assert remaining["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
    finalizers = operator.condition("NamespaceFinalizersRemaining", "namespace", "shop")
    assert (finalizers["status"], finalizers["reason"]) == ("True", "SomeFinalizersRemain")
    assert finalizers["message"] == (
        "Some content in the namespace has finalizers remaining: acme.io/backup in 1 resource instances"
    )
    operator.kubectl(
        "patch", "configmap", "kept", "-n", "shop", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
    )
    operator.wait(30)
    assert "NotFound" in operator.fails("get", "namespace", "shop")


def test_a_namespace_waits_for_an_api_whose_server_is_away(operator: Operator) -> None:
    operator.kubectl("scale", "deployment", "metrics-server", "-n", "kube-system", "--replicas=0")
    operator.kubectl("create", "namespace", "shop")
    operator.wait(10)
    operator.kubectl("delete", "namespace", "shop", "--wait=false")
    operator.wait(30)
    failure = operator.condition("NamespaceDeletionDiscoveryFailure", "namespace", "shop")
    assert (failure["status"], failure["reason"]) == ("True", "DiscoveryFailed")
    assert failure["message"] == (
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1"
    )
    operator.kubectl("scale", "deployment", "metrics-server", "-n", "kube-system", "--replicas=1")
    operator.wait(60)
    assert "NotFound" in operator.fails("get", "namespace", "shop")


def test_some_namespaces_are_there_for_good(operator: Operator) -> None:
    assert 'namespaces "default" is forbidden: this namespace may not be deleted' in operator.fails(
        "delete", "namespace", "default"
    )


def deployed(operator: Operator) -> tuple[str, set[str]]:
    operator.kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=2")
    operator.wait(20)
    [replica_set] = operator.get("rs", "-l", "app=web")["items"]
    return replica_set["metadata"]["name"], {pod["metadata"]["name"] for pod in operator.pods("app=web")}


def test_background_deletion_leaves_nothing_behind(operator: Operator) -> None:
    name, _ = deployed(operator)
    operator.kubectl("delete", "deployment", "web")
    assert operator.run("get", "deployment", "web").code != 0
    operator.wait(60)
    assert operator.run("get", "rs", name).code != 0
    assert operator.pods("app=web") == []


def test_orphans_are_left_and_can_be_adopted(operator: Operator) -> None:
    name, pods = deployed(operator)
    operator.kubectl("delete", "deployment", "web", "--cascade=orphan", "--wait=false")
    operator.wait(5)
    assert operator.run("get", "deployment", "web").code != 0
    assert "ownerReferences" not in operator.get("rs", name)["metadata"]
    assert {pod["metadata"]["name"] for pod in operator.pods("app=web")} == pods
    operator.kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=2")
    operator.wait(20)
    assert {pod["metadata"]["name"] for pod in operator.pods("app=web")} == pods, "the same template, so the same pods"
    [owner] = operator.get("rs", name)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Deployment", "web", True)


def test_foreground_deletion_ends_with_the_owner(operator: Operator) -> None:
    operator.apply("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "busybox:1.36", command: [sh, -c, "trap '' TERM; sleep 3600"]}]
""")
    operator.wait(20)
    operator.kubectl("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
    operator.wait(5)
    terminating = operator.get("deployment", "web")["metadata"]
    assert terminating["finalizers"] == ["foregroundDeletion"]
    assert operator.printed_status(operator.only_pod("app=web")) == "Terminating"
    operator.wait(60)
    assert operator.run("get", "deployment", "web").code != 0
    assert operator.pods("app=web") == []


def test_a_pod_gets_its_grace_period_and_no_more(operator: Operator) -> None:
    operator.kubectl("run", "stubborn", "--image=busybox:1.36", "--", "sh", "-c", "trap '' TERM; sleep 3600")
    operator.wait(10)
    operator.kubectl("delete", "pod", "stubborn", "--wait=false")
    operator.wait(20)
    assert operator.printed_status("stubborn") == "Terminating"
    assert operator.get("pod", "stubborn")["metadata"]["deletionGracePeriodSeconds"] == 30
    assert ("Normal", "Killing", "Stopping container stubborn") in operator.events("stubborn")
    operator.wait(15)
    assert operator.run("get", "pod", "stubborn").code != 0


def test_force_forgets_the_pod_at_once(operator: Operator) -> None:
    operator.kubectl("run", "stubborn", "--image=busybox:1.36", "--", "sh", "-c", "trap '' TERM; sleep 3600")
    operator.wait(10)
    result = operator.run("delete", "pod", "stubborn", "--force", "--grace-period=0")
    assert (
        "Immediate deletion does not wait for confirmation that the running resource has been terminated." in result.err
    )
    assert operator.run("get", "pod", "stubborn").code != 0
