"""/sys/fs/cgroup of a container (version 2): limits, what it uses, and what it waits for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.containers.memory_parts import memory_parts
from srearena.cluster.embedded.machine.files.inodes import Node
from srearena.cluster.embedded.machine.files.listing import text_file
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import milli

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.container import Container

_LEAST_SHARES = 2
_LEAST_QUOTA = 1000
"""Microseconds: the kernel takes no smaller quota, and the kubelet sets none."""
_SLAB_SHARE = 0.55
"""Share of a cgroup's kernel memory that is slab; the rest is stacks and page tables."""


def cgroup_files(container: Container) -> dict[str, Node]:
    meter = container.meter

    def cpu_max() -> str:
        quota = "max" if meter.cpu_limit is None else str(max(_LEAST_QUOTA, int(meter.cpu_limit * 100000)))
        return f"{quota} 100000\n"

    def cpu_stat() -> str:
        used = int(meter.cpu_seconds() * 1e6)
        return (
            f"usage_usec {used}\nuser_usec {int(used * 0.8)}\nsystem_usec {used - int(used * 0.8)}\n"
            f"nr_periods {math.floor(meter.nr_periods)}\nnr_throttled {math.floor(meter.nr_throttled)}\n"
            f"throttled_usec {int(meter.throttled_seconds * 1e6)}\n"
        )

    def cpu_pressure() -> str:
        wanted = meter.wanted_cores
        waiting = max(0.0, 1 - meter.granted_cores / wanted) if wanted > 0 else 0.0
        total = int(meter.throttled_seconds * 1e6)
        row = f"avg10={100 * waiting:.2f} avg60={100 * waiting:.2f} avg300={100 * waiting:.2f} total={total}\n"
        return f"some {row}full {row}"

    def memory_max() -> str:
        return ("max" if meter.memory_limit is None else str(meter.memory_limit)) + "\n"

    def memory_stat() -> str:
        parts = memory_parts(container, meter.resident_bytes())
        inactive = parts.usage - parts.working_set
        kernel = parts.usage - parts.rss - parts.cache
        slab = int(kernel * _SLAB_SHARE)
        rows = {
            "anon": parts.rss,
            "file": parts.cache,
            "kernel": kernel,
            "kernel_stack": (kernel - slab) // 2,
            "pagetables": (kernel - slab) // 2,
            "sock": 0,
            "shmem": 0,
            "file_mapped": parts.cache // 2,
            "file_dirty": 0,
            "inactive_anon": parts.rss,
            "active_anon": 0,
            "inactive_file": inactive,
            "active_file": parts.cache - inactive,
            "unevictable": 0,
            "slab": slab,
        }
        return "".join(f"{name} {value}\n" for name, value in rows.items())

    killed = f"oom {int(container.oom_killed)}\noom_kill {int(container.oom_killed)}\n"
    return {
        "cgroup.controllers": text_file(lambda: "cpuset cpu io memory hugetlb pids rdma misc\n"),
        "cpu.max": text_file(cpu_max),
        "cpu.weight": text_file(lambda: f"{_weight(container)}\n"),
        "cpu.stat": text_file(cpu_stat),
        "cpu.pressure": text_file(cpu_pressure),
        "memory.max": text_file(memory_max),
        "memory.current": text_file(lambda: f"{memory_parts(container, meter.resident_bytes()).usage}\n"),
        "memory.peak": text_file(lambda: f"{meter.peak_memory}\n"),
        "memory.stat": text_file(memory_stat),
        "memory.events": text_file(lambda: f"low 0\nhigh 0\nmax 0\n{killed}oom_group_kill 0\n"),
        "memory.swap.current": text_file(lambda: "0\n"),
        "memory.swap.max": text_file(lambda: "0\n"),
        "pids.max": text_file(lambda: f"{container.pids.limit}\n"),
        "pids.current": text_file(lambda: f"{len(container.pids.processes)}\n"),
    }


def _weight(container: Container) -> int:
    """The weight that container runtimes give for a request of CPU, by way of its shares under version 1."""
    spec = container.host.pod.get("spec") or {}
    rows = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    own: Obj = next((row for row in rows if row["name"] == container.config.name), {})
    request = dig(own, "resources", "requests", "cpu") or dig(own, "resources", "limits", "cpu")
    shares = max(_LEAST_SHARES, milli(request) * 1024 // 1000) if request else _LEAST_SHARES
    return 1 + (shares - _LEAST_SHARES) * 9999 // 262142
