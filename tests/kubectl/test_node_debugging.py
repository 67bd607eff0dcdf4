"""`kubectl debug node/X`: the machine of a node from a pod on it, with its services, its logs and its containers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.kubernetes import Kubernetes

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]
CRASHER = "echo boom; exit 3"


@dataclass
class Debugger:
    """A shell in a debugging pod."""

    cluster: Cluster
    api: Kubernetes
    pod: str

    def run(self, script: str) -> tuple[int, str]:
        """Exit status and output, errors included."""
        with self.cluster.fast_forward(60):
            done = self.api.exec(self.pod, ["sh", "-c", script], "default")
        return done.status, done.output + done.errors

    def output(self, script: str) -> str:
        status, text = self.run(script)
        assert status == 0, text
        return text


@pytest.fixture(scope="module")
def debugger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Debugger]:
    kubectl = str(shutil.which("kubectl"))
    with start_embedded(in_process=True, nodes=1, speed=0) as cluster, Kubernetes.of(cluster) as api:
        container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", CRASHER]}
        spec = {"nodeName": "worker-1", "containers": [container]}
        api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "crasher"}, "spec": spec}, "default")
        environment = {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path_factory.mktemp("home"))}
        words = ["debug", "node/worker-1", "--image=busybox:1.36", "--profile=sysadmin", "--", "sleep", "99999"]
        done = subprocess.run([kubectl, *words], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        cluster.wait(60)
        pods = (pod["metadata"]["name"] for pod in api.list("pods", "default"))
        yield Debugger(cluster, api, next(name for name in pods if name.startswith("node-debugger-")))


def test_the_container_runtime_knows_pods_and_containers(debugger: Debugger) -> None:
    running = debugger.output("chroot /host crictl ps")
    assert all(name in running for name in ("kube-proxy", "kindnet-cni", "node-exporter"))
    assert "crasher" not in running


def test_the_network_plugin_has_written_its_configuration(debugger: Debugger) -> None:
    pods = debugger.api.get("nodes", "worker-1")["spec"]["podCIDR"]
    assert f'"subnet": "{pods}"' in debugger.output("cat /host/etc/cni/net.d/10-kindnet.conflist")
    assert "Exited" in debugger.output("chroot /host crictl ps -a --name main")
    assert "crasher" in debugger.output("chroot /host crictl pods")
    script = "chroot /host sh -c 'crictl logs $(crictl ps -a --name main -q | head -1)'"
    assert debugger.output(script) == "boom\n"
    assert "not found" in debugger.run("crictl ps")[1]


def test_what_the_kubelet_did_is_in_the_journal_and_below_var(debugger: Debugger) -> None:
    journal = debugger.output("chroot /host journalctl -u kubelet --no-pager")
    assert '"Started kubelet"' in journal
    assert "Error syncing pod, skipping" in journal and "Back-off restarting failed container" in journal
    assert " stdout F boom" in debugger.output("cat /host/var/log/pods/default_crasher_*/main/*.log")
    uid = debugger.api.get("pods", "crasher", "default")["metadata"]["uid"]
    assert debugger.output(f"ls /host/var/lib/kubelet/pods/{uid}") == "containers\nvolumes\n"
    proxy = "/host/var/lib/kubelet/pods/*/volumes/kubernetes.io~configmap/kube-proxy/config.conf"
    assert "kind: KubeProxyConfiguration" in debugger.output(f"cat {proxy}")


def test_folders_of_pods_hold_neither_the_machine_nor_credentials(debugger: Debugger) -> None:
    """The debugging pod mounts the whole machine, which would contain itself; and pods of the system have accounts."""
    found = debugger.output("find /host/var/lib/kubelet -type f -o -name token").splitlines()
    assert found and len(found) < 100
    assert not [path for path in found if "token" in path or path.endswith(".key")]


def test_the_kubelet_is_a_service_of_the_machine(debugger: Debugger) -> None:
    def ready() -> str:
        conditions = debugger.api.get("nodes", "worker-1")["status"]["conditions"]
        return next(str(one["status"]) for one in conditions if one["type"] == "Ready")

    assert "active (running)" in debugger.output("chroot /host systemctl status kubelet")
    # A stopped kubelet cannot start the command of another `exec`: one script stops it and starts it again.
    script = "systemctl stop kubelet; sleep 60; systemctl is-active kubelet > /root/state; systemctl start kubelet"
    debugger.output(f"chroot /host sh -c '{script}'")
    debugger.cluster.wait(20)
    assert debugger.output("cat /host/root/state") == "inactive\n"
    reasons = {event["reason"] for event in debugger.api.list("events", "default")}
    assert "NodeNotReady" in reasons
    assert ready() == "True"


def test_processes_and_files_of_the_machine(debugger: Debugger) -> None:
    processes = debugger.output("nsenter -t 1 -m -u -i -n -p -- ps aux")
    assert "/usr/local/bin/kube-proxy" in processes and "sleep 99999" in processes
    by_file = "nsenter --mount=/host/proc/1/ns/mnt -- cat /etc/hostname"
    assert debugger.output(by_file) == "worker-1\n"
    assert debugger.output("mount -t cgroup2").startswith("cgroup on /sys/fs/cgroup type cgroup2 (ro")
    debugger.output("chroot /host sh -c 'echo kept > /root/note'")
    assert debugger.output("cat /host/root/note") == "kept\n"
    assert debugger.output("chroot /host hostname") == "worker-1\n"
    assert debugger.run("chroot /nowhere ls")[0] == 125
    assert debugger.run("chroot /host no-such-program")[0] == 127


def test_a_pod_without_the_machine_does_not_reach_it(debugger: Debugger) -> None:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "99999"]}
    spec = {"nodeName": "control-plane", "tolerations": [{"operator": "Exists"}], "containers": [container]}
    debugger.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": spec}, "default")
    debugger.cluster.wait(20)
    plain = Debugger(debugger.cluster, debugger.api, "plain")
    assert plain.output("nsenter -t 1 -m -- cat /etc/hostname") == "plain\n"
    assert "kubelet" not in plain.output("ps")
    assert plain.run("dmesg")[0] == 1
    assert plain.run("nsenter -t 711 -m ls")[0] == 1


def test_parameters_of_the_kernel_are_written_and_take_effect(debugger: Debugger) -> None:
    assert debugger.output("chroot /host sysctl -n vm.max_map_count") == "65530\n"
    assert debugger.output("chroot /host sysctl -w vm.max_map_count=262144") == "vm.max_map_count = 262144\n"
    assert debugger.output("cat /proc/sys/vm/max_map_count") == "262144\n"
    debugger.output("echo 500000 > /proc/sys/net/netfilter/nf_conntrack_max")
    assert debugger.output("nsenter -t 1 -n sysctl -n net.netfilter.nf_conntrack_max") == "500000\n"
    status, text = debugger.run("chroot /host sysctl -w vm.swappiness=much")
    assert (status, text) == (255, 'sysctl: setting key "vm.swappiness": Invalid argument\n')
    assert "Permission denied" in debugger.run("chroot /host sysctl -w kernel.osrelease=7")[1]
    plain = Debugger(debugger.cluster, debugger.api, "plain")
    assert "Read-only file system" in plain.run("sysctl -w vm.swappiness=1")[1]


def test_a_kubelet_is_repaired_through_its_file(debugger: Debugger) -> None:
    """A setting with which it does not start, found in its journal and undone; then one that takes effect."""
    config = "/var/lib/kubelet/config.yaml"
    broken = f"cp {config} /root/; sed -i s/ca.crt/ca.pem/ {config}; systemctl restart kubelet; sleep 30"
    found = "systemctl status kubelet > /root/status; journalctl -u kubelet | tail -3 > /root/log"
    debugger.output(f"chroot /host sh -c '{broken}; {found}; cp /root/config.yaml {config}; sleep 15'")
    assert "activating (auto-restart) (Result: exit-code)" in debugger.output("cat /host/root/status")
    log = debugger.output("cat /host/root/log")
    assert "unable to load client CA file /etc/kubernetes/pki/ca.pem" in log
    assert "systemd[1]: kubelet.service: Failed with result 'exit-code'." in log
    assert debugger.output("chroot /host systemctl is-active kubelet") == "active\n"
    debugger.output(f"chroot /host sh -c 'echo maxPods: 42 >> {config}; systemctl restart kubelet'")
    debugger.cluster.wait(20)
    assert debugger.api.get("nodes", "worker-1")["status"]["capacity"]["pods"] == "42"
