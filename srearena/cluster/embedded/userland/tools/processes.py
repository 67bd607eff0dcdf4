"""ps and top: the processes of the container."""

from __future__ import annotations

from datetime import UTC, datetime

from srearena.cluster.embedded.machine.files.procfs import load_average
from srearena.cluster.embedded.machine.host_processes import HostProcess, host_processes
from srearena.cluster.embedded.machine.host_root import machine_of
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import dig
from srearena.cluster.embedded.userland.tools.idling import duration
from srearena.cluster.embedded.userland.tools.listing import accounts_of, human_size
from srearena.cluster.embedded.userland.tools.options import parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.system import uptime_text
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox

AnyProcess = Process | HostProcess


def _command(process: AnyProcess) -> str:
    if process.done.is_set:
        plain = isinstance(process, Process) and speaks_busybox(process)
        return f"[{process.name}]" if plain else f"[{process.name}] <defunct>"
    return " ".join(process.argv).replace("\n", " ")


def _listed(process: Process) -> list[AnyProcess]:
    container = process.container
    found: list[AnyProcess] = list(container.pids.processes.values())
    machine = machine_of(container)
    if machine is not None and dig(container.host.pod, "spec", "hostPID"):
        found += host_processes(machine, container.pids)
    return sorted(found, key=lambda other: other.pid)


def _parent(process: AnyProcess) -> int:
    return 0 if process.parent is None else process.parent.pid


def _started(process: AnyProcess, now: float) -> str:
    shape = "%H:%M" if now - process.started_at < 86400 else "%b%d"
    return datetime.fromtimestamp(process.started_at, UTC).strftime(shape)


@tool("ps")
async def ps(process: Process, args: list[str]) -> int:
    if speaks_busybox(process):
        return await _busybox_ps(process, args)
    letters = "".join(arg.lstrip("-") for arg in args if not arg.startswith("--") and "=" not in arg and "," not in arg)
    columns = _output_columns(args)
    accounts = accounts_of(process)
    now = process.clock.now
    everything = _listed(process)
    if columns is not None:
        if not ("e" in letters or "A" in letters or "ax" in letters or "x" in letters):
            everything = [other for other in everything if other is process or other is process.parent]
        await process.write(_columns_text(process, everything, columns))
        return 0
    if "a" in letters and ("u" in letters or "x" in letters) and "u" in letters:
        lines = ["USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"]
        total = max(1, process.container.host.kernel.memory)
        for other in everything:
            share = other.memory * 100 / total
            size, resident = other.memory * 2 // 1024, other.memory // 1024
            state = other.state + ("s" if other.group == other.pid else "")
            user = accounts.user_name(other.credentials.uid)
            lines.append(
                f"{user:<8} {other.pid:>7}  0.0 {share:>4.1f} {size:>6} {resident:>5} ?        {state:<4} "
                f"{_started(other, now)}   0:00 {_command(other)}"
            )
    elif "f" in letters:
        lines = ["UID          PID    PPID  C STIME TTY          TIME CMD"]
        for other in everything:
            user = accounts.user_name(other.credentials.uid)
            began = _started(other, now)
            lines.append(f"{user:<8} {other.pid:>7} {_parent(other):>7}  0 {began} ?        00:00:00 {_command(other)}")
    else:
        if not set(letters) & set("eAax"):
            everything = [other for other in everything if other is process or other is process.parent]
        lines = ["    PID TTY          TIME CMD"]
        lines += [f"{other.pid:>7} ?        00:00:00 {other.name}" for other in everything]
    await process.write("\n".join(lines) + "\n")
    return 0


def _output_columns(args: list[str]) -> list[str] | None:
    for index, arg in enumerate(args):
        if arg in ("-o", "o", "--format") or (arg.startswith("-") and arg.endswith("o") and len(arg) < 5):
            return args[index + 1].split(",") if index + 1 < len(args) else []
        if arg.startswith("-o") and len(arg) > 2:
            return arg[2:].split(",")
    return None


