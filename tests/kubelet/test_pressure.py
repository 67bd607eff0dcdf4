"""When a node runs short: conditions, evictions, and who is spared."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.kubelet.node.resources import share_processor
from srearena.cluster.embedded.machine.machine import NodeSpec
from srearena.cluster.embedded.objects import condition
from tests.kubelet.harness import Lab

MIB = 1024**2
GIB = 1024**3


@pytest.fixture
def lab() -> Lab:
    return Lab(NodeSpec("worker", cpu=2, memory="4Gi", disk="50Gi"))


def use_memory(lab: Lab, name: str, size: int) -> None:
    sandbox = lab.nodes.sandbox("default", name)
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None and record.container.main is not None
    record.container.main.set_memory(size)


def pressure(lab: Lab, kind: str) -> tuple[str, str]:
    node = lab.client.get("nodes", "", "worker")
    assert node is not None
    found = condition(node, kind)
    assert found is not None
    return found["status"], found["reason"]


def test_memory_pressure_evicts_the_one_that_exceeds_its_request_most(lab: Lab) -> None:
    lab.run("modest", resources={"requests": {"memory": "2Gi"}})
    lab.run("greedy", resources={"requests": {"memory": "100Mi"}})
    lab.run("critical", spec={"priority": 2_000_000_001})
    lab.pass_time(8)
    use_memory(lab, "modest", 1500 * MIB)
    use_memory(lab, "greedy", 1400 * MIB)
    use_memory(lab, "critical", 760 * MIB)
    lab.pass_time(15)
    assert pressure(lab, "MemoryPressure") == ("True", "KubeletHasInsufficientMemory")
    status = lab.status("greedy")
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"].startswith("The node was low on resource: memory. Threshold quantity: 100Mi, available: ")
    assert status["message"].endswith(
        "Container main was using 1400Mi, request is 100Mi, has larger consumption of memory. "
    )
    target = condition(lab.pod("greedy"), "DisruptionTarget")
    assert target is not None
    assert target["reason"] == "TerminationByKubelet"
    assert lab.status("modest")["phase"] == "Running"
    assert lab.status("critical")["phase"] == "Running"
    assert lab.messages("worker", "EvictionThresholdMet") == ["Attempting to reclaim memory"]
    assert "Node worker status is now: NodeHasInsufficientMemory" in lab.messages("worker")


def test_the_condition_stays_for_five_minutes(lab: Lab) -> None:
    lab.nodes.access.hold_memory("worker", 4 * GIB - 400 * MIB)
    lab.pass_time(15)
    assert pressure(lab, "MemoryPressure")[0] == "True"
    lab.nodes.access.hold_memory("worker", 0)
    lab.pass_time(270)
    assert pressure(lab, "MemoryPressure")[0] == "True"
    lab.pass_time(45)
    assert pressure(lab, "MemoryPressure") == ("False", "KubeletHasSufficientMemory")


def test_under_memory_pressure_only_best_effort_pods_are_refused(lab: Lab) -> None:
    lab.nodes.access.hold_memory("worker", 4 * GIB - 480 * MIB)
    lab.pass_time(15)
    lab.run("effort")
    lab.run("burstable", resources={"requests": {"memory": "10Mi"}})
    lab.pass_time(3)
    status = lab.status("effort")
    assert (status["reason"], status["message"]) == (
        "Evicted",
        "Pod was rejected: The node had condition: [MemoryPressure]. ",
    )
    assert lab.status("burstable")["phase"] != "Failed"


def test_a_full_disk_costs_images_first_and_then_pods(lab: Lab) -> None:
    lab.run("old", "acme/large:1.0", command=["true"], spec={"restartPolicy": "Never"})
    lab.run("web")
    lab.pass_time(30)
    lab.delete("old")
    lab.nodes.access.fill_disk("worker", 0.855)
    lab.pass_time(15)
    names = [str(image.reference) for image in lab.kubelet.machine.images.images()]
    assert "docker.io/acme/large:1.0" not in names
    assert "docker.io/acme/server:1.0" in names
    assert lab.status("web")["phase"] == "Running"
    lab.nodes.access.fill_disk("worker", 0.95)
    lab.pass_time(15)
    assert pressure(lab, "DiskPressure") == ("True", "KubeletHasDiskPressure")
    status = lab.status("web")
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"].startswith("The node was low on resource: ephemeral-storage. Threshold quantity: ")
    lab.run("late")
    lab.pass_time(3)
    assert lab.status("late")["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "
    lab.nodes.access.fill_disk("worker", 0)
    lab.pass_time(330)
    assert pressure(lab, "DiskPressure") == ("False", "KubeletHasNoDiskPressure")
    lab.run("after")
    lab.pass_time(8)
    assert lab.is_ready("after")


def test_a_full_disk_fails_writes_and_pulls(lab: Lab) -> None:
    script = "sleep 10; echo x > /file; sleep 9999"
    lab.run("writer", "busybox:1.36", command=["sh", "-c", script], spec={"priority": 2_000_000_001})
    lab.pass_time(6)
    lab.nodes.access.fill_disk("worker", 1.0)
    lab.run("puller", "redis:7")
    lab.pass_time(3)
    assert lab.waiting("puller")[1].endswith("no space left on device")
    # Nobody removes images any more, so the disk stays full.
    lab.nodes.access.stop_kubelet("worker")
    lab.nodes.access.fill_disk("worker", 1.0)
    lab.pass_time(10)
    assert "No space left on device" in lab.log("writer")


def test_when_all_memory_is_gone_the_kernel_kills(lab: Lab) -> None:
    lab.run("guaranteed", resources={"limits": {"cpu": "1", "memory": "2Gi"}})
    lab.run("effort")
    lab.pass_time(8)
    use_memory(lab, "guaranteed", 1800 * MIB)
    use_memory(lab, "effort", 2200 * MIB)
    lab.pass_time(12)
    assert lab.messages("worker", "SystemOOM")[0].startswith("System OOM encountered, victim process: ")
    ended = lab.container("effort")
    assert (ended["lastState"] or ended["state"])["terminated"]["reason"] == "OOMKilled"
    assert lab.container("guaranteed")["restartCount"] == 0


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ((), "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "),
        (("8Mi",), 'Container main exceeded its local ephemeral storage limit "2Mi". '),
    ],
)
def test_storage_limits_of_containers(lab: Lab, others: tuple[str, ...], message: str) -> None:
    """The limits of a pod's containers together are looked at before those of each."""
    writing = ["sh", "-c", "dd if=/dev/zero of=/big bs=1048576 count=3 2>/dev/null; sleep 9999"]
    rows = [("main", writing, "2Mi"), *((f"other-{n}", ["sleep", "9999"], limit) for n, limit in enumerate(others))]
    containers = [
        {
            "name": name,
            "image": "busybox:1.36",
            "command": command,
            "resources": {"limits": {"ephemeral-storage": limit}},
        }
        for name, command, limit in rows
    ]
    lab.run_all("web", containers)
    lab.pass_time(30)
    assert lab.status()["message"] == message


