"""Commands on keys: strings, lists, hashes, sets, sorted sets, expiry. A table: name → least arguments, function.

A function gets the keyspace and its arguments; Wrong is the error for a key that holds something else.
"""

from __future__ import annotations

from collections.abc import Callable

from srearena.cluster.embedded.programs.datastores.redis.keyspace import (
    TYPES,
    Blob,
    Keyspace,
    SortedSet,
    Stored,
    weight,
)
from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, Status, Value
from srearena.cluster.embedded.userland import glob_patterns

OK = Status("OK")
Arguments = list[bytes]
Command = Callable[[Keyspace, Arguments], Value]


class Wrong(Exception):
    """WRONGTYPE."""


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _string(keys: Keyspace, key: bytes) -> bytes | None:
    value = keys.values.get(key)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, Blob):
        return b"x" * value.size
    raise Wrong


def _list(keys: Keyspace, key: bytes) -> list[bytes]:
    value = keys.values.get(key, [])
    if isinstance(value, list):
        return value
    raise Wrong


def _hash(keys: Keyspace, key: bytes) -> dict[bytes, bytes]:
    value = keys.values.get(key, {})
    if isinstance(value, dict) and not isinstance(value, SortedSet):
        return {field: item for field, item in value.items() if isinstance(item, bytes)}
    raise Wrong


def _set(keys: Keyspace, key: bytes) -> set[bytes]:
    value = keys.values.get(key, set())
    if isinstance(value, set):
        return set(value)
    raise Wrong


def _sorted(keys: Keyspace, key: bytes) -> SortedSet:
    value = keys.values.get(key, SortedSet())
    if isinstance(value, SortedSet):
        return SortedSet(value)
    raise Wrong


def _span(items: list[bytes], start: bytes, end: bytes) -> list[bytes]:
    first, last = int(start), int(end)
    first = max(0, len(items) + first) if first < 0 else first
    last = len(items) + last if last < 0 else last
    return items[first : last + 1]


# --- strings ---------------------------------------------------------------------------------------------------------


def _write(keys: Keyspace, args: Arguments) -> Value:
    key, value, *options = args
    upper = [option.upper() for option in options]
    before = _string(keys, key) if b"GET" in upper else None
    if (b"NX" in upper and key in keys.values) or (b"XX" in upper and key not in keys.values):
        return before
    keys.store(key, value)
    if b"KEEPTTL" not in upper:
        keys.expiry.pop(key, None)
    for name, unit in ((b"EX", 1.0), (b"PX", 0.001)):
        if name in upper:
            keys.expiry[key] = keys.process.clock.now + int(options[upper.index(name) + 1]) * unit
    return before if b"GET" in upper else OK


def _add(keys: Keyspace, key: bytes, amount: int) -> Value:
    total = int(_string(keys, key) or b"0") + amount
    keys.store(key, str(total).encode())
    return total


def _append(keys: Keyspace, args: Arguments) -> Value:
    value = (_string(keys, args[0]) or b"") + args[1]
    keys.store(args[0], value)
    return len(value)


def _write_many(keys: Keyspace, args: Arguments) -> Value:
    for key, value in zip(args[::2], args[1::2], strict=False):
        keys.store(key, value)
        keys.expiry.pop(key, None)
    return OK


def _take(keys: Keyspace, args: Arguments) -> Value:
    value = _string(keys, args[0])
    keys.remove(args[0])
    return value


# --- keys ------------------------------------------------------------------------------------------------------------


def _expire(keys: Keyspace, key: bytes, moment: float) -> Value:
    if key not in keys.values:
        return 0
    keys.expiry[key] = moment
    return 1


def _left(keys: Keyspace, key: bytes, unit: float) -> Value:
    if key not in keys.values:
        return -2
    moment = keys.expiry.get(key)
    return -1 if moment is None else max(0, round((moment - keys.process.clock.now) / unit))


def _type(keys: Keyspace, args: Arguments) -> Value:
    value = keys.values.get(args[0])
    if value is None:
        return Status("none")
    return Status("zset" if isinstance(value, SortedSet) else TYPES[type(value)])


def _matching(keys: Keyspace, pattern: bytes) -> list[bytes]:
    keys.drop_expired(list(keys.expiry))
    compiled = glob_patterns.compiled(_text(pattern))
    return [key for key in keys.values if compiled.matches(_text(key))]


def _scan(keys: Keyspace, args: Arguments) -> Value:
    upper = [arg.upper() for arg in args]
    pattern = args[upper.index(b"MATCH") + 1] if b"MATCH" in upper else b"*"
    count = int(args[upper.index(b"COUNT") + 1]) if b"COUNT" in upper else 10
    start = int(args[0])
    every = list(keys.values)
    chosen = {*_matching(keys, pattern)}
    page: list[Value] = [key for key in every[start : start + count] if key in chosen]
    following = start + count if start + count < len(every) else 0
    return [str(following).encode(), page]


