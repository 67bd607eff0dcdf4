"""wrk2: requests at a fixed rate for some time, one at a time on each connection, and the table it prints at the end.

The requests of its Lua script are read from comments in the script (`-- route: GET /hotels weight=60`), since there is
no Lua interpreter here.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from srearena.application_model.amounts import seconds
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import stop_signal
from srearena.cluster.embedded.traffic.load import Driver, Tally
from srearena.cluster.embedded.traffic.load_generator import load_driver
from srearena.cluster.embedded.traffic.traffic_program import TrafficProgram

_ROUTE = re.compile(r"^\s*--\s*route:\s*([A-Z]+)\s+(/\S*)(?:.*?\bweight=([0-9.]+))?", re.MULTILINE)
_VALUED = {"-t", "-c", "-d", "-R", "-D", "-s", "-T", "--rate", "--timeout", "--duration", "-H"}
_SHARES = (50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0)


class Wrk(TrafficProgram):
    cmd = ("wrk",)
    base = "debian"
    binaries = ("/usr/local/bin/wrk", "/usr/local/bin/wrk2")
    working_dir = "/"
    idle_memory = 12 * 1024 * 1024

    async def run(self, process: Process) -> int:
        options, operands = _arguments(process.argv[1:])
        if not operands or "-R" not in options:
            await process.write(
                "Usage: wrk <options> <url>                           \n"
                "wrk2: a throughput (-R) and an address must be given\n"
            )
            return 1
        url = urlsplit(operands[0])
        script = options.get("-s", "")
        if script and not process.files.is_file(script):
            await process.error(f"{script}: cannot open {script}\n")
            return 1
        text = process.files.read_text(script) if script else ""
        mix = [(m[1], m[2], float(m[3] or 1)) for m in _ROUTE.finditer(text)] or [("GET", url.path or "/", 1.0)]
        duration = seconds(options.get("-d", "10s"))
        await process.write(f"Running {duration:g}s test @ {operands[0]}\n")
        await process.write(f"  {options.get('-t', '2')} threads and {options.get('-c', '10')} connections\n")
        traffic = self.traffic
        stop_signal(process)
        driver = load_driver(traffic, process, "wrk2", f"{url.hostname}:{url.port or 80}", mix)
        traffic.catch_up()
        driver.rate, driver.tally, driver.paused = float(options["-R"]), Tally(), False
        driver.connections = float(options.get("-c", "10"))
        started_at = process.clock.now
        # A caught signal ends it early.
        try:
            await process.changed(duration)
        finally:
            traffic.catch_up()
            driver.paused = True
        await process.write(report(driver, process.clock.now - started_at))
        return 0


def _arguments(words: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    operands: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if not word.startswith("-"):
            operands.append(word)
        elif word in _VALUED and remaining:
            options["-R" if word == "--rate" else word] = remaining.pop(0)
        elif len(word) > 2 and word[:2] in _VALUED:
            options[word[:2]] = word[2:]
    return options, operands


def report(driver: Driver, seconds_run: float) -> str:
    """Return what wrk2 prints after a run."""
    tally = driver.tally
    seconds_run = max(seconds_run, 1e-9)
    mean, deviation = tally.moments()
    times = tally.quantiles([min(share / 100, 0.999999) for share in _SHARES])
    lines = [
        "  Thread Stats   Avg      Stdev     99%   +/- Stdev",
        f"    Latency   {_time(mean):>8}  {_time(deviation):>8}  {_time(times[3]):>8}   68.00%",
        f"    Req/Sec   {tally.completed / seconds_run / 3:8.2f}  {(tally.completed / seconds_run) ** 0.5:8.2f}",
        "  Latency Distribution (HdrHistogram - Recorded Latency)",
        *(f"{share:7.3f}%  {_time(value):>8}" for share, value in zip(_SHARES, times, strict=True)),
        "",
        f"  {round(tally.completed)} requests in {seconds_run:.2f}s, {tally.bytes_received / 1024**2:.2f}MB read",
    ]
    if tally.connect_errors >= 1 or tally.timeouts >= 1:
        connect, timeouts = round(tally.connect_errors), round(tally.timeouts)
        lines.append(f"  Socket errors: connect {connect}, read 0, write 0, timeout {timeouts}")
    if tally.errors >= 1:
        lines.append(f"  Non-2xx or 3xx responses: {round(tally.errors)}")
    lines += [
        f"Requests/sec: {tally.completed / seconds_run:10.2f}",
        f"Transfer/sec: {tally.bytes_received / seconds_run / 1024:10.2f}KB",
    ]
    return "\n".join(lines) + "\n"


def _time(value: float) -> str:
    if value >= 1:
        return f"{value:.2f}s"
    return f"{value * 1e3:.2f}ms" if value >= 1e-3 else f"{value * 1e6:.2f}us"
