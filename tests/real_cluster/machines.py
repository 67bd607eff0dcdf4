"""Nodes as namespaces: made, entered, and ended with everything that lives in them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from srearena.errors import SreArenaError
from tests.real_cluster.layout import BRIDGE, HOST_ADDRESS, STATE, Node

CGROUPS = Path("/sys/fs/cgroup")

VOLUMES = Path("/var/local-path-provisioner")
PLACES = ("/var/lib/kubelet", "/var/log/containers", "/var/log/pods", "/run/netns", "/var/lib/cni", "/run/containerd")
# Process 1 of a node. It reaps what is orphaned, and takes the node with it when it ends. The mounts below it are
# private to the node; kubelet and containerd share them. What kubelet keeps at fixed places gets a folder per node.
HOLDER = """
set -e
hostname {name}
mount --make-rprivate /
mount --make-rshared /
for place in {places}; do
  own={folder}/private$place
  mkdir -p $own $place
  mount --bind $own $place
done
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables
echo ready > {folder}/holder
while :; do sleep 3600; done
"""


class RealClusterError(SreArenaError):
    """The real cluster cannot be built, started or stopped; the message says what to do."""


def run(*command: str | Path, check: bool = True) -> str:
    """Run a command of this machine; what it said."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RealClusterError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def start_network() -> None:
    """The bridge all nodes hang on; only this machine is on it."""
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "addr", "add", f"{HOST_ADDRESS}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")


def start_node(node: Node, others: Sequence[Node]) -> None:
    """Make a node's namespaces, its link to the others and its cgroup."""
    node.folder.mkdir(parents=True, exist_ok=True)
    script = HOLDER.format(name=node.name, folder=node.folder, places=" ".join((*PLACES, str(VOLUMES))))
    flags = ("--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--ipc", "--mount-proc")
    with (node.folder / "holder.log").open("wb") as log:
        outer = subprocess.Popen(
            ["unshare", *flags, "sh", "-c", script], stdout=log, stderr=log, start_new_session=True
        )
    _wait_for(node.folder / "holder", outer, node.folder / "holder.log")
    holder = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
    (node.folder / "pids").write_text(f"{outer.pid} {holder}\n")
    run("ip", "link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", str(holder))
    run("ip", "link", "set", node.link, "master", BRIDGE, "up")
    inside(node, "ip", "addr", "add", f"{node.address}/24", "dev", "eth0")
    inside(node, "ip", "link", "set", "eth0", "up")
    inside(node, "ip", "route", "add", "default", "via", HOST_ADDRESS)
    for other in others:
        if other != node:
            inside(node, "ip", "route", "add", other.pod_range, "via", other.address)
    for controller in CGROUPS.iterdir():
        if controller.name != "unified":
            group = controller / node.cgroup
            group.mkdir(exist_ok=True)
            if controller.name == "cpuset":
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (group / file).write_text((controller / file).read_text())


def inside(node: Node, *command: str | Path) -> str:
    """Run a command inside a node and wait for it."""
    return run(*_entering(node), *command)


def start_program(node: Node, name: str, command: Sequence[str | Path]) -> None:
    """Start a long-running program inside a node; its output goes to a log in the node's folder."""
    with (node.folder / f"{name}.log").open("ab") as log:
        outer = subprocess.Popen(
            [*_entering(node), *map(str, command)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    (node.folder / f"{name}.pid").write_text(f"{outer.pid}\n")


def stop_program(node: Node, name: str) -> None:
    """End a program that `start_program` started; containers it looked after go on."""
    outer = int((node.folder / f"{name}.pid").read_text())
    children = Path(f"/proc/{outer}/task/{outer}/children")
    if not children.exists() or "nsenter" not in Path(f"/proc/{outer}/cmdline").read_text():
        raise RealClusterError(f"{name} does not run on {node.name}")
    for child in children.read_text().split():
        os.kill(int(child), signal.SIGKILL)


def stop_everything() -> None:
    """End every node and remove what is left of it outside its namespaces."""
    nodes = [Node(index) for index in range(16) if Node(index).folder.exists()]
    for node in nodes:
        pids = node.folder / "pids"
        if pids.exists():
            for pid in reversed(pids.read_text().split()):
                _end(int(pid), str(node.folder))
    run("ip", "link", "del", BRIDGE, check=False)
    for node in nodes:
        run("ip", "link", "del", node.link, check=False)
        _remove_cgroups(node.cgroup)
    shutil.rmtree(STATE, ignore_errors=True)
    # Only a place to mount at; what nodes kept there was in their own folders. Another cluster may still need it.
    if not list(STATE.parent.glob("srearena-real-cluster*")):
        with contextlib.suppress(OSError):
            VOLUMES.rmdir()


def _entering(node: Node) -> list[str]:
    holder = (node.folder / "pids").read_text().split()[1]
    return ["nsenter", "--target", holder, "--mount", "--pid", "--net", "--uts", "--ipc", "--"]


def _wait_for(mark: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        if mark.exists():
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RealClusterError(f"a node's namespaces could not be made: {log.read_text().strip()}")


def _end(pid: int, mark: str) -> None:
    """Kill a holder, but only if the process is still the one we started."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return
    if mark in command:
        os.kill(pid, signal.SIGKILL)
        for _ in range(100):
            if not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes():
                return
            time.sleep(0.1)


def _remove_cgroups(name: str) -> None:
    for controller in CGROUPS.iterdir():
        top = controller / name
        if not top.exists():
            continue
        folders = sorted((path for path in top.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts))
        for folder in (*folders, top):
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.1)
