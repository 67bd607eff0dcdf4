"""wrk2: an open loop of requests at a fixed rate for a while, and the table it prints at the end.

What its Lua script sends is read from the script's own comments (`-- route: GET /hotels weight=60`), since nothing
here runs Lua.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from srearena.application_model.amounts import seconds
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import stop_signal
from srearena.cluster.embedded.traffic.driving import Driver, Tally
from srearena.cluster.embedded.traffic.sources import source_of_load
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
        lasts = seconds(options.get("-d", "10s"))
        await process.write(f"Running {lasts:g}s test @ {operands[0]}\n")
        await process.write(f"  {options.get('-t', '2')} threads and {options.get('-c', '10')} connections\n")
        traffic = self.traffic
        stop_signal(process)
        driver = source_of_load(traffic, process, "wrk2", f"{url.hostname}:{url.port or 80}", mix)
        traffic.settle()
        driver.rate, driver.tally, driver.resting = float(options["-R"]), Tally(), False
        began = process.clock.now
        # A caught signal wakes it before the time is up.
        try:
            await process.changed(lasts)
        finally:
            traffic.settle()
            driver.resting = True
        await process.write(report(driver, process.clock.now - began))
        return 0


def _arguments(words: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    operands: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            operands.append(word)
        elif word in _VALUED and rest:
            options["-R" if word == "--rate" else word] = rest.pop(0)
        elif len(word) > 2 and word[:2] in _VALUED:
            options[word[:2]] = word[2:]
    return options, operands


def report(driver: Driver, lasted: float) -> str:
    """What wrk2 prints after a round."""
    tally = driver.tally
    lasted = max(lasted, 1e-9)
    mean, deviation = tally.moments()
    times = tally.quantiles([min(share / 100, 0.999999) for share in _SHARES])
    lines = [
        "  Thread Stats   Avg      Stdev     99%   +/- Stdev",
        f"    Latency   {_time(mean):>8}  {_time(deviation):>8}  {_time(times[3]):>8}   68.00%",
        f"    Req/Sec   {tally.answered / lasted / 3:8.2f}  {(tally.answered / lasted) ** 0.5:8.2f}",
        "  Latency Distribution (HdrHistogram - Recorded Latency)",
        *(f"{share:7.3f}%  {_time(value):>8}" for share, value in zip(_SHARES, times, strict=True)),
        "",
        f"  {round(tally.answered)} requests in {lasted:.2f}s, {tally.received / 1024**2:.2f}MB read",
    ]
    if tally.unconnected >= 1 or tally.late >= 1:
        connect, late = round(tally.unconnected), round(tally.late)
        lines.append(f"  Socket errors: connect {connect}, read 0, write 0, timeout {late}")
    if tally.refused >= 1:
        lines.append(f"  Non-2xx or 3xx responses: {round(tally.refused)}")
    lines += [
        f"Requests/sec: {tally.answered / lasted:10.2f}",
        f"Transfer/sec: {tally.received / lasted / 1024:10.2f}KB",
    ]
    return "\n".join(lines) + "\n"


def _time(value: float) -> str:
    if value >= 1:
        return f"{value:.2f}s"
    return f"{value * 1e3:.2f}ms" if value >= 1e-3 else f"{value * 1e6:.2f}us"
