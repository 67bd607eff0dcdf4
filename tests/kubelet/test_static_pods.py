"""The control plane's pods, and others that run from a manifest on the machine."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.machine.machine import NodeSpec
from srearena.cluster.embedded.objects import Obj, condition_is
from tests.kubelet.harness import Lab

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@pytest.fixture
def lab() -> Lab:
    lab = Lab(NodeSpec("cp", role="control-plane"))
    lab.pass_time(40)
    return lab


def mirror(lab: Lab, name: str) -> Obj:
    found = lab.client.get("pods", "kube-system", f"{name}-cp")
    assert found is not None
    return found


def test_the_control_plane_is_there_and_ready(lab: Lab) -> None:
    for name in NAMES:
        pod = mirror(lab, name)
        assert condition_is(pod, "Ready"), name
        assert pod["status"]["podIP"] == "172.18.0.2"
        assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "Node"
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_deleted_mirror_comes_back_without_a_restart(lab: Lab) -> None:
    before = mirror(lab, "etcd")
    lab.client.delete("pods", before)
    lab.pass_time(5)
    after = mirror(lab, "etcd")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert condition_is(after, "Ready")
    same = [pod["status"]["containerStatuses"][0]["containerID"] for pod in (before, after)]
    assert same[0] == same[1]
    lab.pass_time(300)
    assert condition_is(mirror(lab, "etcd"), "Ready")


def test_a_removed_manifest_ends_the_pod(lab: Lab) -> None:
    lab.kubelet.static_pods.remove("kube-scheduler")
    lab.pass_time(40)
    assert lab.client.get("pods", "kube-system", "kube-scheduler-cp") is None
    assert lab.kubelet.machine.namespace.find("127.0.0.1", 10259) is None


def test_a_restarted_kubelet_keeps_static_pods(lab: Lab) -> None:
    before = {name: mirror(lab, name)["status"]["containerStatuses"][0]["containerID"] for name in NAMES}
    lab.nodes.access.restart_kubelet("cp")
    lab.pass_time(60)
    after = {name: mirror(lab, name)["status"]["containerStatuses"][0]["containerID"] for name in NAMES}
    assert before == after
    assert all(condition_is(mirror(lab, name), "Ready") for name in NAMES)
