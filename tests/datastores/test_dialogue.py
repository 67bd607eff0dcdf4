"""The conversation between clients and servers of datastores ends where the other side is something else."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.programs.datastores.dialogue import OPENING, Dialogue


class Peer:
    """A connection to a program that sends these pieces, then hangs up."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.written = b""
        self.closed = False

    async def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    async def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True


async def asked(peer: Peer) -> dict[str, object] | None:
    dialogue = await Dialogue.open(cast(Connection, peer))
    return await dialogue.ask({"sql": "select 1"})


def test_an_answer_may_come_in_pieces() -> None:
    peer = Peer(b'{"rows"', b": [1]}\n")
    assert asyncio.run(asked(peer)) == {"rows": [1]}
    assert peer.written == OPENING + b'{"sql":"select 1"}\n'
    assert not peer.closed


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n", b"[]\n", b"\xff\n", b"-ERR\r\n"])
def test_another_program_in_the_place_of_the_server_is_no_error_of_ours(answer: bytes) -> None:
    peer = Peer(answer)
    assert asyncio.run(asked(peer)) is None
    assert peer.closed


def test_the_first_bytes_do_not_name_the_project() -> None:
    assert b"arena" not in OPENING and not OPENING.strip().isalnum()
