"""The commands of agnhost: each is a function in a module of its own, added with the decorator `command`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from srearena.cluster.embedded.machine.networking.certificates import BadCertificate, TlsIdentity, identity_of
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp

Command = Callable[[Process, Flags], Coroutine[Any, Any, int]]
Answer = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponse]]
MEMORY = 8 * 1024 * 1024

COMMANDS: dict[str, Command] = {}


def command(*names: str) -> Callable[[Command], Command]:
    """Register a command: `@command("mounttest")`."""

    def register(function: Command) -> Command:
        COMMANDS.update(dict.fromkeys(names, function))
        return function

    return register


def log_time(process: Process) -> str:
    """The moment as Go's log package writes it before a line."""
    return stamp(process, "%Y/%m/%d %H:%M:%S")


def hostname(process: Process) -> str:
    return process.container.host.hostname


async def serve(process: Process, ports: dict[int, Answer], tls: TlsIdentity | None = None) -> int:
    """Serve HTTP (or HTTPS) on some ports until stopped."""
    stop = stop_signal(process)
    process.set_memory(MEMORY)
    listeners = []
    for port, answer in ports.items():
        try:
            listeners.append(process.container.namespace.listen(process, port, http=answer, tls=tls))
        except OSError as error:
            await process.error(f"{log_time(process)} {go_bind_error(port, error)}\n")
            return 1
    await until_stopped(process, stop, listeners)
    return 0


IMAGE_FILES = ("/localhost.crt", "/localhost.key")
_IMAGE_CERTIFICATE = TlsIdentity(("localhost", "127.0.0.1", "::1"), "Acme Co", subject="Acme Co", self_signed=True)
"""The certificate that comes with the image, which no client trusts."""


def certificate_at(process: Process, certificate: str, key: str) -> TlsIdentity:
    """The identity in two files, which may be the image's own."""
    if (certificate, key) == IMAGE_FILES and not process.files.exists(certificate):
        return _IMAGE_CERTIFICATE
    return identity_of(process.files.read_bytes(certificate), process.files.read_bytes(key))


async def identity(process: Process, flags: Flags) -> TlsIdentity | None:
    """The certificate and key that the flags name; None, with an error on the terminal, where they are no such."""
    try:
        return certificate_at(process, flags.get("tls-cert-file"), flags.get("tls-private-key-file"))
    except (OSError, BadCertificate) as problem:
        reason = "no such file or directory" if isinstance(problem, OSError) else f"tls: {problem}"
        await process.error(f"{log_time(process)} {reason}\n")
        return None
