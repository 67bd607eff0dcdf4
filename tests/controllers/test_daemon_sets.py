"""DaemonSets: every node that should have a pod has one, and updates go node by node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj, dig, is_terminating, labels_of, name_of, uid_of
from tests.controllers.stage import Stage, template, workload

DAEMONS = "daemonsets.apps"


def make(stage: Stage, **spec: Any) -> None:
    stage.create(DAEMONS, workload("agent", **spec))


def hosts(stage: Stage) -> list[str]:
    return sorted(dig(pod, "spec", "nodeName", default="") for pod in stage.pods())


def set_image(stage: Stage, image: str) -> None:
    stage.edit(DAEMONS, "agent", lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image=image))


def images(stage: Stage) -> Counter[str]:
    return Counter(dig(pod, "spec", "containers", 0, "image") for pod in stage.pods() if not is_terminating(pod))


def test_every_node_gets_a_pod_that_is_tied_to_it(stage: Stage) -> None:
    make(stage)
    stage.advance(5)
    assert hosts(stage) == ["node-1", "node-2", "node-3"]
    pod = next(pod for pod in stage.pods() if pod["spec"]["nodeName"] == "node-2")
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}
    ]
    assert [(t["key"].partition("/")[2], t["effect"]) for t in pod["spec"]["tolerations"]] == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]
    assert labels_of(pod)["pod-template-generation"] == "1"
    (revision,) = stage.list("controllerrevisions.apps")
    assert labels_of(pod)["controller-revision-hash"] == labels_of(revision)["controller-revision-hash"]
    assert name_of(revision) == f"agent-{labels_of(revision)['controller-revision-hash']}"
    assert stage.the(DAEMONS, "agent")["status"] == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "numberAvailable": 3,
        "updatedNumberScheduled": 3,
        "observedGeneration": 1,
    }
    assert stage.sources("SuccessfulCreate") == {"daemonset-controller"}


def test_a_host_network_daemon_also_bears_a_missing_network(stage: Stage) -> None:
    make(stage, template=template(labels={"app": "agent"}, hostNetwork=True))
    stage.advance(2)
    keys = [toleration["key"] for toleration in stage.pods()[0]["spec"]["tolerations"]]
    assert keys[-1] == "node.kubernetes.io/network-unavailable"


def test_a_new_node_gets_its_pod_and_a_cordoned_one_keeps_it(stage: Stage) -> None:
    make(stage)
    stage.advance(5)
    stage.change("nodes", "node-1", spec__unschedulable=True)
    stage.node("node-4")
    stage.advance(5)
    assert hosts(stage) == ["node-1", "node-2", "node-3", "node-4"]


@pytest.mark.parametrize(("effect", "kept"), [("NoSchedule", True), ("NoExecute", False)])
def test_a_taint_nobody_tolerates_keeps_pods_away_or_drives_them_out(stage: Stage, effect: str, kept: bool) -> None:
    make(stage)
    stage.advance(5)
    stage.change("nodes", "node-2", spec__taints=[{"key": "dedicated", "value": "db", "effect": effect}])
    stage.advance(5)
    assert ("node-2" in hosts(stage)) is kept
    status = stage.the(DAEMONS, "agent")["status"]
    assert status["desiredNumberScheduled"] == 2
    assert status["numberMisscheduled"] == (1 if kept else 0)


def test_a_node_selector_chooses_the_nodes(stage: Stage) -> None:
    stage.edit("nodes", "node-3", lambda node: node["metadata"]["labels"].update(disk="ssd"))
    make(stage, template=template(labels={"app": "agent"}, nodeSelector={"disk": "ssd"}))
    stage.advance(5)
    assert hosts(stage) == ["node-3"]
    stage.edit("nodes", "node-1", lambda node: node["metadata"]["labels"].update(disk="ssd"))
    stage.advance(5)
    assert hosts(stage) == ["node-1", "node-3"]
    stage.edit("nodes", "node-3", lambda node: node["metadata"]["labels"].pop("disk"))
    stage.advance(5)
    assert hosts(stage) == ["node-1"]


def test_an_update_replaces_one_pod_at_a_time(stage: Stage) -> None:
    make(stage)
    stage.advance(5)
    set_image(stage, "nginx:1.26")
    fewest = 3
    for _ in range(100):
        stage.advance(0.1)
        fewest = min(fewest, stage.the(DAEMONS, "agent")["status"].get("numberReady", 0))
    assert fewest == 2
    assert images(stage) == {"nginx:1.26": 3}
    assert {labels_of(pod)["pod-template-generation"] for pod in stage.pods()} == {"2"}


def test_a_broken_update_stops_at_the_first_node(stage: Stage) -> None:
    make(stage)
    stage.advance(5)
    stage.kubelets.fails = lambda pod: dig(pod, "spec", "containers", 0, "image") == "nginx:broken"
    set_image(stage, "nginx:broken")
    stage.advance(60)
    assert images(stage) == {"nginx:1.25": 2, "nginx:broken": 1}
    set_image(stage, "nginx:1.25")
    stage.advance(10)
    assert images(stage) == {"nginx:1.25": 3}


def test_a_surge_starts_the_new_pod_beside_the_old_one(stage: Stage) -> None:
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    make(stage, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    stage.advance(5)
    set_image(stage, "nginx:1.26")
    most = 0
    for _ in range(150):
        stage.advance(0.1)
        alive = [pod for pod in stage.pods() if not is_terminating(pod)]
        most = max(most, len(alive))
        ready = [pod for pod in alive if any(c["type"] == "Ready" and c["status"] == "True" for c in _conditions(pod))]
        assert len({pod["spec"]["nodeName"] for pod in ready}) == 3
    assert most == 4
    assert images(stage) == {"nginx:1.26": 3}


def _conditions(pod: Obj) -> list[Obj]:
    found: list[Obj] = dig(pod, "status", "conditions", default=[])
    return found


def test_on_delete_leaves_the_choice_to_the_operator(stage: Stage) -> None:
    make(stage, updateStrategy={"type": "OnDelete"})
    stage.advance(5)
    set_image(stage, "nginx:1.26")
    stage.advance(10)
    assert images(stage) == {"nginx:1.25": 3}
    stage.delete("pods", name_of(stage.pods()[0]))
    stage.advance(5)
    assert images(stage) == {"nginx:1.25": 2, "nginx:1.26": 1}


def test_failed_pods_are_replaced_with_growing_patience(stage: Stage) -> None:
    make(stage)
    stage.advance(5)
    seen: set[str] = set()
    for _ in range(600):
        for pod in stage.pods():
            running = dig(pod, "status", "phase") == "Running" and not is_terminating(pod)
            if running and dig(pod, "spec", "nodeName") == "node-1":
                seen.add(uid_of(pod))
                stage.finish(pod, "Failed", reason="Evicted")
        stage.advance(0.1)
    replaced = len(seen) - 1
    assert 3 <= replaced <= 7  # 1 s, 2 s, 4 s ... within a minute
    told = [text for _, reason, text in stage.events(DAEMONS, "agent") if reason == "FailedDaemonPod"]
    assert told[0].startswith("Found failed daemon pod default/agent-")
    assert told[0].endswith(" on node node-1, will try to kill it")


def test_pods_of_a_node_that_is_gone_are_collected(stage: Stage) -> None:
    make(stage)
    stage.advance(5)
    stage.delete("nodes", "node-3")
    stage.advance(5)
    assert stage.the(DAEMONS, "agent")["status"]["desiredNumberScheduled"] == 2
    stage.advance(60)
    assert hosts(stage) == ["node-1", "node-2"]
