"""The kubelet's configuration file: what it changes at the next start, and with what the kubelet does not start."""

from __future__ import annotations

import pytest
import yaml

from srearena.cluster.embedded.kubelet.node.configuration import (
    DEFAULT_TEXT,
    PATH,
    ConfigurationRefused,
    load,
    parsed,
    put_file,
)
from srearena.cluster.embedded.machine.files import host_tree
from srearena.cluster.embedded.machine.files.inodes import Directory
from srearena.cluster.embedded.machine.machine import NodeSpec
from srearena.cluster.embedded.objects import Obj, condition
from tests.kubelet.harness import Lab

GIB = 1024**3


@pytest.fixture
def lab() -> Lab:
    return Lab(NodeSpec("worker", memory="4Gi", disk="50Gi"), NodeSpec("other"))


def node_of(lab: Lab, name: str = "worker") -> Obj:
    found = lab.client.get("nodes", "", name)
    assert found is not None
    return found


def configure(lab: Lab, text: str = DEFAULT_TEXT, **settings: object) -> None:
    """Edit the file of a node and restart its kubelet."""
    put_file(lab.kubelet.machine, PATH, yaml.safe_dump({**yaml.safe_load(text), **settings}))
    lab.nodes.access.restart_kubelet("worker")


def journal(lab: Lab) -> str:
    return "\n".join(entry.text for entry in lab.kubelet.machine.journal.of("kubelet"))


def test_capacity_and_allocatable_follow_from_the_file(lab: Lab) -> None:
    assert node_of(lab)["status"]["capacity"]["pods"] == "110"
    reserved = {"kubeReserved": {"cpu": "500m", "memory": "512Mi"}, "systemReserved": {"cpu": "1"}}
    configure(lab, maxPods=3, evictionHard={"memory.available": "1Gi", "nodefs.available": "20%"}, **reserved)
    status = node_of(lab)["status"]
    assert (status["capacity"]["pods"], status["capacity"]["cpu"]) == ("3", "4")
    assert status["allocatable"]["cpu"] == "2500m"
    assert status["allocatable"]["memory"] == "2560Mi"
    assert status["allocatable"]["ephemeral-storage"] == str(50 * GIB - 10 * GIB)
    assert node_of(lab, "other")["status"]["capacity"]["pods"] == "110"
    for number in range(4):
        lab.run(f"pod-{number}")
    lab.pass_time(2)
    reasons = [lab.status(f"pod-{number}").get("reason") for number in range(4)]
    assert reasons == [None, None, None, "OutOfpods"]


def test_a_file_is_read_at_the_start_only(lab: Lab) -> None:
    put_file(lab.kubelet.machine, PATH, DEFAULT_TEXT + "maxPods: 7\n")
    lab.pass_time(400)
    assert node_of(lab)["status"]["capacity"]["pods"] == "110"
    assert lab.nodes.agent.configuration("worker")["maxPods"] == 110
    lab.nodes.access.restart_kubelet("worker")
    assert node_of(lab)["status"]["capacity"]["pods"] == "7"
    assert lab.nodes.agent.configuration("worker")["maxPods"] == 7


def test_thresholds_decide_about_pressure(lab: Lab) -> None:
    lab.run("idle")
    lab.pass_time(20)
    configure(lab, evictionHard={"memory.available": "99%"}, evictionPressureTransitionPeriod="30s")
    lab.pass_time(20)
    assert (condition(node_of(lab), "MemoryPressure") or {})["status"] == "True"
    assert lab.status("idle")["reason"] == "Evicted"
    configure(lab, evictionPressureTransitionPeriod="30s")
    lab.pass_time(45)
    assert (condition(node_of(lab), "MemoryPressure") or {})["status"] == "False"


