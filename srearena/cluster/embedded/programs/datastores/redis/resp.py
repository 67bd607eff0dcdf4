"""RESP, the protocol of Redis: values as bytes and back."""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.sockets import Connection

MAX_BULK = 16 * 1024 * 1024
MAX_ITEMS = 100_000
MAX_INLINE = 64 * 1024


class RespError(str):
    """An error reply."""

    __slots__ = ()


class Status(str):
    """A simple string, as opposed to data."""

    __slots__ = ()


Value = str | int | bytes | None | list["Value"]


def encoded(value: Value) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, RespError):
        return b"-" + value.encode(errors="surrogateescape") + b"\r\n"
    if isinstance(value, Status):
        return b"+" + value.encode() + b"\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(encoded(item) for item in value)
    data = value.encode(errors="surrogateescape") if isinstance(value, str) else value
    return b"$%d\r\n" % len(data) + data + b"\r\n"


def encode_command(words: list[str]) -> bytes:
    return encoded([word.encode(errors="surrogateescape") for word in words])


class RespReader:
    """Reads values from a connection; ValueError for what is none, EOFError at the end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = b""

    async def _line(self) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > MAX_INLINE:
                raise ValueError("too big inline request")
            data = await self._connection.read()
            if not data:
                raise EOFError
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.rstrip(b"\r")

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = await self._connection.read()
            if not data:
                raise EOFError
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    async def next(self, depth: int = 0) -> Value:
        line = await self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Status(rest.decode(errors="surrogateescape"))
        if kind == b"-":
            return RespError(rest.decode(errors="surrogateescape"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            if size > MAX_BULK:
                raise ValueError("invalid bulk length")
            return None if size < 0 else (await self._exactly(size + 2))[:-2]
        if kind == b"*" and depth < 8:
            count = int(rest)
            if count > MAX_ITEMS:
                raise ValueError("invalid multibulk length")
            return [await self.next(depth + 1) for _ in range(count)]
        raise ValueError(line.decode(errors="replace"))

    async def command(self) -> list[bytes]:
        """One request: an array of strings, or words on a line."""
        while True:
            if not self._buffer:
                data = await self._connection.read()
                if not data:
                    raise EOFError
                self._buffer = data
            if self._buffer[:1] != b"*":
                words = (await self._line()).split()
                if words:
                    return words
                continue
            value = await self.next()
            if isinstance(value, list) and value and all(isinstance(item, bytes) for item in value):
                return [item for item in value if isinstance(item, bytes)]


def decoded(value: Value, *, raw: bool = True) -> str:
    """As redis-cli shows it."""
    if value is None:
        return "" if raw else "(nil)"
    if isinstance(value, RespError):
        return str(value) if raw else f"(error) {value}"
    if isinstance(value, list):
        if raw:
            return "\n".join(decoded(item) for item in value)
        if not value:
            return "(empty array)"
        return "\n".join(f"{index}) {decoded(item, raw=False)}" for index, item in enumerate(value, 1))
    if isinstance(value, int):
        return str(value) if raw else f"(integer) {value}"
    if isinstance(value, bytes):
        text = value.decode(errors="surrogateescape")
        return text if raw else f'"{text}"'
    return str(value)
