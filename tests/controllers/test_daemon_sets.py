"""DaemonSets: every node that should have a pod has one, and updates go node by node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj, dig, is_terminating, labels_of, name_of, uid_of
from tests.controllers.bench import Bench, template, workload

DAEMONS = "daemonsets.apps"


def make(bench: Bench, **spec: Any) -> None:
    bench.create(DAEMONS, workload("agent", **spec))


def hosts(bench: Bench) -> list[str]:
    return sorted(dig(pod, "spec", "nodeName", default="") for pod in bench.pods())


def set_image(bench: Bench, image: str) -> None:
    bench.edit(DAEMONS, "agent", lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image=image))


def images(bench: Bench) -> Counter[str]:
    return Counter(dig(pod, "spec", "containers", 0, "image") for pod in bench.pods() if not is_terminating(pod))


def test_every_node_gets_a_pod_that_is_tied_to_it(bench: Bench) -> None:
    make(bench)
    bench.advance(5)
    assert hosts(bench) == ["node-1", "node-2", "node-3"]
    pod = next(pod for pod in bench.pods() if pod["spec"]["nodeName"] == "node-2")
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
    (revision,) = bench.list("controllerrevisions.apps")
    assert labels_of(pod)["controller-revision-hash"] == labels_of(revision)["controller-revision-hash"]
    assert name_of(revision) == f"agent-{labels_of(revision)['controller-revision-hash']}"
    assert bench.the(DAEMONS, "agent")["status"] == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "numberAvailable": 3,
        "updatedNumberScheduled": 3,
        "observedGeneration": 1,
    }
    assert bench.sources("SuccessfulCreate") == {"daemonset-controller"}


def test_a_host_network_daemon_also_bears_a_missing_network(bench: Bench) -> None:
    make(bench, template=template(labels={"app": "agent"}, hostNetwork=True))
    bench.advance(2)
    keys = [toleration["key"] for toleration in bench.pods()[0]["spec"]["tolerations"]]
    assert keys[-1] == "node.kubernetes.io/network-unavailable"


def test_a_new_node_gets_its_pod_and_a_cordoned_one_keeps_it(bench: Bench) -> None:
    make(bench)
    bench.advance(5)
    bench.change("nodes", "node-1", spec__unschedulable=True)
    bench.node("node-4")
    bench.advance(5)
    assert hosts(bench) == ["node-1", "node-2", "node-3", "node-4"]


@pytest.mark.parametrize(("effect", "kept"), [("NoSchedule", True), ("NoExecute", False)])
def test_a_taint_nobody_tolerates_keeps_pods_away_or_drives_them_out(bench: Bench, effect: str, kept: bool) -> None:
    make(bench)
    bench.advance(5)
    bench.change("nodes", "node-2", spec__taints=[{"key": "dedicated", "value": "db", "effect": effect}])
    bench.advance(5)
    assert ("node-2" in hosts(bench)) is kept
    status = bench.the(DAEMONS, "agent")["status"]
    assert status["desiredNumberScheduled"] == 2
    assert status["numberMisscheduled"] == (1 if kept else 0)


def test_a_node_selector_chooses_the_nodes(bench: Bench) -> None:
    bench.edit("nodes", "node-3", lambda node: node["metadata"]["labels"].update(disk="ssd"))
    make(bench, template=template(labels={"app": "agent"}, nodeSelector={"disk": "ssd"}))
    bench.advance(5)
    assert hosts(bench) == ["node-3"]
    bench.edit("nodes", "node-1", lambda node: node["metadata"]["labels"].update(disk="ssd"))
    bench.advance(5)
    assert hosts(bench) == ["node-1", "node-3"]
    bench.edit("nodes", "node-3", lambda node: node["metadata"]["labels"].pop("disk"))
    bench.advance(5)
    assert hosts(bench) == ["node-1"]


def test_an_update_replaces_one_pod_at_a_time(bench: Bench) -> None:
    make(bench)
    bench.advance(5)
    set_image(bench, "nginx:1.26")
    fewest = 3
    for _ in range(100):
        bench.advance(0.1)
        fewest = min(fewest, bench.the(DAEMONS, "agent")["status"].get("numberReady", 0))
    assert fewest == 2
    assert images(bench) == {"nginx:1.26": 3}
    assert {labels_of(pod)["pod-template-generation"] for pod in bench.pods()} == {"2"}


def test_a_broken_update_stops_at_the_first_node(bench: Bench) -> None:
    make(bench)
    bench.advance(5)
    bench.kubelets.fails = lambda pod: dig(pod, "spec", "containers", 0, "image") == "nginx:broken"
    set_image(bench, "nginx:broken")
    bench.advance(60)
    assert images(bench) == {"nginx:1.25": 2, "nginx:broken": 1}
    set_image(bench, "nginx:1.25")
    bench.advance(10)
    assert images(bench) == {"nginx:1.25": 3}


def test_a_surge_starts_the_new_pod_beside_the_old_one(bench: Bench) -> None:
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    make(bench, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    bench.advance(5)
    set_image(bench, "nginx:1.26")
    most = 0
    for _ in range(150):
        bench.advance(0.1)
        alive = [pod for pod in bench.pods() if not is_terminating(pod)]
        most = max(most, len(alive))
        ready = [pod for pod in alive if any(c["type"] == "Ready" and c["status"] == "True" for c in _conditions(pod))]
        assert len({pod["spec"]["nodeName"] for pod in ready}) == 3
    assert most == 4
    assert images(bench) == {"nginx:1.26": 3}


def _conditions(pod: Obj) -> list[Obj]:
    found: list[Obj] = dig(pod, "status", "conditions", default=[])
    return found


def test_on_delete_leaves_the_choice_to_the_operator(bench: Bench) -> None:
    make(bench, updateStrategy={"type": "OnDelete"})
    bench.advance(5)
    set_image(bench, "nginx:1.26")
    bench.advance(10)
    assert images(bench) == {"nginx:1.25": 3}
    bench.delete("pods", name_of(bench.pods()[0]))
    bench.advance(5)
    assert images(bench) == {"nginx:1.25": 2, "nginx:1.26": 1}


def test_failed_pods_are_replaced_with_growing_patience(bench: Bench) -> None:
    make(bench)
    bench.advance(5)
    seen: set[str] = set()
    for _ in range(600):
        for pod in bench.pods():
            running = dig(pod, "status", "phase") == "Running" and not is_terminating(pod)
            if running and dig(pod, "spec", "nodeName") == "node-1":
                seen.add(uid_of(pod))
                bench.finish(pod, "Failed", reason="Evicted")
        bench.advance(0.1)
    replaced = len(seen) - 1
    assert 3 <= replaced <= 7  # 1 s, 2 s, 4 s ... within a minute
    messages = [text for _, reason, text in bench.events(DAEMONS, "agent") if reason == "FailedDaemonPod"]
    assert messages[0].startswith("Found failed daemon pod default/agent-")
    assert messages[0].endswith(" on node node-1, will try to kill it")


def test_pods_of_a_node_that_is_gone_are_collected(bench: Bench) -> None:
    make(bench)
    bench.advance(5)
    bench.delete("nodes", "node-3")
    bench.advance(5)
    assert bench.the(DAEMONS, "agent")["status"]["desiredNumberScheduled"] == 2
    bench.advance(60)
    assert hosts(bench) == ["node-1", "node-2"]
