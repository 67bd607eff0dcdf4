"""What a Redis server knows and answers: strings, counters, lists, hashes, expiry, INFO."""

from __future__ import annotations

from collections.abc import Callable

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.resp import RespError, RespReader, Status, Value, encoded
from srearena.cluster.embedded.node.shell import patterns
from srearena.cluster.embedded.node.sockets import Connection

COMMAND_COST = 0.00002
OVERHEAD = 64
"""Bytes a key costs beyond its content."""
_OK = Status("OK")
_WRONG_TYPE = RespError("WRONGTYPE Operation against a key holding the wrong kind of value")
_NOT_A_NUMBER = RespError("ERR value is not an integer or out of range")

Stored = bytes | list[bytes] | dict[bytes, bytes]


class Keyspace:
    def __init__(self, process: Process, settings: dict[str, str], version: str) -> None:
        self.process = process
        self.settings = settings
        self.version = version
        self.values: dict[bytes, Stored] = {}
        self.expiry: dict[bytes, float] = {}
        self.clients = 0
        self.commands = 0
        self._used = 0
        self._base = process.memory
        self._handlers: dict[str, tuple[int, Callable[[list[bytes]], Value]]] = {
            "PING": (0, lambda a: a[0] if a else Status("PONG")),
            "ECHO": (1, lambda a: a[0]),
            "SELECT": (1, lambda a: _OK),
            "CLIENT": (0, lambda a: _OK),
            "COMMAND": (0, lambda a: []),
            "GET": (1, self._get),
            "SET": (2, self._set),
            "SETEX": (3, lambda a: self._set([a[0], a[2], b"EX", a[1]])),
            "DEL": (1, self._delete),
            "UNLINK": (1, self._delete),
            "EXISTS": (1, lambda a: sum(key in self.values for key in a)),
            "INCR": (1, lambda a: self._add(a[0], 1)),
            "DECR": (1, lambda a: self._add(a[0], -1)),
            "INCRBY": (2, lambda a: self._add(a[0], int(a[1]))),
            "EXPIRE": (2, self._expire),
            "TTL": (1, self._ttl),
            "TYPE": (1, self._type),
            "KEYS": (1, self._keys),
            "DBSIZE": (0, lambda a: len(self.values)),
            "FLUSHALL": (0, self._flush),
            "FLUSHDB": (0, self._flush),
            "LPUSH": (2, lambda a: self._push(a, left=True)),
            "RPUSH": (2, lambda a: self._push(a, left=False)),
            "LPOP": (1, lambda a: self._pop(a[0], 0)),
            "RPOP": (1, lambda a: self._pop(a[0], -1)),
            "LLEN": (1, self._list_length),
            "LRANGE": (3, self._range),
            "HSET": (3, self._hash_set),
            "HGET": (2, self._hash_get),
            "HGETALL": (1, self._hash_all),
            "CONFIG": (1, self._config),
            "INFO": (0, lambda a: self._info()),
            "ROLE": (0, lambda a: [b"master", 0, []]),
            "SAVE": (0, lambda a: _OK),
            "BGSAVE": (0, lambda a: Status("Background saving started")),
        }

    async def converse(self, connection: Connection) -> None:
        reader = RespReader(connection)
        authenticated = not self.settings.get("requirepass")
        self.clients += 1
        try:
            while True:
                try:
                    words = await reader.command()
                except (EOFError, ValueError):
                    return
                await self.process.spend(COMMAND_COST)
                name = words[0].decode(errors="replace").upper()
                if name in ("GET", "POST") and words[-1:] and words[-1].startswith(b"HTTP/"):
                    # Somebody speaks HTTP: Redis takes it for an attack and hangs up.
                    return
                if name == "QUIT":
                    await connection.write(encoded(_OK))
                    return
                if name in ("AUTH", "HELLO"):
                    answer, authenticated = self._authenticate(name, words[1:], authenticated)
                elif not authenticated:
                    answer = RespError("NOAUTH Authentication required.")
                else:
                    answer = self.execute(name, words[1:])
                await connection.write(encoded(answer))
        finally:
            self.clients -= 1

    def _authenticate(self, name: str, args: list[bytes], before: bool) -> tuple[Value, bool]:
        if name == "HELLO":
            return RespError("NOPROTO unsupported protocol version"), before
        wanted = self.settings.get("requirepass", "")
        if not wanted:
            text = "ERR AUTH <password> called without any password configured for the default user. "
            return RespError(text + "Are you sure your configuration is correct?"), before
        if args and args[-1].decode(errors="replace") == wanted:
            return _OK, True
        return RespError("WRONGPASS invalid username-password pair or user is disabled."), before

    def execute(self, name: str, args: list[bytes]) -> Value:
        self.commands += 1
        self._drop_expired(args[:1])
        handler = self._handlers.get(name)
        if handler is None:
            shown = " ".join(f"'{arg.decode(errors='replace')}'" for arg in args[:3])
            return RespError(f"ERR unknown command '{name.lower()}', with args beginning with: {shown} ")
        least, function = handler
        if len(args) < least:
            return RespError(f"ERR wrong number of arguments for '{name.lower()}' command")
        try:
            return function(args)
        except ValueError:
            return _NOT_A_NUMBER

    # --- memory and expiry -----------------------------------------------------------------------------------

    def _drop_expired(self, keys: list[bytes]) -> None:
        now = self.process.clock.now
        for key in keys:
            if self.expiry.get(key, now + 1) <= now:
                self._remove(key)

    def _remove(self, key: bytes) -> bool:
        self.expiry.pop(key, None)
        value = self.values.pop(key, None)
        if value is None:
            return False
        self._account(-_weight(key, value))
        return True

    def _store(self, key: bytes, value: Stored) -> None:
        old = self.values.get(key)
        self._account(_weight(key, value) - (_weight(key, old) if old is not None else 0))
        self.values[key] = value

    def _account(self, change: int) -> None:
        before = self._used // 65536
        self._used += change
        if self._used // 65536 != before:
            self.process.set_memory(self._base + self._used)

    def _full(self) -> RespError | None:
        limit = self.settings.get("maxmemory", "0").lower().removesuffix("b")
        units = {"k": 1024, "m": 1024**2, "g": 1024**3}
        number, unit = (limit[:-1], units[limit[-1]]) if limit[-1:] in units else (limit, 1)
        if not number.isdigit() or int(number) == 0 or self._used + self._base < int(number) * unit:
            return None
        if self.settings.get("maxmemory-policy", "noeviction") != "noeviction":
            for key in list(self.values)[: max(1, len(self.values) // 20)]:
                self._remove(key)
            return None
        return RespError("OOM command not allowed when used memory > 'maxmemory'.")

    # --- commands --------------------------------------------------------------------------------------------

    def _get(self, args: list[bytes]) -> Value:
        value = self.values.get(args[0])
        return value if value is None or isinstance(value, bytes) else _WRONG_TYPE

    def _set(self, args: list[bytes]) -> Value:
        full = self._full()
        if full is not None:
            return full
        key, value, *options = args
        upper = [option.upper() for option in options]
        if (b"NX" in upper and key in self.values) or (b"XX" in upper and key not in self.values):
            return None
        self._store(key, value)
        self.expiry.pop(key, None)
        for name, unit in ((b"EX", 1.0), (b"PX", 0.001)):
            if name in upper:
                self.expiry[key] = self.process.clock.now + int(options[upper.index(name) + 1]) * unit
        return _OK

    def _delete(self, args: list[bytes]) -> Value:
        return sum(self._remove(key) for key in args)

    def _add(self, key: bytes, amount: int) -> Value:
        value = self.values.get(key, b"0")
        if not isinstance(value, bytes):
            return _WRONG_TYPE
        total = int(value) + amount
        self._store(key, str(total).encode())
        return total

    def _expire(self, args: list[bytes]) -> Value:
        if args[0] not in self.values:
            return 0
        self.expiry[args[0]] = self.process.clock.now + int(args[1])
        return 1

    def _ttl(self, args: list[bytes]) -> Value:
        if args[0] not in self.values:
            return -2
        moment = self.expiry.get(args[0])
        return -1 if moment is None else max(0, round(moment - self.process.clock.now))

    def _type(self, args: list[bytes]) -> Value:
        value = self.values.get(args[0])
        names = {bytes: "string", list: "list", dict: "hash"}
        return Status("none" if value is None else names[type(value)])

    def _keys(self, args: list[bytes]) -> Value:
        pattern = patterns.compiled(args[0].decode(errors="surrogateescape"))
        self._drop_expired(list(self.expiry))
        return [key for key in self.values if pattern.matches(key.decode(errors="surrogateescape"))]

    def _flush(self, args: list[bytes]) -> Value:
        self.values.clear()
        self.expiry.clear()
        self._account(-self._used)
        return _OK

    def _push(self, args: list[bytes], *, left: bool) -> Value:
        value = self.values.get(args[0], [])
        if not isinstance(value, list):
            return _WRONG_TYPE
        items = [*reversed(args[1:]), *value] if left else [*value, *args[1:]]
        self._store(args[0], items)
        return len(items)

    def _pop(self, key: bytes, index: int) -> Value:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            return _WRONG_TYPE
        items = list(value)
        taken = items.pop(index)
        if items:
            self._store(key, items)
        else:
            self._remove(key)
        return taken

    def _list_length(self, args: list[bytes]) -> Value:
        value = self.values.get(args[0], [])
        return len(value) if isinstance(value, list) else _WRONG_TYPE

    def _range(self, args: list[bytes]) -> Value:
        value = self.values.get(args[0], [])
        if not isinstance(value, list):
            return _WRONG_TYPE
        start, end = int(args[1]), int(args[2])
        return list(value[start : end + 1 if end != -1 else None])

    def _hash_set(self, args: list[bytes]) -> Value:
        value = self.values.get(args[0], {})
        if not isinstance(value, dict):
            return _WRONG_TYPE
        pairs = dict(zip(args[1::2], args[2::2], strict=False))
        added = sum(field not in value for field in pairs)
        self._store(args[0], {**value, **pairs})
        return added

    def _hash_get(self, args: list[bytes]) -> Value:
        value = self.values.get(args[0], {})
        return value.get(args[1]) if isinstance(value, dict) else _WRONG_TYPE

    def _hash_all(self, args: list[bytes]) -> Value:
        value = self.values.get(args[0], {})
        if not isinstance(value, dict):
            return _WRONG_TYPE
        return [part for pair in value.items() for part in pair]

    def _config(self, args: list[bytes]) -> Value:
        if args[0].upper() == b"SET" and len(args) > 2:
            self.settings[args[1].decode(errors="replace").lower()] = args[2].decode(errors="replace")
            return _OK
        if args[0].upper() != b"GET" or len(args) < 2:
            return _OK
        pattern = patterns.compiled(args[1].decode(errors="replace").lower())
        known = {"maxmemory": "0", "maxmemory-policy": "noeviction", "port": "6379", **self.settings}
        return [text.encode() for name, value in known.items() if pattern.matches(name) for text in (name, value)]

    def _info(self) -> Value:
        rows = (
            "# Server",
            f"redis_version:{self.version}",
            f"uptime_in_seconds:{int(self.process.clock.now - self.process.started_at)}",
            "# Clients",
            f"connected_clients:{self.clients}",
            "# Memory",
            f"used_memory:{self._base + self._used}",
            f"maxmemory:{self.settings.get('maxmemory', '0')}",
            "# Stats",
            f"total_commands_processed:{self.commands}",
            "# Replication",
            "role:master",
            "connected_slaves:0",
            "# Keyspace",
            f"db0:keys={len(self.values)},expires={len(self.expiry)},avg_ttl=0",
        )
        return ("\r\n".join(rows) + "\r\n").encode()


def _weight(key: bytes, value: Stored) -> int:
    if isinstance(value, bytes):
        content = len(value)
    elif isinstance(value, list):
        content = sum(len(item) + 16 for item in value)
    else:
        content = sum(len(field) + len(item) + 32 for field, item in value.items())
    return len(key) + content + OVERHEAD
