"""local-path-provisioner: while its pod is ready, volumes of the default storage class are made.

The simulator's controller does its work (`controllers.local_path_provisioner`) and says what is logged about it.
"""

from __future__ import annotations

from srearena.cluster.embedded.component_logs import PROVISIONER, ComponentLogs
from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, stop_signal

_LEVELS = {"I": "info", "W": "warning", "E": "error"}


@program("kindest/local-path-provisioner", "rancher/local-path-provisioner")
class LocalPathProvisionerProgram(Program):
    entrypoint = ("local-path-provisioner",)
    binaries = ("/usr/local/bin/local-path-provisioner",)
    base = "debian"
    follows_tag = False
    threads = 9
    idle_cpu = 0.0004
    idle_network = (610.0, 540.0)
    idle_memory = 11 * 1024 * 1024

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        container = process.container

        def write(severity: str, text: str) -> None:
            line = f'time="{format_time(process.date)}" level={_LEVELS[severity]} msg="{text.partition("] ")[2]}"\n'
            container.log.write("stderr", line.encode())

        path = Flags(process.argv[1:], frozenset({"debug"})).get("config")
        try:
            settings = process.files.read_text(path).strip().replace('"', '\\"') if path else ""
        except OSError:
            write("E", f"] Error starting daemon: invalid config file {path}: open {path}: no such file or directory")
            return 1
        write("I", f"] Applied config: {settings}")
        write("I", "] Provisioner started")
        host = container.host
        logs = host.machine.component_logs if isinstance(host, Sandbox) else ComponentLogs()
        logs.open(PROVISIONER, write)
        try:
            await stop.wait()
        finally:
            logs.close(PROVISIONER, write)
        return 0
