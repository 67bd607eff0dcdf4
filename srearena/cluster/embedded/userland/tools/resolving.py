"""Tools that ask the resolver: nslookup, dig, host, getent."""

from __future__ import annotations

from datetime import UTC, datetime

from srearena.cluster.embedded.machine.networking.reachability import DnsStatus, Resolution
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.listing import accounts_of
from srearena.cluster.embedded.userland.tools.options import UsageError
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox

_TIMED_OUT = ";; connection timed out; no servers could be reached\n"


def _resolv_conf(process: Process) -> tuple[list[str], list[str]]:
    """Name servers and search list, as the tool reads them from the file."""
    servers: list[str] = []
    search: list[str] = []
    try:
        text = process.files.read_text("/etc/resolv.conf")
    except OSError:
        return ["127.0.0.1"], []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["nameserver"] and len(words) > 1:
            servers.append(words[1])
        elif words[:1] in (["search"], ["domain"]):
            search = words[1:]
    return servers or ["127.0.0.1"], search


def _is_address(text: str) -> bool:
    parts = text.split(".")
    return ":" in text or (len(parts) == 4 and all(part.isdigit() for part in parts))


def _reverse(address: str) -> str:
    return ".".join(reversed(address.split("."))) + ".in-addr.arpa"


def _record_lines(answer: Resolution) -> str:
    lines = []
    for record in answer.records:
        name = record.name.rstrip(".")
        if record.kind in ("A", "AAAA"):
            lines.append(f"Name:\t{name}\nAddress: {record.value}\n")
        elif record.kind == "CNAME":
            lines.append(f"{name}\tcanonical name = {record.value.rstrip('.')}\n")
        elif record.kind == "PTR":
            lines.append(f"{name}\tname = {record.value.rstrip('.')}\n")
        elif record.kind == "SRV":
            lines.append(f"{name}\tservice = {record.value}\n")
        elif record.kind == "TXT":
            lines.append(f'{name}\ttext = "{record.value}"\n')
        else:
            lines.append(f"{name}\t{record.kind.lower()} = {record.value}\n")
    return "".join(lines)


@tool("nslookup")
async def nslookup(process: Process, args: list[str]) -> int:
    kinds: list[str] = []
    words: list[str] = []
    for arg in args:
        name, _, value = arg.partition("=")
        if name in ("-type", "-query", "-q", "-querytype"):
            kinds = [value.upper()]
        elif not arg.startswith("-"):
            words.append(arg)
    if not words:
        raise UsageError("usage: nslookup [-type=TYPE] HOST [SERVER]")
    servers, search = _resolv_conf(process)
    server = words[1] if len(words) > 1 else servers[0]
    busybox = speaks_busybox(process)
    name = words[0]
    if _is_address(name):
        kinds, names = ["PTR"], [_reverse(name)]
    elif busybox:
        # Its own resolver: dotted names are asked for as they are, others with every search domain.
        names = [name] if "." in name or not search else [f"{name}.{domain}" for domain in search]
    else:
        names = [name]
    queried = server if len(words) > 1 else None
    head = f"Server:\t\t{server}\nAddress:\t{server}{':' if busybox else '#'}53\n\n"
    answers: list[tuple[str, Resolution]] = []
    for full in names:
        for kind in kinds or (["A", "AAAA"] if busybox else ["A"]):
            answer = await process.container.network.resolve(full, kind, search=not busybox, server=queried)
            if answer.status is DnsStatus.TIMEOUT:
                await process.write(_TIMED_OUT if not busybox else f"{_TIMED_OUT}\n")
                return 1
            answers.append((full, answer))
    await process.write(head)
    answered = any(answer.records for _, answer in answers)
    for full, answer in answers:
        if answer.status is not DnsStatus.NOERROR:
            await process.write(f"** server can't find {full}: {answer.status}\n\n")
        elif answer.records:
            lead = "" if answer.authoritative else "Non-authoritative answer:\n"
            await process.write(f"{lead}{_record_lines(answer)}\n")
        elif busybox:
            await process.write("\n")
        else:
            await process.write(f"*** Can't find {full}: No answer\n\n")
    return 0 if answered else 1


