"""The pause container: holds a pod's namespaces and does nothing."""

from __future__ import annotations

from signal import Signals

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program


@program("pause", "rancher/mirrored-pause", "google_containers/pause")
class Pause(Program):
    entrypoint = ("/pause",)
    user = "65535:65535"
    base = "scratch"
    follows_tag = False
    binaries = ("/pause",)
    idle_cpu = 0.0
    idle_memory = 300 * 1024

    async def run(self, process: Process) -> int:
        process.reaps = True
        process.set_memory(self.idle_memory)
        stop = process.catch(Signals.SIGINT, Signals.SIGTERM)
        await stop.wait()
        await process.error(f"Shutting down, got signal: {Signals(stop.value).name}\n")
        return 0
