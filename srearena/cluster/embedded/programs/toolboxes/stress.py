"""Programs that use up what they are given: stress, stress-ng and vish/stress."""

from __future__ import annotations

import re
from signal import Signals

from srearena.cluster.embedded import quantity
from srearena.cluster.embedded.clock import first_of
from srearena.cluster.embedded.machine.processes.execution import Entry
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, stop_signal
from srearena.cluster.embedded.programs.timestamps import klog_line
from srearena.cluster.embedded.userland.tools.idling import duration

_UNITS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
ALLOCATION_RATE = 1024**3
"""Bytes a second that touching fresh memory takes."""


def _size(text: str, default: int) -> int:
    found = re.fullmatch(r"(\d{1,12})([bkmg]?)", text.lower())
    return int(found.group(1)) * _UNITS[found.group(2)] if found else default


def _bytes(text: str) -> int:
    try:
        return max(0, quantity.units(text))
    except quantity.QuantityError:
        return 0


async def fill_memory(process: Process, size: int) -> None:
    """Touch that much memory, as fast as a machine can; more than the limit is the end."""
    step = max(1024 * 1024, size // 16)
    while size > 0:
        amount = min(step, size)
        await process.spend(amount / ALLOCATION_RATE)
        await process.allocate(amount)
        size -= amount


@program("polinux/stress", "progrium/stress", "polinux/stress-ng", "alexeiled/stress-ng", "stress")
class Stress(Program):
    cmd = ("stress", "--help")
    base = "alpine"
    follows_tag = False
    binaries = ("/usr/local/bin/stress", "/usr/local/bin/stress-ng")
    idle_cpu = 0.0
    idle_memory = 1024 * 1024

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:], frozenset(("v", "verbose", "q", "quiet", "vm-keep", "metrics-brief", "help")))
        counts = {name: self._count(flags, name) for name in ("cpu", "io", "vm", "hdd")}
        name = process.binary
        if not any(counts.values()):
            await process.write(
                f"`{name}' imposes certain types of compute stress on your system\n\nUsage: {name} [OPTION [ARG]] ...\n"
            )
            return 0
        hogs = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        await process.write(f"{name}: info: [{process.pid}] dispatching hogs: {hogs}\n")
        size = _size(flags.get("vm-bytes", "256m"), 256 * 1024**2)
        workers = [process.fork(_memory_hog(size), argv=process.argv) for _ in range(counts["vm"])]
        process.container.meter.load(process, counts["cpu"] + counts["io"] * 0.2 + counts["vm"] * self._churn(flags))
        limit = duration(flags.get("timeout") or flags.get("t")) if flags.get("timeout") or flags.get("t") else None
        stop = stop_signal(process)
        started = process.clock.now
        try:
            ended = await first_of(process.clock, stop, *(worker.done for worker in workers), timeout=limit)
        finally:
            process.container.meter.load(process, 0)
        for worker in workers:
            worker.terminate(Signals.SIGKILL)
        if stop.is_set:
            return 128 + stop.value
        if ended is not None:
            dead = next(worker for worker in workers if worker.done is ended)
            await process.error(
                f"{name}: FAIL: [{process.pid}] (416) <-- worker {dead.pid} got signal {dead.exit_signal}\n"
                f"{name}: WARN: [{process.pid}] (418) now reaping child worker processes\n"
                f"{name}: FAIL: [{process.pid}] (452) failed run completed in {int(process.clock.now - started)}s\n"
            )
            return 1
        await process.write(f"{name}: info: [{process.pid}] successful run completed in {int(limit or 0)}s\n")
        return 0

    @staticmethod
    def _count(flags: Flags, name: str) -> int:
        text = flags.get(name) or flags.get(name[0])
        return min(64, int(text)) if text.isdigit() else 0

    @staticmethod
    def _churn(flags: Flags) -> float:
        """A memory worker with --vm-hang or --vm-keep is idle between writes."""
        return 0.02 if "vm-hang" in flags.values or "vm-keep" in flags.values else 0.9


def _memory_hog(size: int) -> Entry:
    async def entry(process: Process) -> int:
        await fill_memory(process, size)
        stop = process.catch(Signals.SIGTERM)
        await stop.wait()
        return 0

    return entry


@program("vish/stress")
class VishStress(Program):
    entrypoint = ("/stress",)
    cmd = ("-logtostderr",)
    base = "scratch"
    follows_tag = False
    binaries = ("/stress",)
    idle_cpu = 0.0
    idle_memory = 4 * 1024 * 1024

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:], frozenset(("logtostderr",)))
        total = _bytes(flags.get("mem-total", "0"))
        chunk = _bytes(flags.get("mem-alloc-size", "4Ki")) or 4096
        pause = duration(flags.get("mem-alloc-sleep", "1ms").replace("ms", "")) or 0.001
        if flags.get("mem-alloc-sleep", "1ms").endswith("ms"):
            pause /= 1000
        cpus = flags.get("cpus", "0")
        stop = stop_signal(process)
        text = f'Allocating "{flags.get("mem-total", "0")}" memory, in "{flags.get("mem-alloc-size", "4Ki")}" chunks'
        await self._log(process, 26, f"{text}, with a {flags.get('mem-alloc-sleep', '1ms')} sleep between allocations")
        if cpus.isdigit() and int(cpus):
            process.container.meter.load(process, int(cpus))
            for _ in range(int(cpus)):
                await self._log(process, 39, "Spawning a thread to consume CPU")
        allocated = 0
        while allocated < total and not stop.is_set:
            await process.allocate(min(chunk, total - allocated))
            allocated += chunk
            await process.sleep(max(pause, 0.001))
        if total:
            await self._log(process, 29, f'Allocated "{flags.get("mem-total", "0")}" memory')
        await stop.wait()
        process.container.meter.load(process, 0)
        return 2

    @staticmethod
    async def _log(process: Process, line: int, text: str) -> None:
        await process.error(klog_line(process, "I", f"main.go:{line}", text))