def test_new_pods_get_the_name_servers_of_the_file(lab: Lab) -> None:
    configure(lab, clusterDNS=["10.96.0.99"], clusterDomain="other.example")
    lab.run("new")
    lab.pass_time(10)
    sandbox = lab.nodes.sandbox("default", "new")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None
    place = next(mount for mount in record.container.filesystem.mounts if mount.path == "/etc/resolv.conf")
    text = place.root.read_at(0, 1000).decode()  # type: ignore[attr-defined]
    assert text.startswith("search default.svc.other.example svc.other.example other.example\nnameserver 10.96.0.99\n")


def test_a_kubelet_that_cannot_read_its_file_is_started_again_until_it_can(lab: Lab) -> None:
    lab.run("kept")
    lab.pass_time(20)
    put_file(lab.kubelet.machine, PATH, DEFAULT_TEXT.replace("clusterDomain: ", "clusterDomain "))
    lab.nodes.access.restart_kubelet("worker")
    service = lab.kubelet.machine.services["kubelet"]
    assert service.state == ("activating", "auto-restart")
    lab.pass_time(60)
    assert journal(lab).count("failed to load Kubelet config file") == 7
    assert "kubelet.service: Failed with result 'exit-code'." in journal(lab)
    sandbox = lab.nodes.sandbox("default", "kept")
    assert sandbox is not None and any(True for _ in sandbox.running())
    put_file(lab.kubelet.machine, PATH, DEFAULT_TEXT)
    lab.pass_time(12)
    assert service.state == ("active", "running")
    assert (condition(node_of(lab), "Ready") or {})["status"] == "True"


def test_a_stopped_service_is_not_started_again(lab: Lab) -> None:
    put_file(lab.kubelet.machine, PATH, "kind: Nonsense\n")
    lab.nodes.access.restart_kubelet("worker")
    lab.nodes.access.stop_kubelet("worker")
    put_file(lab.kubelet.machine, PATH, DEFAULT_TEXT)
    lab.pass_time(60)
    assert lab.kubelet.machine.services["kubelet"].state == ("inactive", "dead")


REFUSED = {
    "maxPods: many": "cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32",
    "maxPods: -1": "maxPods (--max-pods) -1 must not be negative",
    "imageGCLowThresholdPercent: 90": "must be less than imageGCHighThresholdPercent",
    "evictionHard: {nodefs.free: 10%}": "unsupported eviction signal nodefs.free",
    "evictionHard: {nodefs.available: 110%}": "eviction percentage threshold nodefs.available must be less than 100%",
    "evictionHard: {nodefs.available: lots}": "quantities must match the regular expression",
    "evictionHard: {nodefs.available: 10}": "cannot unmarshal number into Go struct field",
    "evictionPressureTransitionPeriod: soon": 'time: invalid duration "soon"',
    "a: [": "yaml: line ",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_a_kubelet_does_not_start_with(line: str) -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        parsed(f"{DEFAULT_TEXT}{line}\n".encode())
    assert REFUSED[line] in str(refused.value)


def test_files_and_sockets_that_the_file_names_must_be_there(lab: Lab) -> None:
    machine = lab.kubelet.machine
    assert load(machine).max_pods == 110
    for old, new, problem in (
        ("pki/ca.crt", "pki/none.crt", "open /etc/kubernetes/pki/none.crt: no such file or directory"),
        ('Endpoint: ""', "Endpoint: unix:///run/x.sock", "dial unix /run/x.sock: connect: no such file or directory"),
        ("kind: Kubelet", "kind: Cubelet", 'no kind "CubeletConfiguration" is registered for version'),
    ):
        put_file(machine, PATH, DEFAULT_TEXT.replace(old, new))
        with pytest.raises(ConfigurationRefused, match=problem):
            load(machine)
    folder = host_tree.find(machine.files.root, "/var/lib/kubelet")  # type: ignore[arg-type]
    assert isinstance(folder, Directory)
    folder.drop("config.yaml")
    with pytest.raises(ConfigurationRefused, match=f"open {PATH}: no such file"):
        load(machine)
