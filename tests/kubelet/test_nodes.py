"""Nodes: how they register, how they show that they live, and what becomes of pods when they do not."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.kubelet.access import UnknownNode
from srearena.cluster.embedded.machine.machine import NodeSpec
from srearena.cluster.embedded.objects import Obj, condition
from tests.kubelet.harness import Lab

LEASES = "leases.coordination.k8s.io"


def node(lab: Lab, name: str = "worker") -> Obj:
    found = lab.client.get("nodes", "", name)
    assert found is not None
    return found


def lease_age(lab: Lab, name: str = "worker") -> float:
    lease = lab.client.get(LEASES, "kube-node-lease", name)
    assert lease is not None
    return lab.clock.now - parse_time(lease["spec"]["renewTime"])


def test_a_node_registers_itself(lab: Lab) -> None:
    found = node(lab)
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == "worker"
    assert found["status"]["capacity"]["cpu"] == "4"
    assert found["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.0"
    assert found["status"]["addresses"][0] == {"type": "InternalIP", "address": "172.18.0.2"}
    ready = condition(found, "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    )
    assert found["spec"]["podCIDR"] == "10.244.0.0/24"


def test_a_control_plane_node_is_labelled_and_tainted() -> None:
    lab = Lab(NodeSpec("control-plane", role="control-plane"), NodeSpec("worker", cpu="8", memory="32Gi"))
    found = node(lab, "control-plane")
    assert "node-role.kubernetes.io/control-plane" in found["metadata"]["labels"]
    assert found["spec"]["taints"] == [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    assert node(lab)["status"]["capacity"]["memory"] == "32Gi"


def test_the_lease_is_renewed_every_ten_seconds(lab: Lab) -> None:
    for _ in range(30):
        lab.pass_time(7)
        assert lease_age(lab) <= 10.1


def test_the_status_is_reported_every_five_minutes_or_on_change(lab: Lab) -> None:
    lab.pass_time(30)
    writes: list[float] = []
    lab.world.on_change("nodes", lambda change: writes.append(lab.clock.now))
    lab.pass_time(1800)
    assert 5 <= len(writes) <= 7
    count = len(writes)
    lab.run(image="redis:7")
    lab.pass_time(20)
    assert len(writes) == count + 1
    names = [name for image in node(lab)["status"]["images"] for name in image["names"]]
    assert "docker.io/library/redis:7" in names


def test_the_status_keeps_extended_resources_that_others_declared(lab: Lab) -> None:
    def declare(capacity: dict[str, str], allocatable: dict[str, str]) -> None:
        status = node(lab)["status"]
        amounts = {
            name: {**{key: value for key, value in status[name].items() if "/" not in key}, **extended}
            for name, extended in (("capacity", capacity), ("allocatable", allocatable))
        }
        lab.client.set_status("nodes", node(lab), {**status, **amounts})
        lab.pass_time(400)

    declare({"example.com/chair": "3"}, {"example.com/chair": "1", "example.com/table": "1"})
    status = node(lab)["status"]
    assert status["capacity"]["example.com/chair"] == status["allocatable"]["example.com/chair"] == "3"
    assert "example.com/table" not in status["allocatable"]
    declare({}, {"example.com/chair": "3"})
    assert "example.com/chair" not in node(lab)["status"]["allocatable"]


def test_without_its_kubelet_a_node_falls_silent_and_pods_run_on(lab: Lab) -> None:
    lab.run(ports=[{"containerPort": 80}])
    lab.pass_time(6)
    lab.nodes.access.stop_kubelet("worker")
    lab.delete()
    lab.pass_time(300)
    assert lease_age(lab) > 290
    assert lab.exists()
    assert lab.nodes.agent.dial_error("worker") == "connect: connection refused"
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None and sandbox.namespace.find(sandbox.address, 80) is not None
    lab.nodes.access.start_kubelet("worker")
    lab.pass_time(5)
    assert not lab.exists()
    assert lab.nodes.agent.dial_error("worker") == ""


def test_a_restarted_kubelet_takes_over_what_runs(lab: Lab) -> None:
    lab.run(ports=[{"containerPort": 80}], readinessProbe={"httpGet": {"port": 80}})
    lab.pass_time(10)
    before = lab.container()
    lab.nodes.access.restart_kubelet("worker")
    lab.pass_time(120)
    assert lab.container() == before
    assert lab.is_ready()


def test_what_crashed_while_the_kubelet_was_away_is_restarted(lab: Lab) -> None:
    lab.run(image="busybox:1.36", command=["sh", "-c", "sleep 60; exit 5"])
    lab.pass_time(10)
    lab.nodes.access.stop_kubelet("worker")
    lab.pass_time(120)
    assert "running" in lab.container()["state"]
    lab.nodes.access.start_kubelet("worker")
    lab.pass_time(5)
    assert lab.container()["restartCount"] == 1
    assert lab.container()["lastState"]["terminated"]["exitCode"] == 5


def test_pods_bound_while_the_kubelet_was_away_start_afterwards(lab: Lab) -> None:
    lab.nodes.access.stop_kubelet("worker")
    lab.run()
    lab.pass_time(60)
    assert "containerStatuses" not in lab.status()
    lab.nodes.access.start_kubelet("worker")
    lab.pass_time(6)
    assert lab.is_ready()


def test_containers_of_pods_deleted_meanwhile_are_removed(lab: Lab) -> None:
    lab.run()
    lab.pass_time(6)
    lab.nodes.access.stop_kubelet("worker")
    lab.delete(grace=0)
    lab.pass_time(10)
    assert lab.kubelet.machine.sandboxes
    lab.nodes.access.start_kubelet("worker")
    lab.pass_time(10)
    assert not lab.kubelet.machine.sandboxes


def test_a_reboot_restarts_every_container_in_a_new_sandbox(lab: Lab) -> None:
    lab.run(spec={"initContainers": [{"name": "setup", "image": "busybox:1.36", "command": ["true"]}]})
    lab.pass_time(8)
    before = lab.container()
    boot = node(lab)["status"]["nodeInfo"]["bootID"]
    lab.nodes.access.reboot("worker", 30)
    lab.pass_time(20)
    assert lab.nodes.agent.dial_error("worker") == "connect: no route to host"
    lab.pass_time(30)
    after = lab.container()
    assert lab.is_ready()
    assert after["containerID"] != before["containerID"]
    assert after["restartCount"] == 1
    last = after["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (255, "Unknown")
    assert lab.container(container="setup")["restartCount"] == 1
    assert lab.messages(reason="SandboxChanged") == ["Pod sandbox changed, it will be killed and re-created."]
    assert node(lab)["status"]["nodeInfo"]["bootID"] != boot
    assert any("has been rebooted, boot id: " in message for message in lab.messages("worker", "Rebooted"))


def test_a_pod_that_never_restarts_is_failed_by_a_reboot(lab: Lab) -> None:
    lab.run(spec={"restartPolicy": "Never"})
    lab.pass_time(6)
    lab.nodes.access.reboot("worker", 10)
    lab.pass_time(30)
    assert lab.status()["phase"] == "Failed"


def test_a_partitioned_node_goes_on_alone_and_catches_up(lab: Lab) -> None:
    lab.run("stays", "busybox:1.36", command=["sh", "-c", "sleep 30; exit 1"])
    lab.run("deleted")
    lab.pass_time(8)
    lab.nodes.access.partition("worker")
    lab.delete("deleted")
    lab.run("new")
    version = lab.pod("stays")["metadata"]["resourceVersion"]
    lab.pass_time(120)
    assert lease_age(lab) > 110
    assert lab.pod("stays")["metadata"]["resourceVersion"] == version
    assert lab.exists("deleted")
    assert lab.nodes.agent.dial_error("worker") == "i/o timeout"
    lab.nodes.access.heal("worker")
    lab.pass_time(8)
    assert lab.container("stays")["restartCount"] >= 1
    assert not lab.exists("deleted")
    assert lab.is_ready("new")
    lab.pass_time(12)
    assert lease_age(lab) < 15


def test_a_skewed_clock_shows_in_what_the_node_says(lab: Lab) -> None:
    lab.nodes.access.set_clock_skew("worker", 3600)
    lab.pass_time(20)
    assert lease_age(lab) < -3000


def test_access_to_a_machine_that_does_not_exist(lab: Lab) -> None:
    with pytest.raises(UnknownNode, match="no node 'nowhere'; there are worker"):
        lab.nodes.access.stop_kubelet("nowhere")


def test_addresses_come_from_the_nodes_range_and_are_given_back() -> None:
    lab = Lab(NodeSpec("worker", pods=300))
    for number in range(260):
        lab.run(f"pod-{number}", "busybox:1.36", command=["sleep", "99999"], spec={"terminationGracePeriodSeconds": 1})
    lab.pass_time(120)
    addresses = [lab.status(f"pod-{number}").get("podIP") for number in range(260)]
    assigned_addresses = [address for address in addresses if address]
    assert len(assigned_addresses) == len(set(assigned_addresses)) == 253
    starved = next(number for number, address in enumerate(addresses) if not address)
    event = lab.events(f"pod-{starved}", "FailedCreatePodSandBox")[0]
    assert "no IP addresses available in range set: 10.244.0.1-10.244.0.254" in event["message"]
    for number in range(10):
        if addresses[number]:
            lab.delete(f"pod-{number}")
    lab.pass_time(60)
    assert sum("podIP" in lab.status(f"pod-{number}") for number in range(10, 260)) == 250


def test_an_empty_dir_survives_the_kubelet_and_on_disk_the_machine(lab: Lab) -> None:
    mounts = [{"name": "disk", "mountPath": "/disk"}, {"name": "memory", "mountPath": "/memory"}]
    script = "cat /disk/x /memory/x; echo kept > /disk/x; echo kept > /memory/x; sleep 9999"
    volumes = [{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}]
    lab.run(image="busybox:1.36", command=["sh", "-c", script], volumeMounts=mounts, spec={"volumes": volumes})
    lab.pass_time(8)
    lab.nodes.access.restart_kubelet("worker")
    lab.pass_time(5)
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None
    record.container.kill()
    lab.pass_time(5)
    assert lab.log() == "kept\nkept\n"
    lab.nodes.access.reboot("worker", 10)
    lab.pass_time(40)
    assert lab.log() == "kept\ncat: can't open '/memory/x': No such file or directory\n"


def test_a_hanging_hook_does_not_hold_up_the_deletion(lab: Lab) -> None:
    lab.run(lifecycle={"postStart": {"exec": {"command": ["sleep", "99999"]}}})
    lab.pass_time(60)
    assert lab.waiting()[0] == "ContainerCreating"
    lab.delete()
    lab.pass_time(35)
    assert not lab.exists()


def test_a_node_says_which_storage_drivers_it_has(lab: Lab) -> None:
    node = lab.client.get("nodes", "", "worker")
    drivers = lab.client.get("csinodes.storage.k8s.io", "", "worker")
    assert node is not None and drivers is not None
    assert drivers["spec"]["drivers"] == []
    assert drivers["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
