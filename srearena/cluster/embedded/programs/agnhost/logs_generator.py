"""agnhost logs-generator: writes a number of log lines, evenly spread over a duration."""

from __future__ import annotations

from srearena.cluster.embedded.durations import DurationError, parse_duration
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import command
from srearena.cluster.embedded.programs.serving import Flags
from srearena.cluster.embedded.programs.timestamps import klog_line

_METHODS = ("GET", "POST", "PUT")
_NAMESPACES = ("kube-system", "default", "ns")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, as Kubernetes makes up names."""
_SOURCE = "logs_generator.go:76"


@command("logs-generator")
async def logs_generator(process: Process, flags: Flags) -> int:
    text = flags.get("log-lines-total") or flags.get("t") or "0"
    try:
        total, seconds = int(text), parse_duration(flags.get("run-duration") or flags.get("d") or "0")
    except (ValueError, DurationError) as problem:
        await process.error(f"Error: invalid argument: {problem}\n")
        return 1
    if total <= 0 or seconds <= 0:
        what = f"total number of lines: {total}" if total <= 0 else "duration: 0s"
        await process.error(klog_line(process, "F", _SOURCE, f"Invalid {what}"))
        return 255
    random = process.container.random
    for number in range(total):
        pod = "".join(random.choice(_ALPHABET) for _ in range(random.randint(3, 4)))
        url = f"/api/v1/namespaces/{random.choice(_NAMESPACES)}/pods/{pod}"
        line = f"{number} {random.choice(_METHODS)} {url} {random.randint(200, 599)}"
        await process.error(klog_line(process, "I", _SOURCE, line))
        await process.sleep(seconds / total)
    return 0
