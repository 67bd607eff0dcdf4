"""kindnet, the CNI plugin of kind: it writes the node's CNI configuration, which stays when it ends.

Pods are attached to the network by the machine itself; routes that kindnet has set stay without it.
"""

from __future__ import annotations

import json

from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import stop_signal
from srearena.cluster.embedded.programs.timestamps import klog_line

CONFIGURATION = "/etc/cni/net.d/10-kindnet.conflist"


@program("kindest/kindnetd")
class Kindnet(Program):
    entrypoint = ("/bin/kindnetd",)
    binaries = ("/bin/kindnetd",)
    base = "debian"
    follows_tag = False
    threads = 9
    idle_cpu = 0.0006
    idle_memory = 14 * 1024 * 1024

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        lines = (
            ("main.go:109", "connected to apiserver: https://10.96.0.1:443"),
            ("main.go:139", f"hostIP = {process.env.get('HOST_IP', '')}"),
            ("main.go:139", f"podIP = {process.env.get('POD_IP', '')}"),
            ("main.go:148", "setting mtu 1500 for CNI"),
            ("main.go:178", 'kindnetd IP family: "ipv4"'),
            ("main.go:182", f"noMask IPv4 subnets: [{process.env.get('POD_SUBNET', '')}]"),
            ("controller.go:377", '"Starting controller" name="kube-network-policies"'),
            ("metrics.go:72", "Registering metrics"),
        )
        for place, text in lines:
            await process.error(klog_line(process, "I", place, text))
        host = process.container.host
        ranges = [[{"subnet": str(host.machine.pod_range)}]] if isinstance(host, Sandbox) else []
        plugins = [
            {"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "ranges": ranges}, "mtu": 1500},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ]
        text = json.dumps({"cniVersion": "0.3.1", "name": "kindnet", "plugins": plugins}, indent=1)
        try:
            process.files.write_bytes(CONFIGURATION, f"{text}\n".encode())
        except OSError as error:
            await process.error(klog_line(process, "F", "main.go:250", f"{CONFIGURATION}: {error.strerror}"))
            return 255
        await stop.wait()
        return 0
