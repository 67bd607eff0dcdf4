"""The generator that comes with Blueprint Hotel Reservation: an open loop with one spike in it."""

from __future__ import annotations

from datetime import UTC, datetime

from srearena.application_model.amounts import seconds
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import Flags, stop_signal
from srearena.cluster.embedded.traffic.driving import Driver, Tally
from srearena.cluster.embedded.traffic.sources import source_of_load
from srearena.cluster.embedded.traffic.traffic_program import TrafficProgram

MIX = (
    ("GET", "/SearchHandler", 60.0),
    ("GET", "/RecommendHandler", 38.0),
    ("GET", "/UserHandler", 1.0),
    ("GET", "/ReservationHandler", 1.0),
)
_SHARES = (0.5, 0.9, 0.95, 0.99)


class WorkloadGenerator(TrafficProgram):
    entrypoint = ("/app/wlgen_proc",)
    base = "debian"
    binaries = ("/app/wlgen_proc",)
    working_dir = "/app"
    idle_memory = 20 * 1024 * 1024

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        address = process.env.get("FRONTEND_SERVICE_HTTP_DIAL_ADDR", "")
        if not address:
            await process.error("panic: environment variable FRONTEND_SERVICE_HTTP_DIAL_ADDR is not set\n")
            return 2
        traffic = self.traffic
        rate, spike = float(flags.get("tput", "1000")), float(flags.get("multiplier", "1"))
        stable, trigger = float(flags.get("stabletime", "60")), float(flags.get("triggertime", "30"))
        total = seconds(flags.get("duration", "60s"))
        stop_signal(process)
        driver = source_of_load(traffic, process, "wlgen", address, MIX)
        traffic.settle()
        driver.tally, driver.resting = Tally(), False
        began = process.clock.now
        await process.write(f"Starting workload: {rate:g} requests per second for {total:g}s\n")
        try:
            for length, factor in ((stable, 1.0), (trigger, spike), (total, 1.0)):
                left = began + total - process.clock.now
                if left <= 0:
                    break
                traffic.settle()
                driver.rate = rate * factor
                # A caught signal ends it before its time.
                if await process.changed(min(length, left)):
                    break
        finally:
            traffic.settle()
            driver.resting = True
        await process.write(report(driver, began, process.clock.now - began))
        return 0


def report(driver: Driver, began: float, lasted: float) -> str:
    tally = driver.tally
    errors = tally.refused + tally.late + tally.unconnected
    total = tally.answered + tally.late + tally.unconnected
    times = tally.quantiles(_SHARES)
    lines = [
        "Finished all requests",
        f"Start time: {datetime.fromtimestamp(began, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}",
        f"Total requests: {round(total)}",
        f"Total errors: {round(errors)}",
        f"Throughput (req/s): {total / max(lasted, 1e-9):.2f}",
        "Latency distribution",
        *(f"p{share * 100:g}: {value * 1000:.3f}ms" for share, value in zip(_SHARES, times, strict=True)),
        "End of latency distribution",
    ]
    return "\n".join(lines) + "\n"
