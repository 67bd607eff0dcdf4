"""SLOWLOG, LATENCY, MONITOR and statistics of commands: how a server's work can be watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, Status, Value

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer, Session

OK = Status("OK")
Listener = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SlowCommand:
    number: int
    at: float
    microseconds: int
    words: tuple[bytes, ...]
    address: str
    name: str


@dataclass(slots=True)
class Observation:
    """What a server remembers of the commands it ran."""

    slow: list[SlowCommand] = field(default_factory=list)
    """The newest first."""
    slow_total: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    microseconds: dict[str, float] = field(default_factory=dict)
    spikes: list[tuple[float, int]] = field(default_factory=list)
    """Latency events of commands: time and milliseconds."""
    monitors: list[Listener] = field(default_factory=list)

    def count(self, name: str, calls: int, seconds: float) -> None:
        word = name.lower()
        self.calls[word] = self.calls.get(word, 0) + calls
        self.microseconds[word] = self.microseconds.get(word, 0.0) + seconds * 1e6

    def executed(self, server: RedisServer, session: Session, name: str, args: list[bytes], seconds: float) -> None:
        """Take note of a command of a connection."""
        self.count(name, 1, seconds)
        now = server.process.clock.now
        if self.monitors and name not in ("AUTH", "MONITOR"):
            words = " ".join(f'"{quoted(word)}"' for word in (name.lower().encode(), *args))
            for tell in list(self.monitors):
                tell(f"{now:.6f} [{session.database} {session.address}] {words}")
        self.note_slow(server, session, (name.lower().encode(), *args), seconds)

    def note_slow(self, server: RedisServer, session: Session, words: tuple[bytes, ...], seconds: float) -> None:
        now, micros = server.process.clock.now, int(seconds * 1e6)
        limit = int(server.settings["slowlog-log-slower-than"])
        if 0 <= limit <= micros:
            self.slow.insert(0, SlowCommand(self.slow_total, now, micros, words, session.address, session.name))
            self.slow_total += 1
            del self.slow[int(server.settings["slowlog-max-len"]) :]
        threshold = int(server.settings["latency-monitor-threshold"])
        if threshold and micros >= threshold * 1000:
            self.spikes = [*self.spikes, (now, micros // 1000)][-160:]


def quoted(word: bytes) -> str:
    return word.decode("latin-1").replace("\\", "\\\\").replace('"', '\\"').encode("unicode_escape").decode()


def slow_log(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    server.settle()
    seen = server.observation
    word = args[0].upper() if args else b""
    if word == b"LEN":
        return len(seen.slow)
    if word == b"RESET":
        seen.slow.clear()
        return OK
    if word != b"GET":
        return RespError(f"ERR unknown subcommand '{args[0].decode(errors='replace')}'. Try SLOWLOG HELP.")
    count = int(args[1]) if len(args) > 1 else 10
    chosen = seen.slow if count < 0 else seen.slow[:count]
    return [[c.number, int(c.at), c.microseconds, list(c.words), c.address.encode(), c.name.encode()] for c in chosen]


def latency(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    server.settle()
    seen = server.observation
    word = args[0].upper() if args else b""
    if word == b"LATEST":
        if not seen.spikes:
            return []
        at, last = seen.spikes[-1]
        return [[b"command", int(at), last, max(ms for _, ms in seen.spikes)]]
    if word == b"HISTORY" and len(args) > 1:
        return [[int(at), ms] for at, ms in seen.spikes] if args[1].lower() == b"command" else []
    if word == b"RESET":
        had = bool(seen.spikes)
        seen.spikes = []
        return int(had)
    if word == b"DOCTOR":
        if int(server.settings["latency-monitor-threshold"]) == 0:
            text = "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this server. You may use "
            return f'{text}"CONFIG SET latency-monitor-threshold <milliseconds>." in order to enable it.\n'.encode()
        if not seen.spikes:
            return (
                b"Dave, no latency spike was observed during the lifetime of this server, not in the slightest bit.\n"
            )
        worst = max(ms for _, ms in seen.spikes)
        mean = sum(ms for _, ms in seen.spikes) // len(seen.spikes)
        text = "Dave, I have observed latency spikes in this server. You don't mind talking about it, do you Dave?\n\n"
        text += f"1. command: {len(seen.spikes)} latency spikes (average {mean}ms). "
        return f"{text}Worst all time event {worst}ms.\n".encode()
    return RespError("ERR unknown subcommand or wrong number of arguments for 'latency' command")


def command_statistics(server: RedisServer) -> dict[str, object]:
    seen = server.observation
    return {
        f"cmdstat_{name}": (
            f"calls={calls},usec={int(seen.microseconds[name])},usec_per_call={seen.microseconds[name] / calls:.2f},"
            "rejected_calls=0,failed_calls=0"
        )
        for name, calls in sorted(seen.calls.items())
        if calls
    }
