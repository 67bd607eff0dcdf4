"""Access to the machines of a real cluster: each operation is a shell script.

How the shell is reached differs (`docker exec`, SSH, a local shell); the scripts do not. `restore` undoes everything
the other operations can have done and is idempotent: `srearena cleanup` runs it after a crash, when the operations that
were in effect are unknown.
"""

from __future__ import annotations

import inspect
import shlex
import subprocess
from abc import abstractmethod
from collections.abc import Callable

from srearena.cluster.base import NodeAccess, NodeAccessError

_TIMEOUT = 120.0


class ShellMachines(NodeAccess):
    """Each operation is a method that returns the script for one machine."""

    marks = "/run/machine-care"
    """The directory in which scripts keep the state they need to undo an operation."""
    disk = "/var/lib/kubelet"
    """A directory on the disk that `fill_disk` fills."""

    def operations(self) -> tuple[str, ...]:
        return (
            "stop_kubelet",
            "start_kubelet",
            "restart_kubelet",
            "fill_disk",
            "burn_cpu",
            "write_file",
            "shape_network",
            "restore",
        )

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        if operation not in self.operations():
            supported = ", ".join(self.operations())
            raise NodeAccessError(
                f"{operation.replace('_', ' ')} is not supported on {node}; supported are {supported}"
            )
        method = getattr(self, operation)
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError as problem:
            raise NodeAccessError(f"{operation} on {node}: {problem}") from problem
        self.run(node, f"set -e\n{method(**arguments)}")

    @abstractmethod
    def run(self, node: str, script: str) -> str:
        """Run a shell script on a machine as root; NodeAccessError with its error output where it fails."""

    # The scripts

    def stop_kubelet(self) -> str:
        return "systemctl stop kubelet"

    def start_kubelet(self) -> str:
        return "systemctl start kubelet"

    def restart_kubelet(self) -> str:
        return f"{self.stop_kubelet()}\n{self.start_kubelet()}"

    def fill_disk(self, share: float) -> str:
        """Fill the kubelet's disk to that share (0 to 1) of its size with one file; 0 removes the file."""
        if share <= 0:
            return f"rm -f {self.disk}/.reserve"
        return (
            f"rm -f {self.disk}/.reserve\n"
            f"set -- $(df -P -k {self.disk} | tail -n 1)\n"
            f"want=$(( $2 * {round(share * 1000)} / 1000 - $3 ))\n"
            f'[ "$want" -le 0 ] || fallocate -l "${{want}}K" {self.disk}/.reserve'
        )

    def burn_cpu(self, cores: float) -> str:
        """Run so many busy processes on the machine; 0 ends them."""
        end = (
            f"mkdir -p {self.marks}\n"
            f"for pid in $(cat {self.marks}/busy 2>/dev/null); do kill $pid 2>/dev/null || true; done\n"
            f"rm -f {self.marks}/busy"
        )
        start = f"nohup sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null & echo $! >> {self.marks}/busy"
        return "\n".join([end, *([start] * round(cores))])

    def write_file(self, path: str, data: str | bytes) -> str:
        text = data.decode() if isinstance(data, bytes) else data
        folder = path.rpartition("/")[0] or "/"
        return f"mkdir -p {shlex.quote(folder)}\nprintf %s {shlex.quote(text)} > {shlex.quote(path)}"

    def shape_network(
        self,
        pod: str = "",
        delay: float = 0.0,
        jitter: float = 0.0,
        loss: float = 0.0,
        corruption: float = 0.0,
        bandwidth: float = 0.0,
    ) -> str:
        """Apply `tc netem` to the interface of a pod (`namespace/name`) or of the machine; all zeros remove it."""
        words = []
        if delay or jitter:
            words.append(f"delay {delay * 1000:g}ms" + (f" {jitter * 1000:g}ms" if jitter else ""))
        words += [f"loss {loss * 100:g}%"] if loss else []
        words += [f"corrupt {corruption * 100:g}%"] if corruption else []
        words += [f"rate {bandwidth * 8:.0f}bit"] if bandwidth else []
        inside, device = "", "$(ip -o route show default | sed 's/.* dev \\([^ ]*\\).*/\\1/' | head -n 1)"
        find = ""
        if pod:
            namespace, _, name = pod.partition("/")
            find = (
                f"sandbox=$(crictl pods -q --namespace {shlex.quote(namespace)} --name '^{name}$' --state Ready)\n"
                "pid=$(crictl inspectp -o go-template --template '{{.info.pid}}' $sandbox)\n"
            )
            inside, device = "nsenter -t $pid -n ", "eth0"
        if words:
            return f"{find}{inside}tc qdisc replace dev {device} root netem {' '.join(words)}"
        return (
            f"{find}if {inside}tc qdisc show dev {device} | grep -q netem; then "
            f"{inside}tc qdisc del dev {device} root; fi"
        )

    def restore(self) -> str:
        unshape = f"{self.shape_network()} || true"
        return "\n".join([self.burn_cpu(0), self.fill_disk(0), unshape, self.start_kubelet()])


class CommandMachines(ShellMachines):
    """Machines whose shell is reached by a local command."""

    @abstractmethod
    def command(self, node: str) -> list[str]:
        """The command that reads a script from its standard input and runs it on the machine."""

    def run(self, node: str, script: str) -> str:
        words = self.command(node)
        try:
            done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        except FileNotFoundError as problem:
            raise NodeAccessError(f"{words[0]} is not installed; it is needed to reach the machine {node}") from problem
        except subprocess.TimeoutExpired as problem:
            raise NodeAccessError(f"{words[0]} to {node} did not end within {_TIMEOUT:g} s") from problem
        if done.returncode:
            error = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"status {done.returncode}"]
            raise NodeAccessError(f"on {node}: {error[0]}")
        return done.stdout


class KindMachines(CommandMachines):
    """A kind cluster: every node is a container of that name."""

    def __init__(self, program: str = "docker") -> None:
        self._program = program

    def command(self, node: str) -> list[str]:
        return [self._program, "exec", "--interactive", "--privileged", node, "sh"]


class SshMachines(CommandMachines):
    """Machines reached by SSH, by default under the names of their nodes."""

    def __init__(self, user: str = "", address: Callable[[str], str] = lambda node: node, program: str = "ssh") -> None:
        self._user = user
        self._address = address
        self._program = program

    def command(self, node: str) -> list[str]:
        host = self._address(node)
        destination = f"{self._user}@{host}" if self._user else host
        shell = "sh" if self._user == "root" else "sudo -n sh"
        return [self._program, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", destination, shell]


class LocalMachine(CommandMachines):
    """This machine is the node (k3s, minikube without a driver, kubeadm on one host)."""

    def command(self, node: str) -> list[str]:
        return ["sudo", "-n", "sh"]
