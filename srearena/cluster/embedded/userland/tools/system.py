"""Tools about who and where one is: id, hostname, uname, uptime, free and their like."""

from __future__ import annotations

from datetime import UTC, datetime

from srearena.cluster.embedded.machine.files.procfs import load_average
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.listing import accounts_of, human_size
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox


@tool("printenv")
async def printenv(process: Process, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    if not names:
        await process.write("".join(f"{name}={value}\n" for name, value in process.env.items()))
        return 0
    status = 0
    for name in names:
        value = process.env.get(name)
        if value is None:
            status = 1
        else:
            await process.write(f"{value}\n")
    return status


@tool("id")
async def show_id(process: Process, args: list[str]) -> int:
    options = parse(args, "ugGnrz")
    who = process.credentials
    accounts = accounts_of(process)
    if options.operands:
        account = accounts.by_name(options.operands[0])
        if account is None:
            text = (
                f"unknown user {options.operands[0]}"
                if speaks_busybox(process)
                else f"'{options.operands[0]}': no such user"
            )
            await process.error(f"id: {text}\n")
            return 1
        uid, gid, groups = account.uid, account.gid, (account.gid, *accounts.groups_of(account.name))
    else:
        uid, gid, groups = who.uid, who.gid, tuple(sorted(who.groups)) or (who.gid,)  # as the kernel keeps them
    named = "n" in options
    if "u" in options:
        text = accounts.user_name(uid) if named else str(uid)
    elif "g" in options:
        text = accounts.group_name(gid) if named else str(gid)
    elif "G" in options:
        text = " ".join(accounts.group_name(group) if named else str(group) for group in groups)
    else:
        user = accounts.by_uid(uid).name
        labels = ",".join(_labelled(group, accounts.group_name(group)) for group in groups)
        text = f"uid={uid}{f'({user})' if user else ''} gid={_labelled(gid, accounts.group_name(gid))} groups={labels}"
    await process.write(f"{text}\n")
    return 0


def _labelled(number: int, name: str) -> str:
    return str(number) if name == str(number) else f"{number}({name})"


@tool("whoami")
async def whoami(process: Process, args: list[str]) -> int:
    uid = process.credentials.uid
    name = accounts_of(process).by_uid(uid).name
    if not name:
        text = f"unknown uid {uid}" if speaks_busybox(process) else f"cannot find name for user ID {uid}"
        await process.error(f"whoami: {text}\n")
        return 1
    await process.write(f"{name}\n")
    return 0


@tool("hostname")
async def hostname(process: Process, args: list[str]) -> int:
    options = parse(args, "ifsdIAay", long={"ip-address": "i", "fqdn": "f", "short": "s", "all-ip-addresses": "I"})
    name = process.container.host.hostname
    if options.operands:
        text = (
            "sethostname: Operation not permitted"
            if speaks_busybox(process)
            else "you must be root to change the host name"
        )
        await process.error(f"hostname: {text}\n")
        return 1
    if {"i", "I"} & options.flags:
        await process.write(" ".join(process.container.namespace.addresses) + ("\n" if "i" in options else " \n"))
    elif "s" in options:
        await process.write(name.partition(".")[0] + "\n")
    elif "d" in options:
        await process.write(name.partition(".")[2] + "\n")
    else:
        await process.write(f"{name}\n")
    return 0


@tool("uname", "arch")
async def uname(process: Process, args: list[str]) -> int:
    options = parse(args, "asnrvmpio", long={"all": "a", "kernel-name": "s", "kernel-release": "r", "machine": "m"})
    kernel = process.container.host.kernel
    if process.name == "arch":
        await process.write(f"{kernel.machine}\n")
        return 0
    values = {
        "s": "Linux",
        "n": process.container.host.hostname,
        "r": kernel.release,
        "v": kernel.version,
        "m": kernel.machine,
        "o": "Linux" if speaks_busybox(process) else "GNU/Linux",
    }
    wanted = "snrvmo" if "a" in options else "".join(letter for letter in "snrvmo" if letter in options) or "s"
    await process.write(" ".join(values[letter] for letter in wanted) + "\n")
    return 0


@tool("nproc")
async def nproc(process: Process, args: list[str]) -> int:
    await process.write(f"{process.container.host.kernel.cpus}\n")
    return 0


def uptime_text(process: Process) -> str:
    """The first line of uptime and top."""
    container = process.container
    seconds = int(container.clock.now - container.host.kernel.booted_at)
    days, rest = divmod(seconds, 86400)
    hours, minutes = divmod(rest // 60, 60)
    clock = datetime.fromtimestamp(container.clock.now, UTC).strftime("%H:%M:%S")
    up = f"{days} day{'s' if days != 1 else ''}, " if days else ""
    up += f"{hours:2d}:{minutes:02d}" if hours else f"{minutes} min"
    load = load_average(container)
    return f" {clock} up {up},  0 users,  load average: {load:.2f}, {load:.2f}, {load:.2f}"


@tool("uptime")
async def uptime(process: Process, args: list[str]) -> int:
    await process.write(uptime_text(process) + "\n")
    return 0


@tool("free")
async def free(process: Process, args: list[str]) -> int:
    options = parse(args, "bkmghtw", "sc", long={"human": "h", "mega": "m"})
    total = process.container.host.kernel.memory
    used = total // 4 + process.container.meter.working_set
    cache = total // 6
    available = max(0, total - used)
    unused = max(0, available - cache)
    unit = next((size for letter, size in (("b", 1), ("m", 1024**2), ("g", 1024**3)) if letter in options), 1024)

    def size_text(value: int) -> str:
        return (
            human_size(value) + ("i" if not speaks_busybox(process) else "") if "h" in options else str(value // unit)
        )

    rows = (
        ("Mem:", total, used, unused, 0, cache, available),
        ("Swap:", 0, 0, 0),
    )
    heads = ("total", "used", "free", "shared", "buff/cache", "available")
    text = " " * 15 + "".join(f"{head:>12}" for head in heads)[3:] + "\n"
    for name, *values in rows:
        text += f"{name:<8}" + "".join(f"{size_text(int(value)):>12}" for value in values) + "\n"
    await process.write(text)
    return 0


@tool("tty")
async def tty(process: Process, args: list[str]) -> int:
    on_terminal = 0 in process.fds and process.fd(0).is_tty
    if "-s" not in args:
        await process.write("/dev/pts/0\n" if on_terminal else "not a tty\n")
    return 0 if on_terminal else 1


@tool("stty")
async def stty(process: Process, args: list[str]) -> int:
    if 0 not in process.fds or not process.fd(0).is_tty:
        await process.error("stty: 'standard input': Inappropriate ioctl for device\n")
        return 1
    if args == ["size"]:
        await process.write("24 80\n")
    elif not args:
        await process.write("speed 38400 baud; line = 0;\n")
    return 0


@tool("clear")
async def clear(process: Process, args: list[str]) -> int:
    await process.write("\x1b[H\x1b[J")
    return 0


@tool("pwd")
async def pwd(process: Process, args: list[str]) -> int:
    await process.write(f"{process.cwd}\n")
    return 0


@tool("logger")
async def logger(process: Process, args: list[str]) -> int:
    return 0


@tool("mkfifo")
async def mkfifo(process: Process, args: list[str]) -> int:
    if not args:
        raise UsageError("missing operand")
    for path in args:
        text = f"cannot create fifo '{path}'" if not speaks_busybox(process) else path
        await process.error(f"mkfifo: {text}: Operation not permitted\n")
    return 1