def test_processor_is_shared_by_request(lab: Lab) -> None:
    lab.run("big", resources={"requests": {"cpu": "1500m"}})
    lab.run("small", resources={"requests": {"cpu": "500m"}})
    lab.pass_time(8)
    meters = {}
    for name in ("big", "small"):
        sandbox = lab.nodes.sandbox("default", name)
        assert sandbox is not None
        record = sandbox.latest("main")
        assert record is not None and record.container is not None
        meters[name] = record.container.meter
        meters[name].load("work", 2.0)
    assert share_processor(lab.kubelet.machine)
    assert meters["big"].granted_cores == pytest.approx(1.5, rel=0.01)
    assert meters["small"].granted_cores == pytest.approx(0.5, rel=0.01)
    meters["big"].load("work", 0.2)
    assert share_processor(lab.kubelet.machine)
    assert meters["small"].granted_cores == pytest.approx(1.8, rel=0.01)
    meters["small"].load("work", 0.2)
    assert not share_processor(lab.kubelet.machine)
    assert meters["small"].available_cores is None


def test_a_kubelet_that_is_told_to_keep_the_disk_free_sees_pressure_where_there_is_room(lab: Lab) -> None:
    lab.run("idle")
    lab.pass_time(20)
    assert pressure(lab, "DiskPressure")[0] == "False"
    lab.nodes.access.reserve_disk("worker", 0.98)
    lab.pass_time(60)
    assert pressure(lab, "DiskPressure") == ("True", "KubeletHasDiskPressure")
    assert lab.status("idle")["reason"] == "Evicted"
    lab.nodes.access.reserve_disk("worker", 0.0)
    lab.pass_time(330)
    assert pressure(lab, "DiskPressure")[0] == "False"
