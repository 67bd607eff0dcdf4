"""The operating system of a node: what `chroot /host` finds there beside the machine's own files."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

NODE_IMAGE = "kindest/node:v1.34.0"


@program("kindest/node")
class NodeImage(Program):
    base = "debian"
    follows_tag = False
    tools: ClassVar[tuple[str, ...]] = (
        *("crictl", "curl", "dmesg", "free", "ip", "journalctl", "kill", "nsenter", "pgrep", "ping", "pkill", "ps"),
        *("ss", "sysctl", "systemctl", "top", "uptime", "watch"),
    )
    files: ClassVar = {
        "/etc/crictl.yaml": "runtime-endpoint: unix:///run/containerd/containerd.sock\n",
    }
