"""wlgen, the load generator of Blueprint Hotel Reservation: an open loop with one spike."""

from __future__ import annotations

from datetime import UTC, datetime

from srearena.application_model.amounts import seconds
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import Flags, stop_signal
from srearena.cluster.embedded.traffic.load import Driver, Tally
from srearena.cluster.embedded.traffic.load_generator import load_driver
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
        driver = load_driver(traffic, process, "wlgen", address, MIX)
        traffic.catch_up()
        driver.tally, driver.paused = Tally(), False
        started_at = process.clock.now
        await process.write(f"Starting workload: {rate:g} requests per second for {total:g}s\n")
        try:
            for length, factor in ((stable, 1.0), (trigger, spike), (total, 1.0)):
                left = started_at + total - process.clock.now
                if left <= 0:
                    break
                traffic.catch_up()
                driver.rate = rate * factor
                # A caught signal ends it early.
                if await process.changed(min(length, left)):
                    break
        finally:
            traffic.catch_up()
            driver.paused = True
        await process.write(report(driver, started_at, process.clock.now - started_at))
        return 0


def report(driver: Driver, started_at: float, seconds_run: float) -> str:
    tally = driver.tally
    errors = tally.errors + tally.timeouts + tally.connect_errors
    total = tally.completed + tally.timeouts + tally.connect_errors
    times = tally.quantiles(_SHARES)
    lines = [
        "Finished all requests",
        f"Start time: {datetime.fromtimestamp(started_at, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}",
        f"Total requests: {round(total)}",
        f"Total errors: {round(errors)}",
        f"Throughput (req/s): {total / max(seconds_run, 1e-9):.2f}",
        "Latency distribution",
        *(f"p{share * 100:g}: {value * 1000:.3f}ms" for share, value in zip(_SHARES, times, strict=True)),
        "End of latency distribution",
    ]
    return "\n".join(lines) + "\n"
