"""Commands about the server: CONFIG, INFO, CLIENT, MEMORY, SLOWLOG, SAVE and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.programs.datastores.redis.commands import OK, usage
from srearena.cluster.embedded.programs.datastores.redis.keyspace import memory_size
from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, Status, Value
from srearena.cluster.embedded.userland import glob_patterns

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer, Session

Administer = Callable[["RedisServer", "Session", list[bytes]], Value]
POLICIES = (
    *("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"),
    *("allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"),
)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _unknown(command: str, word: bytes) -> RespError:
    return RespError(f"ERR unknown subcommand '{_text(word)}'. Try {command} HELP.")


def _config(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    word = args[0].upper()
    if word == b"GET" and len(args) > 1:
        found = [glob_patterns.compiled(_text(arg).lower()) for arg in args[1:]]
        return [
            part.encode()
            for name, value in _visible_settings(server).items()
            if any(pattern.matches(name) for pattern in found)
            for part in (name, value)
        ]
    if word == b"SET" and len(args) > 2:
        for name, value in zip(args[1::2], args[2::2], strict=False):
            refusal = _set(server, _text(name).lower(), _text(value))
            if refusal is not None:
                return refusal
        server.apply()
        return OK
    if word == b"RESETSTAT":
        server.hits = server.misses = server.commands = 0
        return OK
    if word == b"REWRITE":
        return RespError("ERR The server is running without a config file")
    return _unknown("CONFIG", args[0])


def _visible_settings(server: RedisServer) -> dict[str, str]:
    sizes = {"maxmemory": str(memory_size(server.settings["maxmemory"]) or 0)}
    return {**server.settings, **sizes}


def _set(server: RedisServer, name: str, value: str) -> RespError | None:
    failed = f"ERR CONFIG SET failed (possibly related to argument '{name}') - "
    if name not in server.settings:
        return RespError(f"ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
    if name in ("port", "bind", "databases"):
        return RespError(f"{failed}can't set immutable config")
    if name == "maxmemory" and memory_size(value) is None:
        return RespError(f"{failed}argument must be a memory value")
    if name == "maxmemory-policy" and value not in POLICIES:
        return RespError(f"{failed}argument(s) must be one of the following: {', '.join(POLICIES)}")
    if name in ("maxclients", "timeout") and not value.isdigit():
        return RespError(f"{failed}argument couldn't be parsed into an integer")
    server.settings[name] = value
    return None


def _human(size: int) -> str:
    for unit, name in ((1024**3, "G"), (1024**2, "M"), (1024, "K")):
        if size >= unit:
            return f"{size / unit:.2f}{name}"
    return f"{size}B"


def _sections(server: RedisServer) -> dict[str, dict[str, object]]:
    keys, process = server.keys, server.process
    limit = keys.limit
    clients = len(server.sessions)
    sections: dict[str, dict[str, object]] = {
        "Server": {
            "redis_version": "7.2.4" if server.product == "Valkey" else server.version,
            **({"server_name": "valkey", "valkey_version": server.version} if server.product == "Valkey" else {}),
            "redis_mode": "standalone",
            "os": "Linux 6.8.0-45-generic x86_64",
            "arch_bits": 64,
            "process_id": process.pid,
            "tcp_port": server.settings["port"],
            "uptime_in_seconds": int(process.clock.now - process.started_at),
            "uptime_in_days": int(process.clock.now - process.started_at) // 86400,
        },
        "Clients": {"connected_clients": clients, "maxclients": server.settings["maxclients"], "blocked_clients": 0},
        "Memory": {
            "used_memory": keys.memory,
            "used_memory_human": _human(keys.memory),
            "used_memory_rss": process.memory,
            "used_memory_dataset": keys.used,
            "maxmemory": limit,
            "maxmemory_human": _human(limit),
            "maxmemory_policy": keys.policy,
        },
        "Persistence": {
            "loading": 0,
            "rdb_changes_since_last_save": keys.dirty,
            "rdb_bgsave_in_progress": 0,
            "rdb_last_save_time": int(server.saved_at),
            "rdb_last_bgsave_status": "err" if server.save_failed else "ok",
            "aof_enabled": int(server.settings["appendonly"] == "yes"),
        },
        "Stats": {
            "total_connections_received": server.connections,
            "total_commands_processed": server.commands,
            "rejected_connections": server.rejected,
            "expired_keys": keys.expired,
            "evicted_keys": keys.evicted,
            "keyspace_hits": server.hits,
            "keyspace_misses": server.misses,
        },
        "Replication": {"role": "master", "connected_slaves": 0},
        "CPU": {
            "used_cpu_sys": f"{server.commands * 0.00001:.6f}",
            "used_cpu_user": f"{server.commands * 0.00001:.6f}",
        },
        "Keyspace": {
            f"db{number}": f"keys={len(values)},expires={len(keys.expiries[number])},avg_ttl=0"
            for number, values in sorted(keys.databases.items())
            if values
        },
    }
    return sections


def _info(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    wanted = {_text(arg).lower() for arg in args} - {"all", "everything", "default"}
    blocks: list[str] = []
    for name, rows in _sections(server).items():
        if not wanted or name.lower() in wanted:
            blocks.append("".join(f"{line}\r\n" for line in (f"# {name}", *(f"{k}:{v}" for k, v in rows.items()))))
    return "\r\n".join(blocks).encode()


def _client(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    word = args[0].upper() if args else b""
    if word in (b"LIST", b"INFO"):
        chosen = [session] if word == b"INFO" else list(server.sessions.values())
        return "".join(f"{_line(server, each)}\n" for each in chosen).encode()
    if word == b"ID":
        return session.number
    if word == b"GETNAME":
        return session.name.encode() or None
    if word == b"SETNAME" and len(args) > 1:
        session.name = _text(args[1])
        return OK
    if word == b"KILL" and len(args) > 1:
        number = int(args[2]) if args[1].upper() == b"ID" and len(args) > 2 else 0
        chosen = [s for s in server.sessions.values() if s.number == number or s.address == _text(args[-1])]
        for each in chosen:
            each.killed = True
            if each.client:
                server.sessions.pop(each.number, None)
        if args[1].upper() in (b"ID", b"ADDR"):
            return len(chosen)
        return OK if chosen else RespError("ERR No such client")
    if word in (b"SETINFO", b"NO-EVICT", b"REPLY", b"TRACKING"):
        return OK
    return _unknown("CLIENT", args[0] if args else b"")


def _line(server: RedisServer, session: Session) -> str:
    now = server.process.clock.now
    return (
        f"id={session.number} addr={session.address} laddr=0.0.0.0:{server.settings['port']} fd={session.number + 5} "
        f"name={session.name} age={int(now - session.since)} idle={int(now - session.used_at)} flags=N "
        f"db={session.database} sub=0 psub=0 multi=-1 qbuf=0 obl=0 cmd={session.last} user=default"
    )


def _memory(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    word = args[0].upper() if args else b""
    if word == b"USAGE" and len(args) > 1:
        return usage(server.keys, args[1])
    if word == b"STATS":
        pairs: dict[str, int] = {
            "peak.allocated": server.keys.memory,
            "total.allocated": server.keys.memory,
            "startup.allocated": server.keys.base,
            "keys.count": len(server.keys.values),
            "dataset.bytes": server.keys.used,
        }
        return [part for name, number in pairs.items() for part in (name.encode(), number)]
    if word == b"DOCTOR":
        return b"Hi Sam, this instance is empty or is using very little memory, my issue detector can't be used."
    return _unknown("MEMORY", args[0] if args else b"")


def _save(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    return OK if server.save() else RespError("ERR")


def _background_save(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    server.save()
    return Status("Background saving started")


def _shutdown(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    server.process.raise_signal(15)
    return OK


def _acl(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    word = args[0].upper() if args else b""
    if word == b"WHOAMI":
        return b"default"
    if word == b"LIST":
        secret = "nopass" if not server.settings["requirepass"] else "#" + "0" * 64
        return [f"user default on {secret} sanitize-payload ~* &* +@all".encode()]
    if word == b"USERS":
        return [b"default"]
    return RespError("ERR ACL users are not supported by this simulation")


def _slow_log(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    word = args[0].upper() if args else b""
    return 0 if word == b"LEN" else OK if word == b"RESET" else []


def _time(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    now = server.process.clock.now
    return [str(int(now)).encode(), str(int(now % 1 * 1_000_000)).encode()]


def _ping(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    return args[0] if args else Status("PONG")


def _unsupported(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    return RespError("ERR this command is not supported by this simulation")


ADMINISTRATION: dict[str, tuple[int, Administer]] = {
    "PING": (0, _ping),
    "ECHO": (1, _ping),
    "CONFIG": (1, _config),
    "INFO": (0, _info),
    "CLIENT": (1, _client),
    "MEMORY": (1, _memory),
    "COMMAND": (0, lambda server, session, args: []),
    "ROLE": (0, lambda server, session, args: [b"master", 0, []]),
    "SAVE": (0, _save),
    "BGSAVE": (0, _background_save),
    "LASTSAVE": (0, lambda server, session, args: int(server.saved_at)),
    "SHUTDOWN": (0, _shutdown),
    "ACL": (1, _acl),
    "SLOWLOG": (1, _slow_log),
    "TIME": (0, _time),
    "MULTI": (0, _unsupported),
    "EXEC": (0, _unsupported),
    "EVAL": (0, _unsupported),
    "SUBSCRIBE": (0, _unsupported),
    "PUBLISH": (0, _unsupported),
    "MONITOR": (0, _unsupported),
    "XADD": (0, _unsupported),
    "CLUSTER": (0, lambda server, session, args: RespError("ERR This instance has cluster support disabled")),
}
