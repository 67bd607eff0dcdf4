"""The images that hold kubectl, and how a command line becomes a command."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import PATH, Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiFailure, ClusterApi, NotInCluster
from srearena.cluster.embedded.programs.toolboxes.kubectl.arguments import Arguments
from srearena.cluster.embedded.programs.toolboxes.kubectl.commands import COMMANDS
from srearena.cluster.embedded.programs.toolboxes.kubectl.errors import KubectlError, from_server
from srearena.cluster.embedded.programs.toolboxes.kubectl.session import Session

STARTUP_COST = 0.05
"""Seconds of processor it takes a Go program of that size to start."""
_USAGE = "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/\n"


class Kubectl(Program):
    """kubectl itself; the images below differ in what is around it."""

    follows_tag = False
    binaries = ("/usr/local/bin/kubectl",)
    env: ClassVar = {"PATH": PATH}
    idle_cpu = 0.0
    idle_memory = 24 * 1024 * 1024
    default_version = "1.34.0"

    async def run(self, process: Process) -> int:
        await process.spend(STARTUP_COST)
        process.set_memory(self.idle_memory)
        try:
            return await self._command(process)
        except KubectlError as problem:
            await process.error(f"{problem}\n")
        except ApiFailure as failure:
            await process.error(f"{from_server(failure)}\n")
        except NotInCluster:
            # Without an in-cluster configuration kubectl falls back to where a server once used to be.
            await process.error(
                "The connection to the server localhost:8080 was refused - did you specify the right host or port?\n"
            )
        return 1

    async def _command(self, process: Process) -> int:
        words = process.argv[1:]
        if not words or words[0] in ("help", "--help", "-h"):
            await process.write(_USAGE)
            return 0
        arguments = Arguments(words)
        name = arguments.words.pop(0) if arguments.words else ""
        if name == "version":
            await process.write(f"Client Version: v{self.version}\nKustomize Version: v5.7.1\n")
            if arguments.switch("client"):
                return 0
        command = COMMANDS.get(name)
        if command is None:
            raise KubectlError(f'error: unknown command "{name}" for "kubectl"')
        session = Session(process, ClusterApi(process, f"kubectl/v{self.version} (linux/amd64)"), arguments)
        await command(session)
        return session.status


@program("bitnami/kubectl", "bitnamilegacy/kubectl", "rancher/kubectl")
class BitnamiKubectl(Kubectl):
    entrypoint = ("kubectl",)
    cmd = ("--help",)
    user = "1001"
    base = "debian"


@program("kubectl")
class PlainKubectl(Kubectl):
    """registry.k8s.io/kubectl: the binary and nothing else."""

    entrypoint = ("/bin/kubectl",)
    base = "distroless"
    binaries = ("/usr/bin/kubectl",)


@program("alpine/k8s", "alpine/kubectl", "dtzar/helm-kubectl", "lachlanevenson/k8s-kubectl")
class AlpineKubectl(Kubectl):
    cmd = ("bash",)
    base = "alpine"
    tools = ("bash", "curl")
