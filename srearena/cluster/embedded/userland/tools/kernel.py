"""sysctl, tc and conntrack: settings and tables of the kernel's network."""

from __future__ import annotations

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool

ROOT = "/proc/sys"


def _all(process: Process, folder: str = ROOT) -> list[str]:
    names: list[str] = []
    for name in sorted(process.files.listdir(folder)):
        path = f"{folder}/{name}"
        names += _all(process, path) if process.files.is_dir(path) else [path[len(ROOT) + 1 :].replace("/", ".")]
    return names


@tool("sysctl")
async def sysctl(process: Process, args: list[str]) -> int:
    options = parse(args, "aneqwNp")
    names = _all(process) if "a" in options else options.operands
    if not names:
        raise UsageError("usage: sysctl [-an] [-w] variable[=value] ...")
    status = 0
    for name in names:
        key, equals, wanted = name.partition("=")
        key = key.strip()
        path = f"{ROOT}/{key.replace('.', '/')}"
        if not process.files.is_file(path):
            await process.error(f"sysctl: cannot stat {path}: No such file or directory\n")
            status = 255
            continue
        if equals:
            try:
                process.files.write_bytes(path, wanted.strip().encode())
            except OSError as error:
                await process.error(f'sysctl: setting key "{key}": {error.strerror}\n')
                status = 255
                continue
        value = " ".join(process.files.read_text(path).split("\n")).strip()
        if "q" not in options:
            await process.write(f"{value}\n" if "n" in options else f"{key} = {value}\n")
    return status


@tool("tc")
async def tc(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    if not words:
        raise UsageError("Usage: tc [ OPTIONS ] OBJECT { COMMAND | help }")
    if words[0] not in ("qdisc", "class", "filter"):
        raise UsageError(f'Object "{words[0]}" is unknown, try "tc help".')
    if len(words) > 1 and words[1] not in ("show", "list", "ls", "dev"):
        await process.error("RTNETLINK answers: Operation not permitted\n")
        return 2
    namespace = process.container.namespace
    device = words[words.index("dev") + 1] if "dev" in words and words[-1] != "dev" else ""
    if device and device not in ("lo", namespace.interface):
        await process.error(f'Cannot find device "{device}"\n')
        return 1
    if words[0] == "qdisc":
        rows = {"lo": "noqueue 0: dev lo root refcnt 2"}
        shaped = namespace.discipline
        rows[namespace.interface] = (
            f"netem 8001: dev {namespace.interface} root refcnt 2 limit 1000 {shaped}"
            if shaped
            else f"noqueue 0: dev {namespace.interface} root refcnt 2"
        )
        await process.write("".join(f"qdisc {text} \n" for name, text in rows.items() if device in ("", name)))
    return 0


@tool("conntrack")
async def conntrack(process: Process, args: list[str]) -> int:
    namespace = process.container.namespace
    if not process.credentials.can("NET_ADMIN"):
        await process.error("conntrack v1.4.8 (conntrack-tools): Operation failed: sorry, you must be root or get ")
        await process.error("CAP_NET_ADMIN capability to do this\n")
        return 1
    entries, _ = namespace.tracked() if namespace.tracked is not None else (0, 0)
    if "-C" in args or "--count" in args:
        await process.write(f"{entries}\n")
        return 0
    for one in namespace.sockets():
        if one.listener is not None:
            continue
        (near, near_port), (far, far_port) = one.local, one.peer
        await process.write(
            f"tcp      6 86399 ESTABLISHED src={near} dst={far} sport={near_port} dport={far_port} "
            f"src={far} dst={near} sport={far_port} dport={near_port} [ASSURED] mark=0 use=1\n"
        )
    await process.error(f"conntrack v1.4.8 (conntrack-tools): {entries} flow entries have been shown.\n")
    return 0
