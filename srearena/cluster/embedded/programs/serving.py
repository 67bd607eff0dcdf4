"""Shared by servers: bind errors, command-line flags, and running until a stop signal."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from signal import Signals

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.machine.processes.process import Process


class Flags:
    """Arguments as Go programs take them: -name=value, --name value, -name."""

    def __init__(self, args: Sequence[str], switches: frozenset[str] = frozenset()) -> None:
        self.values: dict[str, str] = {}
        self.operands: list[str] = []
        words = list(args)
        while words:
            word = words.pop(0)
            if not word.startswith("-") or word in ("-", "--"):
                self.operands.append(word)
                continue
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and name not in switches and words and not _is_flag(words[0]):
                value = words.pop(0)
            self.values[name] = value if equals or value else "true"

    def get(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)

    def port(self, name: str, default: int) -> int:
        """A port, perhaps written as an address (`:8080`)."""
        text = self.values.get(name, str(default)).rpartition(":")[2]
        return int(text) if text.isdigit() and int(text) < 65536 else default


def _is_flag(word: str) -> bool:
    """Whether a word begins another flag; a negative number is a value."""
    return word.startswith("-") and not word[1:].isdigit()


def go_bind_error(port: int, error: OSError, protocol: str = "tcp") -> str:
    """As Go's net.Listen says it."""
    reason = "address already in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
    return f"listen {protocol} :{port}: bind: {reason}"


async def until_stopped(process: Process, stop: Signal[int], listeners: Sequence[Listener], grace: float = 5.0) -> None:
    """Wait for the signal, stop listening, and let what is being served finish."""
    await stop.wait()
    for listener in listeners:
        listener.close()
    deadline = process.clock.now + grace
    while any(listener.accepted for listener in listeners) and process.clock.now < deadline:
        await process.sleep(0.05)


def stop_signal(process: Process) -> Signal[int]:
    return process.catch(Signals.SIGTERM, Signals.SIGINT)