@tool("dig")
async def dig(process: Process, args: list[str]) -> int:
    name, kind, server = "", "A", None
    short = search = False
    words = iter(args)
    for word in words:
        if word.startswith("@"):
            server = word[1:]
        elif word == "+short":
            short = True
        elif word == "+search":
            search = True
        elif word.startswith("+"):
            continue
        elif word == "-t":
            kind = next(words, "A").upper()
        elif word == "-x":
            name, kind = _reverse(next(words, "")), "PTR"
        elif word.upper() in ("A", "AAAA", "SRV", "TXT", "CNAME", "PTR", "NS", "MX", "SOA", "ANY"):
            kind = word.upper()
        elif not word.startswith("-"):
            name = word
    queried = server or _resolv_conf(process)[0][0]
    started = process.clock.now
    answer = await process.container.network.resolve(name, kind, search=search, server=server)
    elapsed = int((process.clock.now - started) * 1000)
    if answer.status is DnsStatus.TIMEOUT:
        await process.write(f";; communications error to {queried}#53: timed out\n" * 3 + "\n")
        await process.write(
            f"; <<>> DiG 9.18.24 <<>> {' '.join(args)}\n;; global options: +cmd\n;; no servers could be reached\n"
        )
        return 9
    if short:
        await process.write("".join(f"{record.value}\n" for record in answer.records))
        return 0
    full = answer.name.rstrip(".") + "."
    flags = "qr aa rd" if answer.authoritative else "qr rd ra"
    lines = [
        f"\n; <<>> DiG 9.18.24 <<>> {' '.join(args)}",
        ";; global options: +cmd",
        ";; Got answer:",
        f";; ->>HEADER<<- opcode: QUERY, status: {answer.status}, id: {process.container.random.randrange(65536)}",
        f";; flags: {flags}; QUERY: 1, ANSWER: {len(answer.records)}, AUTHORITY: 0, ADDITIONAL: 1",
        "",
        ";; QUESTION SECTION:",
        f";{full}\t\tIN\t{kind}",
        "",
    ]
    if answer.records:
        lines.append(";; ANSWER SECTION:")
        lines += [f"{r.name.rstrip('.')}.\t{r.ttl}\tIN\t{r.kind}\t{r.value}" for r in answer.records]
        lines.append("")
    when = datetime.fromtimestamp(process.clock.now, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    lines += [f";; Query time: {elapsed} msec", f";; SERVER: {queried}#53({queried}) (UDP)", f";; WHEN: {when}", ""]
    await process.write("\n".join(lines) + "\n")
    return 0


@tool("host")
async def host(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    if not words:
        raise UsageError("usage: host NAME [SERVER]")
    server = words[1] if len(words) > 1 else None
    answer = await process.container.network.resolve(words[0], "A", server=server)
    if answer.status is DnsStatus.TIMEOUT:
        await process.write(_TIMED_OUT)
        return 1
    if not answer.records:
        await process.write(f"Host {words[0]} not found: 3({answer.status})\n")
        return 1
    for record in answer.records:
        text = f"is an alias for {record.value}" if record.kind == "CNAME" else f"has address {record.value}"
        await process.write(f"{record.name.rstrip('.')} {text}\n")
    return 0


@tool("getent")
async def getent(process: Process, args: list[str]) -> int:
    if not args:
        await process.error("getent: wrong number of arguments\n")
        return 1
    database, *keys = args
    accounts = accounts_of(process)
    if database in ("hosts", "ahosts", "ahostsv4"):
        status = 0
        for key in keys:
            answer = await process.container.network.resolve(key, "A")
            if not answer.addresses:
                status = 2
                continue
            if database == "hosts":
                await process.write(f"{answer.addresses[0]:<15} {answer.name.rstrip('.')}\n")
                continue
            for address in answer.addresses:
                name = answer.name.rstrip(".")
                await process.write(f"{address:<15} STREAM {name}\n{address:<15} DGRAM  \n{address:<15} RAW    \n")
        return status
    if database == "passwd":
        chosen = [a for a in accounts.all if not keys or a.name in keys or str(a.uid) in keys]
        await process.write("".join(f"{account.line}\n" for account in chosen))
        return 0 if chosen else 2
    if database == "group":
        text = process.files.read_text("/etc/group") if process.files.is_file("/etc/group") else ""
        rows = [
            line
            for line in text.splitlines()
            if not keys or line.split(":")[0] in keys or line.split(":")[2:3] == keys[:1]
        ]
        await process.write("".join(f"{line}\n" for line in rows))
        return 0 if rows else 2
    await process.error(f"getent: unknown database '{database}'\n")
    return 1
