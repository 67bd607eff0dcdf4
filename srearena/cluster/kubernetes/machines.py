"""The machines of a real cluster, reached by a shell on each: what an operation means there, as a script.

How the shell is reached differs (`docker exec`, SSH, a shell of this machine); what is typed does not. `restore` takes
back everything the others can have done, and does no harm where nothing was done: it is what `srearena cleanup` runs
after a crash, when nobody knows any more what was under way.
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
    """Each operation is a method that gives the script for one machine."""

    marks = "/run/machine-care"
    """Where scripts keep what they need to end again."""
    disk = "/var/lib/kubelet"
    """A folder on the disk that is filled."""

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
            known = ", ".join(self.operations())
            raise NodeAccessError(f"{operation.replace('_', ' ')} cannot be done to {node} here; there are {known}")
        method = getattr(self, operation)
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError as problem:
            raise NodeAccessError(f"{operation} on {node}: {problem}") from problem
        self.run(node, f"set -e\n{method(**arguments)}")

    @abstractmethod
    def run(self, node: str, script: str) -> str:
        """Run a shell script on a machine as root; NodeAccessError with what it said where it fails."""

    # What is typed

    def stop_kubelet(self) -> str:
        return "systemctl stop kubelet"

    def start_kubelet(self) -> str:
        return "systemctl start kubelet"

    def restart_kubelet(self) -> str:
        return f"{self.stop_kubelet()}\n{self.start_kubelet()}"

    def fill_disk(self, share: float) -> str:
        """A file that makes the disk of the kubelet full to that share (0 to 1) of its size; 0 takes it away."""
        if share <= 0:
            return f"rm -f {self.disk}/.reserve"
        return (
            f"rm -f {self.disk}/.reserve\n"
            f"set -- $(df -P -k {self.disk} | tail -n 1)\n"
            f"want=$(( $2 * {round(share * 1000)} / 1000 - $3 ))\n"
            f'[ "$want" -le 0 ] || fallocate -l "${{want}}K" {self.disk}/.reserve'
        )

    def burn_cpu(self, cores: float) -> str:
        """So many processes of the machine compute; 0 ends them."""
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
        """`tc netem` on the interface of a pod (`namespace/name`), or on the machine's; all zeros take it away."""
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
        calm = f"{self.shape_network()} || true"
        return "\n".join([self.burn_cpu(0), self.fill_disk(0), calm, self.start_kubelet()])


class CommandMachines(ShellMachines):
    """Machines whose shell is reached by a command of this machine."""

    @abstractmethod
    def command(self, node: str) -> list[str]:
        """The command that reads a script from its standard input and runs it on the machine."""

    def run(self, node: str, script: str) -> str:
        words = self.command(node)
        try:
            done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        except FileNotFoundError as problem:
            raise NodeAccessError(f"{words[0]} is not installed, and is the way to the machine {node}") from problem
        except subprocess.TimeoutExpired as problem:
            raise NodeAccessError(f"{words[0]} to {node} did not end within {_TIMEOUT:g} s") from problem
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"status {done.returncode}"]
            raise NodeAccessError(f"on {node}: {said[0]}")
        return done.stdout


class KindMachines(CommandMachines):
    """A kind cluster: every node is a container of that name."""

    def __init__(self, program: str = "docker") -> None:
        self._program = program

    def command(self, node: str) -> list[str]:
        return [self._program, "exec", "--interactive", "--privileged", node, "sh"]


class SshMachines(CommandMachines):
    """Machines that answer SSH, by default under the names their nodes have."""

    def __init__(self, user: str = "", address: Callable[[str], str] = lambda node: node, program: str = "ssh") -> None:
        self._user = user
        self._address = address
        self._program = program

    def command(self, node: str) -> list[str]:
        host = self._address(node)
        who = f"{self._user}@{host}" if self._user else host
        shell = "sh" if self._user == "root" else "sudo -n sh"
        return [self._program, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", who, shell]


class LocalMachine(CommandMachines):
    """The machine we run on is the node (k3s, minikube without a driver, kubeadm on one host)."""

    def command(self, node: str) -> list[str]:
        return ["sudo", "-n", "sh"]
