"""Commands of agnhost that print something and end: entrypoint-tester, dns-suffix, dns-server-list, etc-hosts."""

from __future__ import annotations

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import command
from srearena.cluster.embedded.programs.serving import Flags

_PANIC = 2
"""The exit status of a Go program that panics."""


@command("entrypoint-tester")
async def entrypoint_tester(process: Process, flags: Flags) -> int:
    await process.write(f"[{' '.join(process.argv)}]\n")
    return 0


@command("dns-suffix")
async def dns_suffix(process: Process, flags: Flags) -> int:
    return await _resolver_words(process, "search")


@command("dns-server-list")
async def dns_server_list(process: Process, flags: Flags) -> int:
    return await _resolver_words(process, "nameserver")


async def _resolver_words(process: Process, keyword: str) -> int:
    """The words of the first line of resolv.conf that begins with the keyword."""
    text = await _read(process, "/etc/resolv.conf")
    if text is None:
        return _PANIC
    line = next((line for line in text.splitlines() if line.startswith(keyword)), None)
    if line is None:
        await process.error("panic: Could not find DNS search list!\n")
        return _PANIC
    await process.write(",".join(line.split(" ")[1:]) + "\n")
    return 0


@command("etc-hosts")
async def etc_hosts(process: Process, flags: Flags) -> int:
    text = await _read(process, "/etc/hosts")
    if text is None:
        return _PANIC
    await process.write(f"{text}\n")
    return 0


async def _read(process: Process, path: str) -> str | None:
    try:
        return process.files.read_text(path)
    except OSError as error:
        await process.error(f"panic: open {path}: {str(error.strerror).lower()}\n")
        return None
