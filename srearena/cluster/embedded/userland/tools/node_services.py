"""systemctl, journalctl and dmesg: the services of a machine and what it logged.

They work in the root of a machine (`chroot /host`), where its service manager and its journal can be reached.
"""

from __future__ import annotations

from datetime import UTC, datetime

from srearena.cluster.embedded.durations import human_duration
from srearena.cluster.embedded.machine.host_root import machine_of, on_host
from srearena.cluster.embedded.machine.journal import KERNEL, JournalEntry
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.machine.system_services import SystemService
from srearena.cluster.embedded.userland.tools.options import parse
from srearena.cluster.embedded.userland.tools.registry import tool

_NOT_BOOTED = (
    "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
    "Failed to connect to bus: Host is down\n"
)
_SHOWN = 10
"""Lines of the log below a status."""


def _machine(process: Process) -> Machine | None:
    return on_host(process.container, process.files.filesystem)


def _stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%b %d %H:%M:%S")


def _line(machine: Machine, entry: JournalEntry) -> str:
    service = machine.services.get(entry.unit)
    sender = f"{entry.unit}[{service.pid}]" if service is not None else entry.unit
    return f"{_stamp(entry.time)} {machine.name} {entry.sender or sender}: {entry.text}\n"


@tool("systemctl")
async def systemctl(process: Process, args: list[str]) -> int:
    machine = _machine(process)
    if machine is None:
        await process.error(_NOT_BOOTED)
        return 1
    long = {"no-pager": "P", "quiet": "q", "full": "l", "all": "a", "type=": "t", "state=": "s", "lines=": "n"}
    options = parse(args, "qlaP", "tsn", long=long)
    verb, *names = options.operands or ["list-units"]
    if verb in ("list-units", "list-unit-files"):
        return await _list_units(process, machine)
    if verb in ("daemon-reload", "reset-failed"):
        return 0
    if not names:
        await process.error("Too few arguments.\n")
        return 1
    status = 0
    for name in names:
        unit = name.removesuffix(".service")
        service = machine.services.get(unit)
        if service is None:
            known = verb in ("status", "is-active", "is-enabled")
            text = f"Unit {unit}.service could not be found.\n"
            await process.error(text if known else f"Failed to {verb} {unit}.service: Unit {unit}.service not found.\n")
            status = 4 if known else 5
        elif verb == "status":
            await process.write(_status_text(process, machine, service))
            status = status or (0 if service.running() else 3)
        elif verb == "is-active":
            await process.write(f"{service.state[0]}\n")
            status = status or (0 if service.running() else 3)
        elif verb == "is-enabled":
            await process.write("enabled\n")
        elif verb == "cat":
            await process.write(_unit_file(service))
        elif verb in ("start", "stop", "restart", "try-restart", "reload-or-restart"):
            status = await _control(process, service, verb) or status
        else:
            await process.error(f"Unknown command verb '{verb}'.\n")
            return 1
    return status


async def _control(process: Process, service: SystemService, verb: str) -> int:
    if not process.credentials.can("SYS_ADMIN"):
        await process.error(f"Failed to {verb} {service.name}.service: Access denied\n")
        return 4
    if service.start is None or service.stop is None:
        if verb == "start":
            return 0
        unit = f"{service.name}.service"
        text = f"Operation refused, unit {unit} may be requested by dependency only"
        await process.error(f"Failed to {verb} {unit}: {text} (it is configured to refuse manual stop).\n")
        return 4
    if verb != "start":
        service.stop()
    if verb != "stop":
        service.start()
    return 0


async def _list_units(process: Process, machine: Machine) -> int:
    lines = ["  UNIT                LOAD   ACTIVE   SUB     DESCRIPTION\n"]
    for service in machine.services.values():
        active, sub = service.state
        lines.append(f"  {service.name + '.service':<19} loaded {active:<8} {sub:<7} {service.description}\n")
    await process.write("".join(lines))
    return 0


def _unit_file(service: SystemService) -> str:
    unit = f"[Unit]\nDescription={service.description}\n\n[Service]\nExecStart={service.command}\nRestart=always\n"
    return f"# /etc/systemd/system/{service.name}.service\n{unit}\n[Install]\nWantedBy=multi-user.target\n"


def _status_text(process: Process, machine: Machine, service: SystemService) -> str:
    running = service.running()
    moment = datetime.fromtimestamp(service.since(), UTC).strftime("%a %Y-%m-%d %H:%M:%S UTC")
    age = human_duration(process.clock.now - service.since())
    state = "{} ({})".format(*service.state)
    if service.is_failing():
        state += " (Result: exit-code)"
    lines = [
        f"{'○' if service.state[0] == 'inactive' else '●'} {service.name}.service - {service.description}",
        f"     Loaded: loaded (/etc/systemd/system/{service.name}.service; enabled; preset: enabled)",
        f"     Active: {state} since {moment}; {age} ago",
    ]
    if running:
        lines.append(f"   Main PID: {service.pid} ({service.path.rpartition('/')[2]})")
        lines.append(f"     CGroup: /system.slice/{service.name}.service")
        lines.append(f"             └─{service.pid} {service.command}")
    recent = machine.journal.of(service.name)[-_SHOWN:]
    log = "".join(_line(machine, entry) for entry in recent)
    return "\n".join(lines) + "\n" + (f"\n{log}" if log else "")


@tool("journalctl")
async def journalctl(process: Process, args: list[str]) -> int:
    machine = _machine(process)
    if machine is None:
        await process.error("No journal files were found.\n")
        return 0
    long = {"unit=": "u", "lines=": "n", "no-pager": "P", "dmesg": "k", "reverse": "r", "follow": "f", "since=": "S"}
    options = parse(args, "kPrfxeqa", "unSUopt", long={**long, "until=": "U", "output=": "o", "priority=": "p"})
    if "f" in options or "S" in options or "U" in options or options.value("o", "short") not in ("short", "cat"):
        await process.error("journalctl: this build has no support for --follow, --since, --until and --output\n")
        return 1
    unit = KERNEL if "k" in options else options.value("u").removesuffix(".service")
    entries = machine.journal.of(unit)
    wanted = options.value("n")
    if wanted.isdigit():
        entries = entries[max(0, len(entries) - int(wanted)) :]
    if "r" in options:
        entries.reverse()
    if not entries:
        await process.write("-- No entries --\n")
        return 0
    plain = options.value("o") == "cat"
    await process.write("".join(f"{entry.text}\n" if plain else _line(machine, entry) for entry in entries))
    return 0


@tool("dmesg")
async def dmesg(process: Process, args: list[str]) -> int:
    options = parse(args, "TkHwex", "nl", long={"ctime": "T", "human": "H", "follow": "w"})
    machine = machine_of(process.container)
    if machine is None or not process.credentials.can("SYS_ADMIN"):
        await process.error("dmesg: read kernel buffer failed: Operation not permitted\n")
        return 1
    lines = []
    for entry in machine.journal.of(KERNEL):
        seconds = entry.time - machine.booted_at
        moment = datetime.fromtimestamp(entry.time, UTC).strftime("%a %b %e %H:%M:%S %Y")
        lines.append(f"[{moment}] {entry.text}\n" if "T" in options else f"[{seconds:>12.6f}] {entry.text}\n")
    await process.write("".join(lines))
    return 0