def _columns_text(process: Process, processes: list[AnyProcess], columns: list[str]) -> str:
    accounts = accounts_of(process)
    now = process.clock.now
    titles = {"pid": "PID", "ppid": "PPID", "user": "USER", "comm": "COMMAND", "args": "COMMAND", "cmd": "CMD"}
    titles |= {
        "stat": "STAT",
        "state": "S",
        "rss": "RSS",
        "vsz": "VSZ",
        "etime": "ELAPSED",
        "uid": "UID",
        "time": "TIME",
    }
    titles |= {"pcpu": "%CPU", "%cpu": "%CPU", "pmem": "%MEM", "%mem": "%MEM", "tty": "TTY", "group": "GROUP"}
    names = [column.partition("=")[0] for column in columns]
    heads = [c.partition("=")[2] if "=" in c else titles.get(n, n.upper()) for c, n in zip(columns, names, strict=True)]

    def cell(other: AnyProcess, name: str) -> str:
        seconds = int(now - other.started_at)
        values = {
            "pid": str(other.pid),
            "ppid": str(_parent(other)),
            "user": accounts.user_name(other.credentials.uid),
            "group": accounts.group_name(other.credentials.gid),
            "uid": str(other.credentials.uid),
            "comm": other.name,
            "args": _command(other),
            "cmd": _command(other),
            "stat": other.state,
            "state": other.state,
            "rss": str(other.memory // 1024) if not speaks_busybox(process) else human_size(other.memory),
            "vsz": str(other.memory * 2 // 1024) if not speaks_busybox(process) else human_size(other.memory * 2),
            "etime": f"{seconds // 60:02d}:{seconds % 60:02d}",
            "time": "00:00:00",
            "tty": "?",
        }
        return values.get(name, "0.0")

    rows = [heads] + [[cell(other, name) for name in names] for other in processes]
    right = frozenset(("pid", "ppid", "rss", "vsz", "uid", "etime", "pcpu", "pmem", "%cpu", "%mem"))
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    lines = []
    for row in rows if any(heads) else rows[1:]:
        cells = [text.rjust(w) if n in right else text.ljust(w) for text, n, w in zip(row, names, widths, strict=True)]
        lines.append(" ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


async def _busybox_ps(process: Process, args: list[str]) -> int:
    columns = _output_columns(args)
    if columns is not None:
        await process.write(_columns_text(process, _listed(process), columns))
        return 0
    accounts = accounts_of(process)
    lines = ["PID   USER     TIME  COMMAND"]
    for other in _listed(process):
        user = accounts.user_name(other.credentials.uid)
        lines.append(f"{other.pid:>5} {user:<8}  0:00 {_command(other)}")
    await process.write("\n".join(lines) + "\n")
    return 0


@tool("top")
async def top(process: Process, args: list[str]) -> int:
    options = parse([arg if arg.startswith("-") else f"-{arg}" if arg == "b" else arg for arg in args], "bHcSi", "nd")
    rounds = int(options.value("n")) if options.value("n").isdigit() else None
    interval = duration(options.value("d", "3")) or 3.0
    shown = 0
    while rounds is None or shown < rounds:
        if shown:
            await process.sleep(interval)
        await process.write(_top_screen(process))
        shown += 1
    return 0


def _top_screen(process: Process) -> str:
    listed = _listed(process)
    total = process.container.host.kernel.memory // 1024
    used = total // 4 + process.container.meter.working_set // 1024
    screen = _busybox_screen if speaks_busybox(process) else _gnu_screen
    return "\n".join(screen(process, listed, total, used)) + "\n"


def _busybox_screen(process: Process, listed: list[AnyProcess], total: int, used: int) -> list[str]:
    accounts = accounts_of(process)
    lines = [
        f"Mem: {used}K used, {total - used}K free, 0K shrd, {total // 100}K buff, {total // 6}K cached",
        "CPU:   0% usr   0% sys   0% nic 100% idle   0% io   0% irq   0% sirq",
        f"Load average: {load_average(process.container):.2f} 0.00 0.00 1/{len(listed)} {listed[-1].pid}",
        "  PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND",
    ]
    for other in listed:
        user = accounts.user_name(other.credentials.uid)
        size = human_size(other.memory * 2)
        lead = f"{other.pid:>5} {_parent(other):>5} {user:<8} {other.state:<4} {size:>5}"
        lines.append(f"{lead}   0%   0   0% {_command(other)}")
    return lines


def _gnu_screen(process: Process, listed: list[AnyProcess], total: int, used: int) -> list[str]:
    accounts = accounts_of(process)
    running = sum(not other.done.is_set for other in listed)
    zombies = len(listed) - running
    free, cached = (total - used) / 1024, total / 6144
    lines = [
        f"top -{uptime_text(process)}",
        f"Tasks: {len(listed):>3} total,   1 running, {running - 1:>3} sleeping,   0 stopped, {zombies:>3} zombie",
        "%Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st",
        f"MiB Mem : {total / 1024:>8.1f} total, {free:>8.1f} free, {used / 1024:>8.1f} used, {cached:>8.1f} buff/cache",
        f"MiB Swap:      0.0 total,      0.0 free,      0.0 used. {free:>8.1f} avail Mem",
        "",
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND",
    ]
    for other in listed:
        user = accounts.user_name(other.credentials.uid)
        resident = other.memory // 1024
        share = resident * 100 / max(1, total)
        lead = f"{other.pid:>7} {user:<8}  20   0 {resident * 2:>7} {resident:>6}      0 {other.state}"
        lines.append(f"{lead}   0.0 {share:>5.1f}   0:00.00 {other.name}")
    return lines