def _rename(keys: Keyspace, args: Arguments) -> Value:
    value = keys.values.get(args[0])
    if value is None:
        return RespError("ERR no such key")
    keys.remove(args[0])
    keys.store(args[1], value)
    return OK


# --- lists -----------------------------------------------------------------------------------------------------------


def _push(keys: Keyspace, args: Arguments, *, left: bool) -> Value:
    stored = _list(keys, args[0])
    items = [*reversed(args[1:]), *stored] if left else [*stored, *args[1:]]
    keys.store(args[0], items)
    return len(items)


def _pop(keys: Keyspace, key: bytes, index: int) -> Value:
    items = list(_list(keys, key))
    if not items:
        return None
    taken = items.pop(index)
    if items:
        keys.store(key, items)
    else:
        keys.remove(key)
    return taken


# --- hashes, sets, sorted sets ---------------------------------------------------------------------------------------


def _hash_write(keys: Keyspace, args: Arguments) -> Value:
    stored = _hash(keys, args[0])
    pairs = dict(zip(args[1::2], args[2::2], strict=False))
    keys.store(args[0], {**stored, **pairs})
    return sum(field not in stored for field in pairs)


def _hash_write_quietly(keys: Keyspace, args: Arguments) -> Value:
    _hash_write(keys, args)
    return OK


def _keep(keys: Keyspace, key: bytes, left: Stored) -> None:
    """What is left of a collection; one without members is gone."""
    if left:
        keys.store(key, left)
    else:
        keys.remove(key)


def _hash_delete(keys: Keyspace, args: Arguments) -> Value:
    stored = _hash(keys, args[0])
    gone = sum(stored.pop(field, None) is not None for field in args[1:])
    _keep(keys, args[0], stored)
    return gone


def _hash_add(keys: Keyspace, args: Arguments) -> Value:
    stored = _hash(keys, args[0])
    total = int(stored.get(args[1], b"0")) + int(args[2])
    keys.store(args[0], {**stored, args[1]: str(total).encode()})
    return total


def _set_add(keys: Keyspace, args: Arguments) -> Value:
    stored = _set(keys, args[0])
    before = len(stored)
    keys.store(args[0], stored | set(args[1:]))
    return len(stored | set(args[1:])) - before


def _set_remove(keys: Keyspace, args: Arguments) -> Value:
    stored = _set(keys, args[0])
    left = stored - set(args[1:])
    _keep(keys, args[0], left)
    return len(stored) - len(left)


def _score_text(score: float) -> bytes:
    return (str(int(score)) if score == int(score) else repr(score)).encode()


def _sorted_add(keys: Keyspace, args: Arguments) -> Value:
    rest = [arg for arg in args[1:] if arg.upper() not in (b"NX", b"XX", b"CH", b"GT", b"LT")]
    stored = _sorted(keys, args[0])
    pairs = {member: float(score) for score, member in zip(rest[::2], rest[1::2], strict=False)}
    added = sum(member not in stored for member in pairs)
    keys.store(args[0], SortedSet({**stored, **pairs}))
    return added


def _sorted_range(keys: Keyspace, args: Arguments, *, backwards: bool) -> Value:
    stored = _sorted(keys, args[0])
    ordered = sorted(stored, key=lambda member: (stored[member], member), reverse=backwards)
    chosen = _span(ordered, args[1], args[2])
    if b"WITHSCORES" in [arg.upper() for arg in args[3:]]:
        return [part for member in chosen for part in (member, _score_text(stored[member]))]
    return list(chosen)


def _sorted_by_score(keys: Keyspace, args: Arguments) -> Value:
    stored = _sorted(keys, args[0])
    low = float("-inf") if args[1] == b"-inf" else float(args[1].lstrip(b"("))
    high = float("inf") if args[2] in (b"+inf", b"inf") else float(args[2].lstrip(b"("))
    chosen = sorted((score, member) for member, score in stored.items() if low <= score <= high)
    return [member for _, member in chosen]


def _sorted_remove(keys: Keyspace, args: Arguments) -> Value:
    stored = _sorted(keys, args[0])
    gone = sum(stored.pop(member, None) is not None for member in args[1:])
    _keep(keys, args[0], stored)
    return gone


def _score(keys: Keyspace, args: Arguments) -> Value:
    score = _sorted(keys, args[0]).get(args[1])
    return None if score is None else _score_text(score)


def _flush(everything: bool) -> Command:
    def flush(keys: Keyspace, args: Arguments) -> Value:
        keys.flush(everything=everything)
        return OK

    return flush


def _flattened(pairs: dict[bytes, bytes]) -> list[Value]:
    return [part for pair in pairs.items() for part in pair]


