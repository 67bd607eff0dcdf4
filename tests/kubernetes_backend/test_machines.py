"""The ways to a real cluster's machines: what is typed there, and how it gets there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.cluster import ClusterError, NodeAccessError
from srearena.cluster.kubernetes import kind
from srearena.cluster.kubernetes.machines import CommandMachines, KindMachines, SshMachines

FAKES = ("systemctl", "tc", "ip", "crictl", "nsenter", "fallocate")


class HereMachines(CommandMachines):
    """Scripts are really run, by a shell of this machine whose dangerous tools only write down what they are told."""

    def __init__(self, folder: Path) -> None:
        self.marks = str(folder / "marks")
        self.disk = str(folder)
        self.log = folder / "log"
        self.log.touch()
        tools = folder / "tools"
        tools.mkdir()
        for name in FAKES:
            answer = {"ip": "echo 'default via 192.0.2.1 dev ens3 proto dhcp'", "crictl": "echo 4711"}.get(name, "")
            (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n{answer}\n')
            (tools / name).chmod(0o755)
        self._path = f"{tools}:{os.environ['PATH']}"

    def command(self, node: str) -> list[str]:
        return ["env", f"PATH={self._path}", "sh"]

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machines(tmp_path: Path) -> HereMachines:
    return HereMachines(tmp_path)


def test_a_kubelet_is_stopped_and_started(machines: HereMachines) -> None:
    machines.perform("stop_kubelet", "worker-1")
    machines.perform("restart_kubelet", "worker-1")
    assert machines.said() == ["systemctl stop kubelet", "systemctl stop kubelet", "systemctl start kubelet"]


def test_a_pods_network_is_shaped_in_its_own_namespace(machines: HereMachines) -> None:
    machines.perform("shape_network", "worker-1", pod="shop/web-1", delay=0.1, jitter=0.02, loss=0.05)
    assert "nsenter -t 4711 -n tc qdisc replace dev eth0 root netem delay 100ms 20ms loss 5%" in machines.said()


def test_a_machines_network_is_shaped_where_its_packets_leave(machines: HereMachines) -> None:
    machines.perform("shape_network", "worker-1", corruption=0.01, bandwidth=125000)
    assert "tc qdisc replace dev ens3 root netem corrupt 1% rate 1000000bit" in machines.said()


def test_a_machine_that_computes_can_be_calmed(machines: HereMachines) -> None:
    machines.perform("burn_cpu", "worker-1", cores=2)
    busy = [int(word) for word in (Path(machines.marks) / "busy").read_text().split()]
    assert len(busy) == 2 and all(Path(f"/proc/{pid}").exists() for pid in busy)
    machines.perform("burn_cpu", "worker-1", cores=0)
    subprocess.run(["sleep", "0.2"], check=True)
    assert not any(_runs(pid) for pid in busy)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_disk_is_filled_to_a_share_of_its_size(machines: HereMachines) -> None:
    machines.perform("fill_disk", "worker-1", share=0.999)
    [line] = machines.said()
    assert line.startswith("fallocate -l ") and line.endswith("/.reserve")


def test_a_file_arrives_as_it_was_sent(machines: HereMachines, tmp_path: Path) -> None:
    text = 'it\'s "quoted" $HOME %s\nand has lines'
    machines.perform("write_file", "worker-1", path=str(tmp_path / "etc" / "motd"), data=text)
    assert (tmp_path / "etc" / "motd").read_text() == text


def test_restoring_does_no_harm_where_nothing_was_done(machines: HereMachines) -> None:
    machines.perform("restore", "worker-1")
    assert machines.said()[-1] == "systemctl start kubelet"
    assert not any("netem" in line for line in machines.said())


def test_what_cannot_be_done_is_said(machines: HereMachines) -> None:
    with pytest.raises(NodeAccessError, match="power off is not supported on worker-1; supported are stop_kubelet"):
        machines.perform("power_off", "worker-1")
    with pytest.raises(NodeAccessError, match="fill_disk on worker-1: missing a required argument: 'share'"):
        machines.perform("fill_disk", "worker-1")


def fake(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_kind_nodes_are_entered_through_their_containers(tmp_path: Path) -> None:
    engine = fake(tmp_path / "docker", f'echo "$@" > {tmp_path}/words; cat > {tmp_path}/script')
    KindMachines(engine).perform("stop_kubelet", "kind-worker")
    assert (tmp_path / "words").read_text() == "exec --interactive --privileged kind-worker sh\n"
    assert (tmp_path / "script").read_text() == "set -e\nsystemctl stop kubelet"


@pytest.mark.parametrize(
    ("user", "who", "shell"), [("ada", "ada@192.0.2.7", "sudo -n sh"), ("root", "root@192.0.2.7", "sh")]
)
def test_machines_are_reached_by_ssh(tmp_path: Path, user: str, who: str, shell: str) -> None:
    client = fake(tmp_path / "ssh", f'echo "$@" > {tmp_path}/words; cat > /dev/null')
    SshMachines(user, lambda node: {"n1": "192.0.2.7"}[node], client).perform("start_kubelet", "n1")
    words = (tmp_path / "words").read_text().strip()
    assert words == f"-o BatchMode=yes -o ConnectTimeout=10 {who} {shell}"


def test_what_a_machine_complains_of_is_passed_on(tmp_path: Path) -> None:
    client = fake(tmp_path / "ssh", "echo 'Permission denied (publickey).' >&2; exit 255")
    with pytest.raises(NodeAccessError, match=r"on n1: Permission denied \(publickey\)"):
        SshMachines("ada", program=client).perform("stop_kubelet", "n1")
    with pytest.raises(NodeAccessError, match="is not installed"):
        SshMachines("ada", program=str(tmp_path / "none")).perform("stop_kubelet", "n1")


# kind itself


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has nothing but what a test puts there."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "cat", "echo"):
        (tools / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    return tools


def test_a_machine_without_kind_is_told(only: Path) -> None:
    with pytest.raises(ClusterError, match="kind is not installed"):
        CliRunner().invoke(cli, ["kind", "up"], catch_exceptions=False)


def test_a_container_engine_that_does_not_run_is_told(only: Path) -> None:
    fake(only / "kind", "true")
    with pytest.raises(ClusterError, match="needs a container engine"):
        kind.up()
    fake(only / "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    with pytest.raises(ClusterError, match="docker is installed and does not run: Cannot connect"):
        kind.up()


def test_a_cluster_is_made_and_removed(only: Path) -> None:
    fake(only / "docker", "true")
    fake(only / "kind", f'echo "$@" >> {only}/words; [ "$1 $2" = "get clusters" ] && cat {only}/clusters || true')
    (only / "clusters").write_text("")
    done = CliRunner().invoke(cli, ["kind", "up"], catch_exceptions=False)
    assert "--context kind-srearena" in done.output
    made = (only / "words").read_text().splitlines()[-1]
    assert made.startswith("create cluster --name srearena --config ") and "kind-config-" in made
    with pytest.raises(ClusterError, match="no kind cluster named 'srearena'"):
        kind.down()
    (only / "clusters").write_text("srearena\n")
    with pytest.raises(ClusterError, match="is there"):
        kind.up()
    assert "is deleted" in CliRunner().invoke(cli, ["kind", "down"], catch_exceptions=False).output


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "x86"), ("aarch64", "arm"), ("arm64", "arm")])
def test_each_processor_has_its_configuration(machine: str, name: str) -> None:
    assert kind.configuration(machine).name == f"kind-config-{name}.yaml"
