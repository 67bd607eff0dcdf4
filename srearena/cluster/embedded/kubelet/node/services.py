"""The services of a machine, kubelet and container runtime, and what the kubelet logs about trouble with pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.kubelet.node import configuration
from srearena.cluster.embedded.machine.system_services import SystemService
from srearena.cluster.embedded.objects import Obj, key_of, uid_of

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet

KUBELET_PID = 711
_RUNTIME_PID = 212


def services_of(kubelet: Kubelet) -> tuple[SystemService, ...]:
    machine = kubelet.machine
    return (
        SystemService(
            "containerd",
            "containerd container runtime",
            "/usr/local/bin/containerd",
            (),
            _RUNTIME_PID,
            lambda: machine.powered,
            lambda: machine.booted_at,
        ),
        SystemService(
            "kubelet",
            "kubelet: The Kubernetes Node Agent",
            "/usr/bin/kubelet",
            (f"--config={configuration.PATH}", f"--hostname-override={machine.name}"),
            KUBELET_PID,
            lambda: kubelet.running,
            lambda: kubelet.statistics.started_at,
            kubelet.start,
            kubelet.stop,
            lambda: kubelet.is_failing,
        ),
    )


def warning_line(pod: Obj, reason: str, message: str, field_path: str) -> tuple[str, str, str]:
    """Severity, place and text of what the kubelet logs when it records a warning about a pod."""
    container = field_path.partition("{")[2].rstrip("}")
    about = f'pod="{key_of(pod)}" podUID="{uid_of(pod)}"'
    if reason == "Unhealthy":
        kind, _, output = message.partition(" probe failed: ")
        if output:
            head = f'"Probe failed" probeType="{kind}" {about} containerName="{container}"'
            return "I", "prober.go:120", f'{head} probeResult="failure" output={quoted(output)}'
    if container:
        failed = f"failed to {quoted('StartContainer')} for {quoted(container)} with {reason}: {quoted(message)}"
        return "E", "pod_workers.go:1324", f'"Error syncing pod, skipping" err={quoted(failed)} {about}'
    return "E", "pod_workers.go:1324", f'"Error syncing pod, skipping" err={quoted(message)} {about}'
