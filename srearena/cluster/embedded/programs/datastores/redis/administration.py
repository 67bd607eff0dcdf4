"""Commands about the server: CONFIG, INFO, CLIENT, MEMORY, SLOWLOG, SAVE and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.programs.datastores.redis.commands import OK, usage
from srearena.cluster.embedded.programs.datastores.redis.keyspace import memory_size
from srearena.cluster.embedded.programs.datastores.redis.observation import command_statistics, latency, slow_log
from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, Status, Value
from srearena.cluster.embedded.programs.datastores.redis.transactions import discard, execute, multi, publish
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
        server.settle()
        server.hits = server.misses = server.commands = 0
        server.observation.calls.clear()
        server.observation.microseconds.clear()
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
    server.settle()
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
    requested = {_text(arg).lower() for arg in args}
    names = requested - {"all", "everything", "default"}
    blocks: list[str] = []
    sections = _sections(server)
    if requested & {"all", "everything", "commandstats"}:
        sections["Commandstats"] = command_statistics(server)
    for name, rows in sections.items():
        if not names or name.lower() in names:
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
    local = session.address.startswith("127.")
    own = "127.0.0.1" if local else server.process.container.namespace.address
    return (
        f"id={session.number} addr={session.address} laddr={own}:{server.settings['port']} fd={session.number + 5} "
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
    if word in (b"CAT", b"LOG", b"GETUSER"):
        return []
    if word in (b"SETUSER", b"DELUSER", b"LOAD", b"SAVE"):
        return RespError(f"NOPERM this user has no permissions to run the 'acl|{_text(word).lower()}' command")
    return _unknown("ACL", args[0] if args else b"")


def _time(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    now = server.process.clock.now
    return [str(int(now)).encode(), str(int(now % 1 * 1_000_000)).encode()]


def _ping(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    return args[0] if args else Status("PONG")


def _no_streams(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    return RespError("NOPERM this user has no permissions to run the 'xadd' command")


def _no_scripts(server: RedisServer, session: Session, args: list[bytes]) -> Value:
    return RespError("NOPERM this user has no permissions to run the 'eval' command")


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
    "SLOWLOG": (1, slow_log),
    "LATENCY": (1, latency),
    "TIME": (0, _time),
    "MULTI": (0, multi),
    "EXEC": (0, execute),
    "DISCARD": (0, discard),
    "WATCH": (1, lambda server, session, args: OK),
    "UNWATCH": (0, lambda server, session, args: OK),
    "PUBLISH": (2, publish),
    "EVAL": (2, _no_scripts),
    "EVALSHA": (2, _no_scripts),
    "XADD": (4, _no_streams),
    "CLUSTER": (0, lambda server, session, args: RespError("ERR This instance has cluster support disabled")),
}