READS: dict[str, tuple[int, Command]] = {
    "GET": (1, lambda k, a: _string(k, a[0])),
    "MGET": (1, lambda k, a: [_string(k, key) for key in a]),
    "STRLEN": (1, lambda k, a: len(_string(k, a[0]) or b"")),
    "EXISTS": (1, lambda k, a: sum(key in k.values for key in a)),
    "TTL": (1, lambda k, a: _left(k, a[0], 1.0)),
    "PTTL": (1, lambda k, a: _left(k, a[0], 0.001)),
    "TYPE": (1, _type),
    "KEYS": (1, lambda k, a: list(_matching(k, a[0]))),
    "SCAN": (1, _scan),
    "DBSIZE": (0, lambda k, a: len(k.values)),
    "RANDOMKEY": (0, lambda k, a: next(iter(k.values), None)),
    "LLEN": (1, lambda k, a: len(_list(k, a[0]))),
    "LRANGE": (3, lambda k, a: list(_span(_list(k, a[0]), a[1], a[2]))),
    "LINDEX": (2, lambda k, a: next(iter(_span(_list(k, a[0]), a[1], a[1])), None)),
    "HGET": (2, lambda k, a: _hash(k, a[0]).get(a[1])),
    "HMGET": (2, lambda k, a: [_hash(k, a[0]).get(field) for field in a[1:]]),
    "HGETALL": (1, lambda k, a: _flattened(_hash(k, a[0]))),
    "HKEYS": (1, lambda k, a: list(_hash(k, a[0]))),
    "HVALS": (1, lambda k, a: list(_hash(k, a[0]).values())),
    "HLEN": (1, lambda k, a: len(_hash(k, a[0]))),
    "HEXISTS": (2, lambda k, a: int(a[1] in _hash(k, a[0]))),
    "SMEMBERS": (1, lambda k, a: [*sorted(_set(k, a[0]))]),
    "SCARD": (1, lambda k, a: len(_set(k, a[0]))),
    "SISMEMBER": (2, lambda k, a: int(a[1] in _set(k, a[0]))),
    "ZRANGE": (3, lambda k, a: _sorted_range(k, a, backwards=b"REV" in a)),
    "ZREVRANGE": (3, lambda k, a: _sorted_range(k, a, backwards=True)),
    "ZRANGEBYSCORE": (3, _sorted_by_score),
    "ZCARD": (1, lambda k, a: len(_sorted(k, a[0]))),
    "ZSCORE": (2, _score),
}
REMOVALS: dict[str, tuple[int, Command]] = {
    "DEL": (1, lambda k, a: sum(k.remove(key) for key in a)),
    "UNLINK": (1, lambda k, a: sum(k.remove(key) for key in a)),
    "GETDEL": (1, _take),
    "EXPIRE": (2, lambda k, a: _expire(k, a[0], k.process.clock.now + int(a[1]))),
    "PEXPIRE": (2, lambda k, a: _expire(k, a[0], k.process.clock.now + int(a[1]) / 1000)),
    "EXPIREAT": (2, lambda k, a: _expire(k, a[0], float(int(a[1])))),
    "PERSIST": (1, lambda k, a: int(k.expiry.pop(a[0], None) is not None)),
    "FLUSHALL": (0, _flush(True)),
    "FLUSHDB": (0, _flush(False)),
    "LPOP": (1, lambda k, a: _pop(k, a[0], 0)),
    "RPOP": (1, lambda k, a: _pop(k, a[0], -1)),
    "HDEL": (2, _hash_delete),
    "SREM": (2, _set_remove),
    "ZREM": (2, _sorted_remove),
    "RENAME": (2, _rename),
}
"""Changes that take no memory, so that a full server still allows them."""
WRITES: dict[str, tuple[int, Command]] = {
    "SET": (2, _write),
    "SETEX": (3, lambda k, a: _write(k, [a[0], a[2], b"EX", a[1]])),
    "PSETEX": (3, lambda k, a: _write(k, [a[0], a[2], b"PX", a[1]])),
    "SETNX": (2, lambda k, a: int(_write(k, [*a, b"NX"]) is OK)),
    "GETSET": (2, lambda k, a: _write(k, [*a, b"GET"])),
    "MSET": (2, _write_many),
    "APPEND": (2, _append),
    "INCR": (1, lambda k, a: _add(k, a[0], 1)),
    "DECR": (1, lambda k, a: _add(k, a[0], -1)),
    "INCRBY": (2, lambda k, a: _add(k, a[0], int(a[1]))),
    "DECRBY": (2, lambda k, a: _add(k, a[0], -int(a[1]))),
    "LPUSH": (2, lambda k, a: _push(k, a, left=True)),
    "RPUSH": (2, lambda k, a: _push(k, a, left=False)),
    "HSET": (3, _hash_write),
    "HMSET": (3, _hash_write_quietly),
    "HINCRBY": (3, _hash_add),
    "SADD": (2, _set_add),
    "ZADD": (3, _sorted_add),
}


def usage(keys: Keyspace, key: bytes) -> int | None:
    """MEMORY USAGE."""
    value = keys.values.get(key)
    return None if value is None else weight(key, value)
