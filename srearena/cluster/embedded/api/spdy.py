"""SPDY/3.1 frames, as far as exec, attach and port-forward speak it, on a connection or through a WebSocket.

Pure: bytes in, events out, bytes out. Header blocks of one direction share one zlib stream, primed with the
dictionary of the protocol, so frames must be read and written in order. Flow control is not enforced, as the
library on the other side (moby/spdystream) does not either; its frames are read and passed over.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Final

_NAMES: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
).split()
_PAIRS: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug "
    "Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = (
    b"".join(struct.pack(">I", len(name)) + name.encode() for name in (*_NAMES, *_PAIRS)) + _TAIL.encode()
)

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN: Final = 1
_VERSION: Final = 3
_HEAD: Final = 8
_MAX_FRAME: Final = 4 * 1024 * 1024
_MAX_HEADERS: Final = 64 * 1024
REFUSED_STREAM: Final = 3
PROTOCOL_ERROR: Final = 1


class SpdyError(Exception):
    """The bytes are not SPDY; the connection is beyond repair."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    stream: int
    headers: dict[str, str]
    fin: bool


@dataclass(frozen=True, slots=True)
class DataReceived:
    stream: int
    data: bytes
    fin: bool


@dataclass(frozen=True, slots=True)
class StreamReset:
    stream: int


@dataclass(frozen=True, slots=True)
class Pinged:
    number: int


@dataclass(frozen=True, slots=True)
class GoneAway:
    """The other side will open no more streams."""


Event = StreamOpened | DataReceived | StreamReset | Pinged | GoneAway


class SpdyConnection:
    """One side of a connection: `receive` what came, send what the methods return."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    # Reading

    def receive(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        self._buffer += data
        events: list[Event] = []
        while len(self._buffer) >= _HEAD:
            first, second = struct.unpack_from(">II", self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if length > _MAX_FRAME:
                raise SpdyError("frame too large")
            if len(self._buffer) < _HEAD + length:
                break
            body = bytes(self._buffer[_HEAD : _HEAD + length])
            del self._buffer[: _HEAD + length]
            event = self._event(first, flags, body)
            if event is not None:
                events.append(event)
        return events

    def _event(self, first: int, flags: int, body: bytes) -> Event | None:
        if not first >> 31:
            return DataReceived(first, body, bool(flags & FIN))
        if first >> 16 & 0x7FFF != _VERSION:
            raise SpdyError("unsupported version")
        kind = first & 0xFFFF
        try:
            if kind == SYN_STREAM:
                return StreamOpened(_number(body), self._headers(body[10:]), bool(flags & FIN))
            if kind in (SYN_REPLY, HEADERS):
                self._headers(body[4:])  # read, to keep the shared zlib stream in step
                return DataReceived(_number(body), b"", True) if flags & FIN else None
            if kind == RST_STREAM:
                return StreamReset(_number(body))
            if kind == PING:
                return Pinged(struct.unpack_from(">I", body)[0])
        except struct.error:
            raise SpdyError("truncated frame") from None
        return GoneAway() if kind == GOAWAY else None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            text = self._inflate.decompress(block, _MAX_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"bad header block: {error}") from None
        if self._inflate.unconsumed_tail:
            raise SpdyError("header block too large")
        at = 4
        headers: dict[str, str] = {}
        for _ in range(struct.unpack_from(">I", text)[0]):
            pair = []
            for _ in range(2):
                size = struct.unpack_from(">I", text, at)[0]
                if at + 4 + size > len(text):
                    raise SpdyError("bad header block")
                pair.append(text[at + 4 : at + 4 + size].decode("latin-1"))
                at += 4 + size
            headers[pair[0].lower()] = pair[1]
        return headers

    # Writing

    def open(self, stream: int, headers: dict[str, str], *, fin: bool = False) -> bytes:
        """SYN_STREAM; the side that opens streams is usually the client."""
        body = struct.pack(">IIH", stream, 0, 0) + self._block(headers)
        return _control(SYN_STREAM, FIN if fin else 0, body)

    def reply(self, stream: int) -> bytes:
        """SYN_REPLY: the stream is accepted."""
        return _control(SYN_REPLY, 0, struct.pack(">I", stream) + self._block({}))

    @staticmethod
    def data(stream: int, data: bytes, *, fin: bool = False) -> bytes:
        return struct.pack(">II", stream, (FIN if fin else 0) << 24 | len(data)) + data

    @staticmethod
    def reset(stream: int, status: int = REFUSED_STREAM) -> bytes:
        return _control(RST_STREAM, 0, struct.pack(">II", stream, status))

    @staticmethod
    def ping(number: int) -> bytes:
        return _control(PING, 0, struct.pack(">I", number))

    def go_away(self) -> bytes:
        """GOAWAY without an error."""
        return _control(GOAWAY, 0, struct.pack(">II", 0, 0))

    def _block(self, headers: dict[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower(), value):
                encoded = text.encode("latin-1")
                parts.append(struct.pack(">I", len(encoded)) + encoded)
        return self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def _number(body: bytes) -> int:
    found: int = struct.unpack_from(">I", body)[0]
    return found & 0x7FFFFFFF


def _control(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack(">II", 1 << 31 | _VERSION << 16 | kind, flags << 24 | len(body)) + body
