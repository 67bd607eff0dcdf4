"""ReplicaSets and ReplicationControllers: counting, choosing, adopting, failing."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.controllers.pod_sets import deletion_order
from srearena.cluster.embedded.durations import format_time, parse_time
from srearena.cluster.embedded.objects import Obj, name_of, uid_of
from tests.controllers.bench import START, Bench, template, workload

SETS = "replicasets.apps"


def test_it_makes_the_pods_that_are_missing(bench: Bench) -> None:
    bench.create(SETS, workload("web", replicas=3))
    bench.advance(5)
    pods = bench.pods()
    assert len(pods) == 3
    owner = bench.the(SETS, "web")
    assert pods[0]["metadata"]["generateName"] == "web-"
    assert pods[0]["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": uid_of(owner),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert owner["status"] == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }
    events = bench.events(SETS, "web")
    assert sorted(events) == sorted(("Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}") for pod in pods)
    assert bench.sources("SuccessfulCreate") == {"replicaset-controller"}


def test_a_deleted_pod_is_replaced_at_once(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 30
    bench.create(SETS, workload("web", replicas=2))
    bench.advance(5)
    victim = bench.pods()[0]
    bench.delete("pods", name_of(victim))
    bench.advance(2)
    assert len(bench.pods()) == 3  # the old one is still on its way out
    bench.advance(30)
    assert len(bench.pods()) == 2


def test_pods_that_ended_do_not_count(bench: Bench) -> None:
    bench.create(SETS, workload("web", replicas=2))
    bench.advance(5)
    bench.finish(bench.pods()[0], "Failed", reason="Evicted")
    bench.advance(5)
    assert len([pod for pod in bench.pods() if pod["status"]["phase"] == "Running"]) == 2
    assert bench.the(SETS, "web")["status"]["replicas"] == 2


def test_orphans_are_adopted_and_strays_let_go(bench: Bench) -> None:
    bench.create("pods", {"metadata": {"name": "lone", "labels": {"app": "web"}}, "spec": template()["spec"]})
    bench.advance(3)
    bench.create(SETS, workload("web", replicas=2))
    bench.advance(5)
    assert len(bench.pods()) == 2
    lone = bench.the("pods", "lone")
    assert lone["metadata"]["ownerReferences"][0]["name"] == "web"
    bench.edit("pods", "lone", lambda pod: pod["metadata"]["labels"].update(app="else"))
    bench.advance(5)
    assert "ownerReferences" not in bench.the("pods", "lone")["metadata"]
    assert len(bench.pods(app="web")) == 2


def test_a_refused_template_is_tried_again_later_and_later(bench: Bench) -> None:
    bench.create("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    bench.advance(2)
    bench.create(SETS, workload("web", replicas=3))
    bench.advance(20)
    tries = [event for event in bench.list("events") if event["reason"] == "FailedCreate"]
    (kind, reason, message), *_ = bench.events(SETS, "web")
    assert (kind, reason) == ("Warning", "FailedCreate")
    assert message.startswith('Error creating: pods "web-')
    assert message.endswith("is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0")
    assert 8 <= sum(event["count"] for event in tries) <= 16  # 5 ms, 10 ms, 20 ms ...
    first = bench.condition(SETS, "web", "ReplicaFailure")
    assert first is not None
    assert first[:2] == ("True", "FailedCreate")
    bench.advance(200)
    assert bench.condition(SETS, "web", "ReplicaFailure") == first


def test_scaling_down_takes_the_unready_first(bench: Bench) -> None:
    bench.kubelets.fails = lambda pod: len(bench.pods()) == 3 and name_of(pod) == name_of(bench.pods()[1])
    bench.create(SETS, workload("web", replicas=3))
    bench.advance(5)
    broken = next(pod for pod in bench.pods() if not _is_ready(pod))
    bench.change(SETS, "web", spec__replicas=2)
    bench.advance(5)
    assert uid_of(broken) not in {uid_of(pod) for pod in bench.pods()}
    assert ("Normal", "SuccessfulDelete", f"Deleted pod: {name_of(broken)}") in bench.events(SETS, "web")


def test_pods_sharing_a_node_go_before_pods_that_are_alone(bench: Bench) -> None:
    bench.create(SETS, workload("web", replicas=4))  # three nodes: one has two
    bench.advance(5)
    nodes = [pod["spec"]["nodeName"] for pod in bench.pods()]
    crowded = next(node for node in nodes if nodes.count(node) == 2)
    bench.change(SETS, "web", spec__replicas=3)
    bench.advance(5)
    assert sorted(pod["spec"]["nodeName"] for pod in bench.pods()) == ["node-1", "node-2", "node-3"]
    assert crowded in nodes


def test_a_deletion_cost_makes_a_pod_stay(bench: Bench) -> None:
    bench.create(SETS, workload("web", replicas=3))
    bench.advance(5)
    dear = bench.pods()[2]
    note = {"controller.kubernetes.io/pod-deletion-cost": "100"}
    bench.edit("pods", name_of(dear), lambda pod: pod["metadata"].setdefault("annotations", {}).update(note))
    bench.change(SETS, "web", spec__replicas=1)
    bench.advance(5)
    assert [uid_of(pod) for pod in bench.pods()] == [uid_of(dear)]


def test_min_ready_seconds_are_waited_for_to_the_second(bench: Bench) -> None:
    bench.create(SETS, workload("web", replicas=2, minReadySeconds=20))
    bench.advance(3)
    assert bench.the(SETS, "web")["status"]["readyReplicas"] == 2
    ready_at = max(parse_time(c["lastTransitionTime"]) for pod in bench.pods() for c in pod["status"]["conditions"])
    bench.advance(ready_at + 19.9 - bench.world.clock.now)
    assert bench.the(SETS, "web")["status"].get("availableReplicas") is None
    bench.advance(0.3)
    assert bench.the(SETS, "web")["status"]["availableReplicas"] == 2


def test_a_replication_controller_does_the_same_under_its_own_name(bench: Bench) -> None:
    body = {"metadata": {"name": "old"}, "spec": {"replicas": 2, "selector": {"app": "web"}, "template": template()}}
    bench.create("replicationcontrollers", body)
    bench.advance(5)
    assert len(bench.pods()) == 2
    assert bench.sources("SuccessfulCreate") == {"replication-controller"}
    assert bench.the("replicationcontrollers", "old")["status"]["readyReplicas"] == 2


def _is_ready(pod: Obj) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])


def _pod(name: str, **parts: object) -> Obj:
    age = parts.get("age", 100)
    assert isinstance(age, int)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(START - age)}
    pod: Obj = {
        "metadata": {"name": name, "uid": name, "creationTimestamp": format_time(START - age)},
        "spec": {"nodeName": parts.get("node", "node-1")},
        "status": {"phase": parts.get("phase", "Running"), "conditions": [ready] if parts.get("ready", True) else []},
    }
    if parts.get("restarts"):
        pod["status"]["containerStatuses"] = [{"name": "c", "restartCount": parts["restarts"]}]
    return pod


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_pod("a", node=""), _pod("b", ready=False)),
        (_pod("a", phase="Pending"), _pod("b")),
        (_pod("a", ready=False), _pod("b")),
        (_pod("a", age=10), _pod("b", age=1000)),
        (_pod("z", restarts=3), _pod("b")),
        (_pod("a", age=100), _pod("b", age=101)),  # of an age: chance decides
    ],
)
def test_who_goes_first(first: Obj, second: Obj) -> None:
    for pods in ([first, second], [second, first]):
        assert [name_of(pod) for pod in deletion_order(pods, START)] == [name_of(first), name_of(second)]
